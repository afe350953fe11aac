export type {
  Coordinator,
  CoordinatorConfig,
  CoordinatorEvent,
  CoordinatorStats,
  Effect,
  LoadedState,
  PeerId,
} from "./coordinator/event.ts";
export { COORDINATOR_LIMITS } from "./coordinator/limits.ts";
export type { CoordinatorLimits } from "./coordinator/limits.ts";
export { STORE_SCHEMA_VERSION, takeOverRevision } from "./store.ts";
export type {
  Batch,
  Change,
  CommitOutcome,
  Row,
  RowRef,
  ServerRow,
  ServiceRow,
  ShardRow,
  Store,
  StoreMeta,
  TakeOver,
  TombstoneRow,
} from "./store.ts";
export type {
  Admission,
  Decision,
  Refusal,
  RefusalReason,
  RequestId,
  ResetReason,
  ServerSession,
  ServerSessionConfig,
  ServerSessionEffect,
  ServerSessionEvent,
  ServerSessionLimits,
} from "./server-session/event.ts";
export { CLOCK_RATE_ERROR, waitMs } from "./wait.ts";
