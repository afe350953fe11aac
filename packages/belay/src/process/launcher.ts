import { Socket } from "node:net";

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

/**
 * bin/belay.mjs stands before us on an old Node. If it is killed we are too: whoever kills it means
 * us, and belay-exec does what is to be done after us (S8).
 */
export function dieWithLauncher(): void {
  const [launcher, fd] = (process.env["BELAY_LAUNCHER"] ?? "").split(":").map(Number);
  delete process.env["BELAY_LAUNCHER"];
  // A grandchild may inherit the variable, but not the pipe.
  if (launcher !== process.ppid || fd === undefined || !Number.isInteger(fd)) return;
  const pipe = new Socket({ fd, readable: true, writable: false });
  pipe.on("end", die).on("error", die).resume();
  pipe.unref();
}
