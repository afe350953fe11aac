export type { Belay } from "./belay.ts";
export { connect, type ConnectOptions } from "./connect.ts";
export type { RequestHandler } from "./http-handler.ts";
export type { Reply, Request } from "./http-types.ts";
export type { RequestContext } from "./request-context.ts";
export type { AcquireHook, ReleaseHook, ReleaseReason } from "./shard-hooks.ts";
export { CLOSE_MOVED, type MessageHandler, type SocketHandler } from "./web-socket.ts";
