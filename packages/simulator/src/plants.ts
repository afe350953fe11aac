import type { Clock } from "@belay/model";
import { HeldLease, Ledger, type Row } from "@belay/ownership";
import { create } from "@bufbuild/protobuf";
import { type FrameBody, type FrameBodyInit, QuietSchema } from "@belay/protocol";
import type { Plant } from "./plant.ts";

type FeedBatch = Extract<FrameBodyInit, { case: "feedBatch" }>["value"];
type FeedEntry = NonNullable<FeedBatch["entries"]>[number];

/** W of it has passed already. */
const LEASE_OVER_MS = -1_000_000;

/** The shortest that a coordinator takes. */
const FEED_LEASE_MS_MIN = 500;

/** S2: the deadline counts from the time of the answer. */
export function leaseFromAnswer(): Plant {
  class LeaseFromAnswer extends HeldLease {
    readonly #clock: Clock;
    #terms: { readonly leaseMs: number; readonly marginMs: number } | undefined;

    constructor(clock: Clock) {
      super();
      this.#clock = clock;
    }

    override begin(
      terms: { readonly leaseMs: number; readonly marginMs: number },
      sentAt: number,
    ): void {
      this.#terms = terms;
      super.begin(terms, sentAt);
    }

    override answered(nonce: number): void {
      super.answered(nonce);
      // An answer that lay in the mailbox of a frozen process counts as fresh.
      if (this.#terms !== undefined) super.begin(this.#terms, this.#clock.now());
    }
  }
  return { serverParts: (clock) => ({ lease: new LeaseFromAnswer(clock) }) };
}

const expiresAtOnce = (row: Row): Row =>
  row.table === "server" ? { ...row, leaseMs: LEASE_OVER_MS } : row;

/** S4: a restarted coordinator expires whoever has not renewed with it yet. */
export function noWaitAfterRestart(): Plant {
  return { loaded: (rows) => Array.from(rows, expiresAtOnce) };
}

/** M4: an unguarded shard is given away though its proxies are not quiet. */
export function doesNotWaitForQuiet(): Plant {
  const owed = new Map<number, FrameBody[]>();
  return {
    down: ({ link }, frame) => {
      if (frame.case !== "feedBatch") return [frame];
      const quiet = owed.get(link) ?? [];
      owed.set(link, quiet);
      for (const { entry } of frame.value.entries ?? []) {
        if (entry?.case !== "shardMoving") continue;
        const { service = "", key = "", epoch = 0n, incarnation = 0n } = entry.value;
        quiet.push({
          case: "quiet",
          value: create(QuietSchema, { service, key, epoch, incarnation }),
        });
      }
      return [frame];
    },
    up: ({ link }, frame) => {
      if (frame.case !== "dropped") return [frame];
      const quiet = owed.get(link) ?? [];
      owed.delete(link);
      return [frame, ...quiet];
    },
  };
}

/** M4, P6: silent proxies are waited for a shorter time than they believe. */
export function waitsLessThanFeedLease(): Plant {
  let believedMs = 0;
  const lengthen = (entry: FeedEntry): FeedEntry =>
    entry.entry?.case === "service"
      ? { entry: { case: "service", value: { ...entry.entry.value, feedLeaseMs: believedMs } } }
      : entry;
  return {
    up: (_wire, frame) => {
      if (frame.case !== "defineServices") return [frame];
      const services = frame.value.services.map((spec) => {
        believedMs = spec.feedLeaseMs;
        return { ...spec, feedLeaseMs: FEED_LEASE_MS_MIN };
      });
      return [{ case: "defineServices", value: { ...frame.value, services } }];
    },
    down: (_wire, frame) => {
      if (frame.case !== "feedBatch") return [frame];
      const { previous = 0n, revision = 0n, term = 0n } = frame.value;
      const { snapshot = false, complete = false } = frame.value;
      const entries = (frame.value.entries ?? []).map((entry) => lengthen(entry));
      const value: FeedBatch = { previous, revision, term, snapshot, complete, entries };
      return [{ case: "feedBatch", value }];
    },
  };
}

/** S1: an expired incarnation is renewed. */
export function renewsTheExpired(): Plant {
  const nonces = new Map<number, number>();
  return {
    up: ({ link }, frame) => {
      if (frame.case === "renewServerLease") nonces.set(link, frame.value.nonce);
      return [frame];
    },
    down: ({ link }, frame) => {
      if (frame.case !== "serverExpired") return [frame];
      if (frame.value.reason === "expired") return [];
      const nonce = nonces.get(link);
      const { incarnation = 0n } = frame.value;
      if (nonce === undefined) return [frame];
      return [{ case: "serverLease", value: { nonce, incarnation, asOf: 0n } }];
    },
  };
}

/** M3: what was released is admitted again. */
export function releaseTakenBack(): Plant {
  class RevivingLedger extends Ledger {
    override giveUp(key: string, epoch: bigint): void {
      const held = this.held(key);
      super.giveUp(key, epoch);
      super.acknowledged(key, epoch);
      if (held !== undefined) this.hold(key, epoch);
    }
  }
  return { serverParts: () => ({ ledger: new RevivingLedger() }) };
}

/** I3: epochs are counted per key, and begin again with a new row. */
export function counterPerKey(): Plant {
  const given = new Map<string, bigint[]>();
  const count = (key: string, epoch: bigint): bigint => {
    const epochs = given.get(key) ?? [];
    given.set(key, epochs);
    if (!epochs.includes(epoch)) epochs.push(epoch);
    return BigInt(epochs.indexOf(epoch) + 1);
  };
  return {
    down: (_wire, frame) => {
      if (frame.case !== "grant") return [frame];
      const { incarnation = 0n, asOf = 0n } = frame.value;
      const shards = (frame.value.shards ?? []).map(({ key = "", epoch = 0n }) => ({
        key,
        epoch: count(key, epoch),
      }));
      return [{ case: "grant", value: { incarnation, asOf, shards } }];
    },
    committed: ({ changes }) => {
      for (const change of changes) {
        if (change.op === "delete" && change.ref.table === "shard") given.delete(change.ref.key);
      }
    },
  };
}

/** T2: answers leave before their commit is durable. */
export function answersBeforeCommit(): Plant {
  return { believesEarly: true };
}

/** T4: the store fails over and loses its tail, and nobody says what it has seen. */
export function losesTail(): Plant {
  return {
    losesTail: true,
    up: (_wire, frame) => {
      if (frame.case !== "hello") return [frame];
      return [{ case: "hello", value: { ...frame.value, generation: new Uint8Array(0) } }];
    },
  };
}
