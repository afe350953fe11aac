import { SetupFailure } from "./failure.mjs";

const GLIBC_MIN = [2, 31];
const NODE_MIN = 20;

/**
 * Refuses, with a clear word, a machine for which there is no Envoy to install.
 * @param {{ platform: string, arch: string, node: string, glibc: string | undefined }} machine
 */
export function requirePlatform(machine) {
  if (machine.platform !== "linux" || !["x64", "arm64"].includes(machine.arch)) {
    throw new SetupFailure(
      `this machine is ${machine.platform} on ${machine.arch}; Belay runs on Linux, x64 or arm64.`,
      [
        "Use a Linux machine, a virtual machine, or a container (any image with glibc ≥ 2.31, not Alpine).",
      ],
    );
  }
  if (Number(machine.node.split(".")[0]) < NODE_MIN) {
    throw new SetupFailure(`Node ${machine.node} is too old: 20 or newer is needed to start.`, [
      "Install a newer Node (nodejs.org, or your distribution's); Belay brings its own Node 24 after that.",
    ]);
  }
  if (machine.glibc === undefined) {
    throw new SetupFailure("this Linux has no glibc (Alpine?), which Envoy's binary needs.", [
      "Use a distribution with glibc ≥ 2.31: Debian 11, Ubuntu 20.04, RHEL 9 or newer.",
    ]);
  }
  const [major = 0, minor = 0] = machine.glibc.split(".").map(Number);
  if (major < GLIBC_MIN[0] || (major === GLIBC_MIN[0] && minor < GLIBC_MIN[1])) {
    throw new SetupFailure(
      `glibc ${machine.glibc} is too old for Envoy's binary: 2.31 is needed.`,
      ["Use Debian 11, Ubuntu 20.04, RHEL 9 or newer."],
    );
  }
}

/** The machine that this runs on, as requirePlatform takes it. */
export function thisMachine() {
  const linux = process.platform === "linux";
  return {
    platform: process.platform,
    arch: process.arch,
    node: process.versions.node,
    glibc: linux ? process.report.getReport().header.glibcVersionRuntime : undefined,
  };
}
