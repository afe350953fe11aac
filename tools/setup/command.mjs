import { spawn } from "node:child_process";
import { delimiter } from "node:path";
import { adviceFor, SetupFailure } from "./failure.mjs";

const OUTPUT_KEPT_CHARS = 64 * 1024;
const OUTPUT_SHOWN_LINES = 25;

/**
 * Runs a tool, keeps the end of what it prints, tells each line to `onLine`. Resolves with its
 * exit code (null: killed by a signal) and output; `code` is "missing" if there is no such tool.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, onLine?: (line: string) => void }} [options]
 * @returns {Promise<{ code: number | null | "missing", output: string }>}
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    const take = (chunk) => {
      output = (output + chunk).slice(-OUTPUT_KEPT_CHARS);
      const line = chunk.trim().split("\n").at(-1)?.trim();
      if (line) options.onLine?.(line);
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    child.on("error", (error) => {
      if (error.code === "ENOENT") resolve({ code: "missing", output: "" });
      else reject(error);
    });
    child.on("close", (code) => resolve({ code, output }));
  });
}

/**
 * A failure that keeps the tool's own last words and adds what they mean.
 * @param {string} what
 * @param {string} output
 * @param {readonly string[]} [advice]
 */
export function toolFailure(what, output, advice = []) {
  const words = output.trim().split("\n").slice(-OUTPUT_SHOWN_LINES);
  const quoted = words.map((line) => `  | ${line}`).join("\n");
  const all = [...advice, ...adviceFor(output)];
  return new SetupFailure(
    `${what}\n${quoted}`,
    all.length > 0 ? all : ["Its own words are above; mend that, and start again."],
  );
}

/**
 * The environment without the project's own node_modules/.bin: so that replacing node_modules does
 * not pull the Node away that does it.
 * @param {string} root
 */
export function systemEnv(root) {
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((entry) => !entry.startsWith(`${root}/`))
    .join(delimiter);
  return { ...process.env, PATH: path };
}
