export type {
  Coordinator,
  CoordinatorConfig,
  CoordinatorEvent,
  CoordinatorStats,
  Effect,
  LoadedState,
  PeerId,
} from "./coordinator/event.ts";
export { createCoordinator } from "./coordinator/coordinator.ts";
export { COORDINATOR_LIMITS } from "./coordinator/limits.ts";
export type { CoordinatorLimits } from "./coordinator/limits.ts";
export { MemoryStore } from "./memory-store.ts";
export type {
  ProxyModel,
  ProxyModelConfig,
  ProxyModelEffect,
  ProxyModelEvent,
  ProxyModelLimits,
  ProxyRequest,
  StreamId,
} from "./proxy/event.ts";
export { createProxyModel, PROXY_MODEL_LIMITS } from "./proxy/proxy.ts";
export { STORE_SCHEMA_VERSION, storedEnum, takeOverRevision } from "./store.ts";
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
export { HeldLease } from "./server-session/lease.ts";
export { Ledger } from "./server-session/ledger.ts";
export type { HeldShard, RunningRequest } from "./server-session/ledger.ts";
export { createServerSession, SERVER_SESSION_LIMITS } from "./server-session/session.ts";
export type { ServerSessionParts } from "./server-session/session.ts";
export { CLOCK_RATE_ERROR, waitMs } from "./wait.ts";
