import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { BelayError } from "@belay/model";
import { toErrorAnswer } from "./error-answer.ts";

/** By the codes of Node's HTTP server; anything else is 400. */
const kinds: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, "the headers of the call are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "the call did not arrive in time"],
};

/** Answers what is no HTTP, or not all of a call, as the API answers all else, and hangs up. */
export function refuseBrokenCall(error: Error & { code?: string }, socket: Socket): void {
  // Nobody is there to read it.
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, message] = kinds[error.code ?? ""] ?? [400, "the call is no good HTTP"];
  const text = JSON.stringify(toErrorAnswer(new BelayError("bad-request", message)).body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
}
