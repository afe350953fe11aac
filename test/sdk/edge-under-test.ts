import { encodeKey } from "@belay/model";
import type { Resolved } from "@belay/protocol";
import { fire, pause, type Reply, type Shot } from "@belay/testkit";
import { WebSocket } from "ws";
import { ProxyUnderTest } from "../coordinator/proxy-under-test.ts";

const REFUSALS_MAX = 200;

/** An edge without Envoy: resolves, sends with the identity, obeys refusals (R1). */
export class EdgeUnderTest extends ProxyUnderTest {
  readonly #cache = new Map<string, Resolved>();
  refusals = 0;

  /** Where the key is, as this edge believes it now. */
  async locate(key: string): Promise<{ port: number; identity: Record<string, string> }> {
    let resolved = this.#cache.get(key);
    if (resolved === undefined || !this.addresses.has(resolved.incarnation)) {
      resolved = await this.resolve(key);
      this.#cache.set(key, resolved);
    }
    const { incarnation, epoch } = resolved;
    const address = this.addresses.get(incarnation) ?? "";
    const identity = {
      "x-belay-key": encodeKey(key),
      "x-belay-epoch": String(epoch),
      "x-belay-incarnation": String(incarnation),
    };
    return { port: Number(address.split(":").at(-1)), identity };
  }

  /** One try, to where the edge believes the key is. */
  async sendOnce(key: string, shot: Shot = { path: "/" }): Promise<Reply> {
    const { port, identity } = await this.locate(key);
    return fire(port, { ...shot, headers: { ...shot.headers, ...identity } });
  }

  /** Tries until somebody admits it. Rejects when a connection fails after bytes were sent. */
  async send(key: string, shot: Shot = { path: "/" }): Promise<Reply> {
    for (let attempt = 0; attempt < REFUSALS_MAX; attempt += 1) {
      let reply: Reply;
      try {
        reply = await this.sendOnce(key, shot);
      } catch (error) {
        this.#cache.delete(key);
        if (!String(error).includes("ECONNREFUSED")) throw error;
        await pause(25);
        continue;
      }
      if (reply.status !== 421) return reply;
      this.refusals += 1;
      this.#cache.delete(key);
      await pause(10);
    }
    throw new Error(`${key}: refused ${REFUSALS_MAX} times`);
  }

  /** A socket to where the edge believes the key is. */
  async socket(key: string): Promise<WebSocket> {
    const { port, identity } = await this.locate(key);
    return new WebSocket(`ws://127.0.0.1:${port}/`, { headers: identity });
  }

  forget(key: string): void {
    this.#cache.delete(key);
  }
}
