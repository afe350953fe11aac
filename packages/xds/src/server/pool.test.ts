import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { encodeEnvoy, typeUrls } from "@belay/envoy-api";
import { EndpointEncoder } from "../resources/endpoints.ts";
import { encodeResource, type Draft, type Resource } from "../resources/resource.ts";
import { createSnapshot } from "../resources/snapshot.ts";
import { StreamSubscription } from "../subscription/stream.ts";
import { type PerProxy, Pool } from "./pool.ts";

const { cluster, endpoint, listener } = typeUrls;
const node = { id: "p", pool: "edge", envoyVersion: "1.40.0", metadata: {} };
const services = ["a", "b", "c"];

const draft = (typeUrl: string, name: string, seconds: number): Draft => ({
  typeUrl,
  name,
  value:
    typeUrl === cluster
      ? encodeEnvoy(cluster, { connect_timeout: `${seconds}s` })
      : Buffer.from([seconds]),
  sources: [],
});

type Step =
  | { readonly kind: "snapshot"; readonly clusters: Readonly<Record<string, number>> }
  | { readonly kind: "endpoints"; readonly service: string; readonly ports: readonly number[] }
  | { readonly kind: "forget"; readonly service: string }
  | { readonly kind: "listener"; readonly version: number };

const service = fc.constantFrom(...services);
const small = fc.integer({ min: 1, max: 3 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("snapshot" as const),
    clusters: fc.dictionary(service, small, { noNullPrototype: true }),
  }),
  fc.record({ kind: fc.constant("endpoints" as const), service, ports: fc.uniqueArray(small) }),
  fc.record({ kind: fc.constant("forget" as const), service }),
  fc.record({ kind: fc.constant("listener" as const), version: small }),
);

/** A proxy that wants everything, told of changes only, as the server tells its streams. */
class World {
  readonly #pool = new Pool(new EndpointEncoder());
  readonly #stream = new StreamSubscription();
  #clusters: Readonly<Record<string, number>> = {};
  #perProxy: PerProxy = () => [];
  readonly held = new Map<string, Resource>();

  constructor() {
    const more = { unsubscribe: [], held: {}, nonce: "", error: undefined };
    this.#stream.receive({ typeUrl: cluster, subscribe: [], ...more });
    this.#stream.receive({ typeUrl: listener, subscribe: [], ...more });
    this.#stream.receive({ typeUrl: endpoint, subscribe: services, ...more });
  }

  view() {
    return this.#pool.viewOf(node);
  }

  take(next: Step): void {
    if (next.kind === "endpoints") {
      const addresses = next.ports.map((port) => `10.0.0.1:${port}`);
      if (this.#pool.setEndpoints(next.service, addresses))
        this.#stream.touch(endpoint, [next.service]);
    } else if (next.kind === "forget") this.#pool.removeEndpoints(next.service);
    else this.#apply(next);
    this.#drain();
  }

  #apply(next: Step): void {
    const own = this.view().own.map(({ name }) => name);
    if (next.kind === "snapshot") this.#clusters = next.clusters;
    if (next.kind === "listener") {
      const resource = encodeResource(draft(listener, "edge", next.version));
      this.#perProxy = () => [resource];
    }
    const drafts = Object.entries(this.#clusters).map(([name, seconds]) =>
      draft(cluster, name, seconds),
    );
    const changes = this.#pool.setSnapshot(createSnapshot(drafts), this.#perProxy);
    for (const { typeUrl, name } of changes) this.#stream.touch(typeUrl, [name]);
    this.#stream.touch(listener, [...own, ...this.view().own.map(({ name }) => name)]);
  }

  #drain(): void {
    if (!this.#pool.ready) return;
    for (let turn = 0; turn < 100; turn += 1) {
      const response = this.#stream.next(this.view());
      if (response === undefined) return;
      const { typeUrl, nonce } = response;
      for (const resource of response.resources)
        this.held.set(`${typeUrl} ${resource.name}`, resource);
      for (const name of response.removed) this.held.delete(`${typeUrl} ${name}`);
      const empty = { subscribe: [], unsubscribe: [], held: {}, error: undefined };
      this.#stream.receive({ typeUrl, nonce, ...empty });
    }
    assert.fail("the stream never rests");
  }
}

test("rules 7, 9: telling streams what changed is enough, and what is not known takes nothing away", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const world = new World();
      for (const next of [{ kind: "snapshot", clusters: {} } as const, ...steps]) world.take(next);
      const view = world.view();
      for (const typeUrl of [cluster, endpoint, listener]) {
        for (const name of [...services, "edge"]) {
          const visible = view.get(typeUrl, name);
          if (visible === "pending") continue;
          const held = world.held.get(`${typeUrl} ${name}`);
          assert.equal(held?.version, visible?.version, `${typeUrl} ${name}`);
        }
      }
    }),
    { numRuns: 300 },
  );
});
