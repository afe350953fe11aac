import assert from "node:assert/strict";
import { test } from "node:test";
import type { FrameBodyInit, FrameCase } from "@belay/protocol";
import * as fc from "fast-check";
import { decoded } from "../coordinator/coordinator-bed.test.ts";
import type { Admission, Decision, ServerSessionEffect } from "./event.ts";
import { createServerSession } from "./session.ts";

const LEASE_MS = 15_000;
const MARGIN_MS = 200;

/** What the tests look at in a sent frame. */
interface Sent {
  readonly requestId?: number;
  readonly nonce?: number;
  readonly secret?: Uint8Array;
  readonly previousIncarnation?: bigint;
  readonly previousSecret?: Uint8Array;
  readonly shards?: readonly { readonly key?: string; readonly epoch?: bigint }[] | number;
}

/** A session and the coordinator's side of its connection, by hand. */
class Bed {
  now = 5000;
  readonly effects: ServerSessionEffect[] = [];
  readonly session;
  #secrets = 0;

  constructor(guarded = true) {
    this.session = createServerSession({
      clock: { now: () => this.now },
      service: "world",
      serverId: "a",
      address: "10.0.0.1:80",
      zone: "",
      guarded,
      capacity: 0,
      newSecret: () => new Uint8Array(16).fill((this.#secrets += 1)),
    });
  }

  static registered(guarded = true): Bed {
    const bed = new Bed(guarded);
    bed.handle({ type: "connected" });
    const { requestId = 0 } = bed.sent("register");
    bed.frame({
      case: "registered",
      value: { requestId, incarnation: 100n, leaseMs: LEASE_MS, marginMs: MARGIN_MS, asOf: 100n },
    });
    return bed;
  }

  handle(event: Parameters<typeof this.session.handle>[0]): void {
    this.session.handle(event);
    this.drain();
  }

  frame(frame: FrameBodyInit): void {
    this.handle({ type: "frame", frame: decoded(frame) });
  }

  drain(): void {
    this.effects.push(...this.session.take());
  }

  advance(ms: number): void {
    this.now += ms;
    this.handle({ type: "tick" });
  }

  /** The last frame of that name that was sent. */
  sent(name: FrameCase): Sent {
    const frames = this.effects.flatMap((effect) => (effect.type === "send" ? [effect.frame] : []));
    const frame = frames.findLast((candidate) => candidate.case === name);
    if (frame === undefined) throw new Error(`no ${name} was sent`);
    const value: object = frame.value;
    return value;
  }

  of(type: ServerSessionEffect["type"]): ServerSessionEffect[] {
    return this.effects.filter((effect) => effect.type === type);
  }

  grant(key: string, epoch: bigint): void {
    this.frame({
      case: "grant",
      value: { incarnation: 100n, shards: [{ key, epoch }], asOf: epoch },
    });
  }

  renewed(): void {
    const { nonce = 0 } = this.sent("renewServerLease");
    this.frame({ case: "serverLease", value: { nonce, incarnation: 100n, asOf: 200n } });
  }

  admit(admission: Partial<Admission> = {}): Decision {
    const decision = this.session.admit({
      id: 1,
      kind: "request",
      incarnation: 100n,
      key: "k",
      epoch: 101n,
      ...admission,
    });
    this.drain();
    return decision;
  }
}

test("G1 admitted: my incarnation, the lease lives, held at that epoch", () => {
  const bed = Bed.registered();
  bed.grant("k", 101n);
  assert.deepEqual(bed.admit(), { type: "admit", epoch: 101n });
  assert.equal(bed.session.mayAnswer(1), true);
});

test("G4 a request for another incarnation is refused, naming the one it addressed", () => {
  const bed = Bed.registered();
  bed.grant("k", 101n);
  assert.deepEqual(bed.admit({ incarnation: 7n }), {
    type: "refuse",
    incarnation: 7n,
    asOf: 101n,
    reason: "unknown",
  });
});

test("S2 the deadline counts from before the renewal was sent, whenever its answer comes", () => {
  const bed = Bed.registered();
  bed.renewed();
  const sentAt = bed.now;
  bed.advance(LEASE_MS / 3);
  bed.now += 4000;
  bed.renewed();
  const renewedAt = sentAt + LEASE_MS / 3;
  assert.equal(bed.session.leaseLeftMs, renewedAt + LEASE_MS - MARGIN_MS - bed.now);
});

test("S5 past the deadline: no admission, what runs is reset; an answer to a renewal sent in time revives", () => {
  const bed = Bed.registered();
  bed.renewed();
  bed.grant("k", 101n);
  bed.admit();
  bed.advance(LEASE_MS - MARGIN_MS - 100);
  bed.advance(100);
  const reset = bed.of("reset");
  assert.deepEqual(reset, [{ type: "reset", requests: [1], reason: "lease-over" }]);
  assert.equal(bed.session.mayAnswer(1), false);
  const refused = bed.admit({ id: 2 });
  assert.ok(refused.type === "refuse" && refused.reason === "expired");
  bed.renewed();
  assert.equal(bed.admit({ id: 3 }).type, "admit");
});

test("S5 told that it is expired, it forgets what it held and registers anew with its proof", () => {
  const bed = Bed.registered();
  bed.grant("k", 101n);
  bed.frame({ case: "serverExpired", value: { incarnation: 100n, reason: "expired" } });
  const register = bed.sent("register");
  assert.equal(register.previousIncarnation, 100n);
  assert.deepEqual(register.previousSecret, new Uint8Array(16).fill(1));
  assert.deepEqual(register.secret, new Uint8Array(16).fill(2));
  assert.equal(bed.session.epochOf("k"), 0n);
});

test("G2 not known here: asked once for all who wait, decided by the answer", () => {
  const bed = Bed.registered();
  assert.equal(bed.admit({ id: 1 }).type, "ask");
  assert.equal(bed.admit({ id: 2 }).type, "ask");
  const confirms = bed.of("send").filter((e) => e.type === "send" && e.frame.case === "confirm");
  assert.equal(confirms.length, 1);
  const { requestId = 0 } = bed.sent("confirm");
  const confirmed = { requestId, key: "k", owned: true, epoch: 101n, asOf: 150n };
  bed.frame({ case: "confirmed", value: { ...confirmed, incarnation: 99n } });
  assert.equal(bed.of("decided").length, 0, "a confirmation for a former life means nothing");
  bed.frame({ case: "confirmed", value: { ...confirmed, incarnation: 100n } });
  assert.deepEqual(
    bed.of("decided").map((e) => (e.type === "decided" ? [e.id, e.decision.type] : [])),
    [
      [1, "admit"],
      [2, "admit"],
    ],
  );
});

test("G2 an epoch at or below one that I gave up is never admitted, whatever is said later", () => {
  const bed = Bed.registered();
  bed.grant("k", 101n);
  bed.frame({
    case: "revoke",
    value: { incarnation: 100n, shards: [{ key: "k", epoch: 101n }], drainMs: 1000 },
  });
  assert.deepEqual(bed.sent("release").shards, [{ key: "k", epoch: 101n }]);
  bed.grant("k", 101n);
  const refused = bed.admit();
  assert.ok(refused.type === "refuse" && refused.reason === "moved");
  assert.equal(refused.asOf, 101n);
});

test("G3 a header epoch above mine asks, below mine is served with mine", () => {
  const bed = Bed.registered();
  bed.grant("k", 101n);
  assert.deepEqual(bed.admit({ epoch: 90n }), { type: "admit", epoch: 101n });
  assert.equal(bed.admit({ id: 2, epoch: 300n }).type, "ask");
  bed.handle({ type: "disconnected" });
  const [decided] = bed.of("decided");
  assert.ok(decided?.type === "decided" && decided.decision.type === "refuse");
  // The coordinator is silent: refused at once, with mine.
  assert.equal(bed.admit({ id: 3, epoch: 300n }).type, "refuse");
});

test("M3 W2 a revoke lets requests run, closes sockets, cuts at the drain deadline, then releases", () => {
  const bed = Bed.registered();
  bed.renewed();
  bed.grant("k", 101n);
  bed.admit({ id: 1 });
  bed.admit({ id: 2, kind: "socket" });
  bed.frame({
    case: "revoke",
    value: { incarnation: 100n, shards: [{ key: "k", epoch: 101n }], drainMs: 1000 },
  });
  assert.deepEqual(bed.of("close-sockets"), [{ type: "close-sockets", requests: [2] }]);
  assert.throws(() => bed.sent("release"));
  assert.equal(bed.admit({ id: 3 }).type, "refuse");
  assert.equal(bed.session.mayAnswer(1), true, "G6: active or draining");
  bed.session.end(2);
  bed.advance(1000);
  assert.deepEqual(bed.of("reset"), [{ type: "reset", requests: [1], reason: "drain-over" }]);
  bed.sent("release");
});

test("M3 a revoke for a shard that is not known is answered by a release, repeated after Resume", () => {
  const bed = Bed.registered();
  bed.frame({
    case: "revoke",
    value: { incarnation: 100n, shards: [{ key: "k", epoch: 101n }], drainMs: 1000 },
  });
  bed.sent("release");
  bed.handle({ type: "disconnected" });
  bed.effects.length = 0;
  bed.handle({ type: "connected" });
  const { requestId = 0 } = bed.sent("resume");
  bed.frame({
    case: "registered",
    value: { requestId, incarnation: 100n, leaseMs: LEASE_MS, marginMs: MARGIN_MS },
  });
  assert.deepEqual(bed.sent("release").shards, [{ key: "k", epoch: 101n }]);
});

test("A5 asked to release: busy while something runs, else released", () => {
  const bed = Bed.registered();
  bed.renewed();
  bed.grant("k", 101n);
  bed.grant("idle", 102n);
  bed.admit();
  const shards = [
    { key: "k", epoch: 101n },
    { key: "idle", epoch: 102n },
  ];
  bed.frame({ case: "askRelease", value: { incarnation: 100n, shards } });
  assert.deepEqual(bed.sent("busy").shards, [shards[0]]);
  assert.deepEqual(bed.sent("release").shards, [shards[1]]);
});

test("a registration that cannot be is told for good, one that time can mend is tried again", () => {
  const bed = new Bed();
  bed.handle({ type: "connected" });
  const problem = (code: string, retryAfterMs: number): void => {
    const { requestId = 0 } = bed.sent("register");
    bed.frame({ case: "problem", value: { code, message: "m", requestId, retryAfterMs } });
  };
  problem("address-taken", 500);
  assert.equal(bed.of("waiting").length, 1);
  const before = bed.of("send").length;
  bed.advance(499);
  assert.equal(bed.of("send").length, before);
  bed.advance(2);
  assert.equal(bed.of("send").length, before + 1);
  problem("guard-mismatch", 0);
  assert.equal(bed.of("refused").length, 1);
});

test("leave: nothing is admitted any more, from the moment it is said", () => {
  const bed = Bed.registered();
  bed.grant("k", 101n);
  bed.handle({ type: "leave" });
  bed.sent("leave");
  assert.equal(bed.admit().type, "refuse");
  bed.frame({ case: "serverEnded", value: { incarnation: 100n } });
  assert.equal(bed.of("ended").length, 1);
});

test("beside an unmodified server a revoke is released at once", () => {
  const bed = Bed.registered(false);
  bed.grant("k", 101n);
  bed.frame({
    case: "revoke",
    value: { incarnation: 100n, shards: [{ key: "k", epoch: 101n }], drainMs: 9000 },
  });
  bed.sent("release");
});

test("M3 G2 whatever the order of grants and revokes, no epoch is held that was given up", () => {
  const step = fc.record({
    type: fc.constantFrom("grant", "revoke", "ack"),
    key: fc.constantFrom("k1", "k2"),
    epoch: fc.bigInt(101n, 110n),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const bed = Bed.registered();
      const released = new Map<string, bigint>();
      for (const { type, key, epoch } of steps) {
        const shards = [{ key, epoch }];
        if (type === "grant") bed.grant(key, epoch);
        if (type === "revoke") {
          bed.frame({ case: "revoke", value: { incarnation: 100n, shards, drainMs: 0 } });
          if (bed.session.epochOf(key) < epoch && epoch > (released.get(key) ?? 0n)) {
            released.set(key, epoch);
          }
        }
        const held = bed.session.epochOf(key);
        assert.ok(held === 0n || held > (released.get(key) ?? 0n), `${key} held at ${held}`);
      }
    }),
    { numRuns: 100 },
  );
});
