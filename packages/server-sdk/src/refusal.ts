import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Refusal, RefusalReason } from "@belay/ownership";
import type { Reply, Request } from "./http-types.ts";

const MISDIRECTED = 421;
const UNAVAILABLE = 503;
const GRPC_UNAVAILABLE = "14";

/** For people who meet a refusal, which is made for the edge. */
const refusalText: Readonly<Record<RefusalReason, string>> = {
  moved: "This server does not own the key (any more).",
  expired: "This server's lease is over.",
  unknown: "The request did not come through Belay's edge, or means another life of this server.",
  "not-ready": "This server cannot say yet whether it owns the key.",
};

/** The value of `x-belay-refused` (G4). */
const formatRefusal = ({ reason, incarnation, asOf }: Refusal): string =>
  `${incarnation}; as-of=${asOf}; reason=${reason}`;

const isGrpc = (headers: IncomingHttpHeaders): boolean =>
  headers["content-type"]?.startsWith("application/grpc") === true;

/**
 * Answers 421, or gRPC trailers-only with UNAVAILABLE. Only before any handler saw the request: the
 * edge takes it as leave to send the request again (G4, I6).
 */
export function refuse(request: Request, reply: Reply, refusal: Refusal): void {
  if (isGrpc(request.headers)) {
    reply.setHeader("x-belay-refused", formatRefusal(refusal));
    endGrpc(reply, `refused: ${refusal.reason}`);
    return;
  }
  reply.statusCode = MISDIRECTED;
  reply.setHeader("x-belay-refused", formatRefusal(refusal));
  endText(reply, refusalText[refusal.reason]);
}

/** The same at a WebSocket handshake, where there is no reply object yet. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
  const body = `${refusalText[refusal.reason]}\n`;
  const head = [
    `HTTP/1.1 ${MISDIRECTED} Misdirected Request`,
    `x-belay-refused: ${formatRefusal(refusal)}`,
    "content-type: text/plain",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/** A handler has begun and its answer may not go out: never a refusal (G4, S5). */
export function answerOutcomeUnknown(request: Request, reply: Reply): void {
  reply.setHeader("x-belay-reason", "outcome-unknown");
  if (isGrpc(request.headers)) {
    endGrpc(reply, "outcome unknown: ownership was lost");
    return;
  }
  reply.statusCode = UNAVAILABLE;
  endText(reply, "Ownership was lost after the request had begun: it may have taken effect.");
}

function endGrpc(reply: Reply, message: string): void {
  reply.statusCode = 200;
  reply.setHeader("content-type", "application/grpc");
  reply.setHeader("grpc-status", GRPC_UNAVAILABLE);
  reply.setHeader("grpc-message", message);
  reply.end();
}

function endText(reply: Reply, text: string): void {
  reply.setHeader("content-type", "text/plain");
  reply.end(`${text}\n`);
}
