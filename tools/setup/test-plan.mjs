import { globSync } from "node:fs";
import { parseArgs } from "node:util";

/** Which test files belong to which group; unit tests share one process, the others do not. */
const GROUPS = {
  unit: ["packages/*/src/**/*.test.ts", "tools/**/*.test.ts"],
  process: ["test/**/*.test.ts", "examples/**/*.test.ts"],
};

export const USAGE = `Usage: npm test -- [--only TEXT]… [--grep PATTERN] [--list]

  --only TEXT     run what is named so: unit, rust, process, or the test files whose path
                  contains TEXT (may be given several times)
  --grep PATTERN  run the tests whose name matches (not the Rust ones)
  --list          print the files that would run
`;

/**
 * Reads the command line of `npm test`. Throws on an unknown flag.
 * @param {readonly string[]} args
 */
export function parsePlan(args) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true, default: [] },
      grep: { type: "string" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  return values;
}

/**
 * The test files of each group, and whether the Rust tests run, for a choice of --only. Needs
 * Node 22 (fs.globSync), which the set-up brings.
 * @param {string} root
 * @param {readonly string[]} only
 */
export function selectTests(root, only) {
  const chosen = {};
  for (const [group, patterns] of Object.entries(GROUPS)) {
    const files = globSync(patterns, { cwd: root, exclude: (name) => name === "node_modules" });
    chosen[group] = files
      .filter(
        (file) => only.length === 0 || only.some((text) => text === group || file.includes(text)),
      )
      .toSorted();
  }
  return { ...chosen, rust: only.length === 0 || only.includes("rust") };
}
