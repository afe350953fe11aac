/** Every bound of a coordinator, by name. */
export interface CoordinatorLimits {
  readonly services: number;
  readonly serversPerService: number;
  /** Peers connected at once. */
  readonly peers: number;
  /** Events that wait while a commit runs; beyond it a peer's frames are refused and it is closed. */
  readonly waitingEvents: number;
  /** Resolves and mints that wait for an answer, over all proxies. */
  readonly pendingResolves: number;
  /** Registrations that wait for M4's condition on their address (S7). */
  readonly waitingRegistrations: number;
  /** Shards on the move at once. */
  readonly moves: number;
  /** Feed entries of one commit; more wait for the next. */
  readonly entriesPerBatch: number;
  /** Feed entries kept for resume (F1). */
  readonly feedEntries: number;
  /** Ids of gone servers kept per service, oldest out. */
  readonly tombstonesPerService: number;
  /** Shards of one page of AskShards. */
  readonly pageShards: number;
}

export const COORDINATOR_LIMITS: CoordinatorLimits = {
  services: 1_000,
  serversPerService: 10_000,
  peers: 20_000,
  waitingEvents: 200_000,
  pendingResolves: 100_000,
  waitingRegistrations: 10_000,
  moves: 10_000,
  entriesPerBatch: 1_000,
  feedEntries: 65_536,
  tombstonesPerService: 10_000,
  pageShards: 1_000,
};
