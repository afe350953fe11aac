import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

const STATE_LISTEN = "0A";
const COMMAND_CHARS_MAX = 100;

/** A TCP port that something listens on, as /proc/net/tcp and tcp6 show it. */
export interface ListeningSocket {
  /** "127.0.0.1", "0.0.0.0", "::" … */
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

/** All TCP ports that something listens on in this network namespace; none where there is no /proc. */
export function listListeningSockets(): ListeningSocket[] {
  return ["/proc/net/tcp", "/proc/net/tcp6"]
    .filter((path) => existsSync(path))
    .flatMap((path) => readFileSync(path, "utf8").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[3] === STATE_LISTEN)
    .flatMap((columns) => {
      const [hexAddress = "", hexPort = ""] = (columns[1] ?? "").split(":");
      const inode = columns[9] ?? "";
      return [{ address: parseHexAddress(hexAddress), port: Number.parseInt(hexPort, 16), inode }];
    });
}

/** The kernel writes an address as 32-bit words in the byte order of the machine (little-endian). */
function parseHexAddress(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) =>
    (word.match(/../g) ?? []).toReversed().map((byte) => Number.parseInt(byte, 16)),
  );
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff) {
    return bytes.slice(12).join(".");
  }
  if (bytes.every((byte) => byte === 0)) return "::";
  if (bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1) return "::1";
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16),
  );
  return groups.join(":");
}

/**
 * Who listens on a port, for people: "node server.js (pid 42)". Undefined if nobody does; without
 * the right to look, only that somebody does.
 */
export function describeListener(port: number): string | undefined {
  const inodes = new Set(
    listListeningSockets()
      .filter((socket) => socket.port === port)
      .map((socket) => socket.inode),
  );
  if (inodes.size === 0) return undefined;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    if (socketInodes(pid).some((inode) => inodes.has(inode))) {
      return `${commandOf(pid)} (pid ${pid})`;
    }
  }
  return "a process of another user (`sudo ss -ltnp` names it)";
}

/** The sockets that a process holds; none if it is gone or not ours to see. */
function socketInodes(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        const match = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`));
        return match?.[1] === undefined ? [] : [match[1]];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

function commandOf(pid: string): string {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return command.length > COMMAND_CHARS_MAX ? `${command.slice(0, COMMAND_CHARS_MAX)}…` : command;
  } catch {
    return "a process that has just ended";
  }
}
