import { Socket } from "node:net";

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

/**
 * bin/belay.mjs stands before us on an old Node. If it is killed we are too: whoever kills it means
 * us, and belay-exec does what is to be done after us (S8).
 */
export function dieWithLauncher(): void {
  const fd = Number(process.env["BELAY_LAUNCHER_FD"] ?? Number.NaN);
  delete process.env["BELAY_LAUNCHER_FD"];
  if (!Number.isInteger(fd)) return;
  const pipe = new Socket({ fd, readable: true, writable: false });
  pipe.on("end", die).on("error", die).resume();
  pipe.unref();
}
