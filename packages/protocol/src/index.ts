export { createBootClock } from "./boot-clock.ts";
export {
  type AskInit,
  type CoordinatorAddress,
  CoordinatorConnection,
  type CoordinatorConnectionOptions,
  type DisconnectReason,
  PROTOCOL_VERSION,
} from "./coordinator-connection.ts";
export {
  BadFrame,
  encodeFrame,
  type FrameBody,
  type FrameBodyInit,
  type FrameCase,
  FrameDecoder,
  FRAME_BYTES_MAX,
} from "./frame.ts";
export * from "./gen/belay/v1/admin_pb.ts";
export * from "./gen/belay/v1/feed_pb.ts";
export * from "./gen/belay/v1/frame_pb.ts";
export * from "./gen/belay/v1/server_pb.ts";
export {
  type PeerEnd,
  PeerSocket,
  type PeerSocketOptions,
  type ProblemInit,
} from "./peer-socket.ts";
export { RequestFailed, type RequestFailureCode } from "./request.ts";
export { createSystemRandom } from "./system-random.ts";
