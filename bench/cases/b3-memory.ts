import { request } from "node:http";
import { pause } from "@belay/testkit";
import type { CaseResult } from "../report.ts";
import type { CaseContext } from "./context.ts";

const KEY_BYTES = 16;
const KEY_OVERHEAD_MAX = 64;
const BODY_BYTES = 5 * 1024 * 1024;
const BODIES = 16;
const CHUNK_BYTES = 64 * 1024;
/** Slow enough for the sampler to see the peak: a body takes 0.8 s. */
const CHUNK_MS = 10;
const SAMPLE_MS = 10;

/** B3: bytes per key of the owner map, and what a 5 MB body with an envelope keeps in memory. */
export async function benchMemory(context: CaseContext): Promise<CaseResult> {
  const { edge, before, after } = await context.filledEdge();
  const rivals = await context.rivals();
  const entries = after.entries - before.entries;
  const perKey = (after.mapBytes - before.mapBytes) / entries;
  const residentPerKey = (after.residentBytes - before.residentBytes) / entries;
  const plain = await measureBodies(rivals.plainPort, rivals.adminPort);
  const belay = await measureBodies(edge.port, edge.adminPort);
  return {
    rows: [
      {
        id: "B3",
        what: `owner map, ${entries} keys of ${KEY_BYTES} bytes`,
        value: `${perKey.toFixed(1)} bytes/key (map_bytes)`,
        beside: `resident memory grew by ${residentPerKey.toFixed(1)} bytes/key`,
        target: `≤ ${KEY_OVERHEAD_MAX} + key = ${KEY_OVERHEAD_MAX + KEY_BYTES}`,
        isMet: perKey <= KEY_OVERHEAD_MAX + KEY_BYTES,
      },
      {
        id: "B3",
        what: `peak memory per 5 MB POST, ${BODIES} at once, paced`,
        value: `${kib(belay.perBody)} KiB with an envelope`,
        beside: `plain ${kib(plain.perBody)} KiB`,
      },
    ],
    raw: { keys: { before, after, perKey, residentPerKey }, bodies: { plain, belay } },
  };
}

const kib = (bytes: number): string => (bytes / 1024).toFixed(0);

interface BodyMemory {
  /** Peak of what Envoy has allocated, over its value before, per body. */
  readonly perBody: number;
  readonly failed: number;
}

async function measureBodies(port: number, adminPort: number): Promise<BodyMemory> {
  await Promise.all(Array.from({ length: BODIES }, (_, at) => postSlowly(port, at, CHUNK_BYTES)));
  const base = await readAllocated(adminPort);
  const sampler = new MemorySampler(adminPort, base);
  const statuses = await Promise.all(
    Array.from({ length: BODIES }, async (_, at) => postSlowly(port, at, BODY_BYTES)),
  );
  const peak = await sampler.stop();
  const failed = statuses.filter((status) => status !== 200).length;
  return { perBody: (peak - base) / BODIES, failed };
}

/** Watches what Envoy has allocated until `stop`, which answers the peak. */
class MemorySampler {
  readonly #adminPort: number;
  readonly #loop: Promise<void>;
  #peak: number;
  #isOver = false;

  constructor(adminPort: number, base: number) {
    this.#adminPort = adminPort;
    this.#peak = base;
    this.#loop = this.#run();
  }

  async stop(): Promise<number> {
    this.#isOver = true;
    await this.#loop;
    return this.#peak;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      this.#peak = Math.max(this.#peak, await readAllocated(this.#adminPort));
      await pause(SAMPLE_MS);
    }
  }
}

async function readAllocated(adminPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/memory`);
  const { allocated } = (await response.json()) as { allocated: string };
  return Number(allocated);
}

/** A body of `bytes` that begins with key `at`'s envelope, a chunk at a time. Answers the status. */
async function postSlowly(port: number, at: number, bytes: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const outgoing = request(
    { host: "127.0.0.1", port, path: "/rpc", method: "POST", headers: { "content-length": bytes } },
    (incoming) => {
      incoming.resume().on("end", () => {
        resolve(incoming.statusCode ?? 0);
      });
    },
  );
  outgoing.on("error", reject);
  const head = envelopeOf(`key-${String(at).padStart(12, "0")}`, bytes);
  outgoing.write(head);
  for (let sent = head.length; sent < bytes;) {
    const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, bytes - sent), "p");
    outgoing.write(chunk);
    sent += chunk.length;
    await pause(CHUNK_MS);
  }
  outgoing.end();
  return promise;
}

/** 12: { 1: "belay1", 2: 1, 5: key }, then 1: a payload that fills `total` bytes; its head only. */
function envelopeOf(key: string, total: number): Buffer {
  const envelope = Buffer.concat([
    Buffer.from([10, 6]),
    Buffer.from("belay1"),
    Buffer.from([16, 1, 42, key.length]),
    Buffer.from(key),
  ]);
  const head = Buffer.concat([Buffer.from([98, envelope.length]), envelope]);
  // Tag and a length of four bytes: enough for 256 MiB.
  const payload = total - head.length - 5;
  const length = [0, 7, 14, 21].map((shift) => ((payload >> shift) & 127) | (shift < 21 ? 128 : 0));
  return Buffer.concat([head, Buffer.from([10, ...length])]);
}
