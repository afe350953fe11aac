import { spawn } from "node:child_process";
import { constants } from "node:os";

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];

/**
 * Becomes another program: replaces this process where Node can (22.15, 23.11 and newer), else
 * stands before it, hands signals on and ends as it ends.
 * @param {string} program
 * @param {readonly string[]} args
 */
export function become(program, args) {
  if (typeof process.execve === "function") {
    process.execve(program, [program, ...args], process.env);
  }
  const child = spawn(program, args, { stdio: "inherit" });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`belay: cannot start ${program}: ${error.message}`);
    process.exit(126);
  });
  child.on("exit", (code, signal) => {
    process.exit(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
  });
}
