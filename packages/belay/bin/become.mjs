import { spawn } from "node:child_process";
import { constants, homedir } from "node:os";
import { join } from "node:path";

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"];

/**
 * Becomes another program: replaces this process where Node can (22.15, 23.11 and newer), else
 * stands before it, hands signals on, ends as it ends, and takes it along if it is killed itself
 * (BELAY_LAUNCHER, "PID:FD", names a pipe that ends then; it is meant for our own child only).
 * @param {string} program
 * @param {readonly string[]} args
 */
export function become(program, args) {
  // Stripping types and compiling is half of the start: what was done once is kept.
  process.env.NODE_COMPILE_CACHE ??= join(
    process.env.XDG_CACHE_HOME || join(homedir(), ".cache"),
    "belay/compile-cache",
  );
  if (typeof process.execve === "function") {
    process.execve(program, [program, ...args], process.env);
  }
  const child = spawn(program, args, {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    env: { ...process.env, BELAY_LAUNCHER: `${process.pid}:3` },
  });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`belay: cannot start ${program}: ${error.message}`);
    process.exit(126);
  });
  child.on("exit", (code, signal) => {
    process.exit(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
  });
}
