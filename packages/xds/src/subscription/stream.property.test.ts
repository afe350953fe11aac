import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { typeUrls } from "@belay/envoy-api";
import { createSnapshot, type Snapshot } from "../resources/snapshot.ts";
import { type Request, type Response, StreamSubscription } from "./stream.ts";
import type { View } from "./type-subscription.ts";

const { cluster, endpoint, listener, route } = typeUrls;

/** A pool's content: versions of clusters, of their endpoints, of the listener and the routes. */
interface Content {
  readonly clusters: Readonly<Record<string, number>>;
  readonly endpoints: number;
  readonly listener: number;
  readonly routes: number;
}

const bad = 3;
const version = fc.integer({ min: 0, max: bad });
const content: fc.Arbitrary<Content> = fc.record({
  clusters: fc.dictionary(fc.constantFrom("a", "b", "c", "d"), version, { noNullPrototype: true }),
  endpoints: version,
  listener: version,
  routes: version,
});

const draft = (typeUrl: string, name: string, text: string) => ({
  typeUrl,
  name,
  value: Buffer.from(text),
  sources: [],
});

/** Every route configuration names all clusters of its content, as a translation would. */
const snapshotOf = ({ clusters, endpoints, listener: edge, routes }: Content): Snapshot => {
  const names = Object.keys(clusters);
  return createSnapshot([
    ...names.map((name) => draft(cluster, name, String(clusters[name]))),
    ...names.map((name) => draft(endpoint, name, String(endpoints))),
    draft(listener, "edge", String(edge)),
    draft(route, "main", `${routes} ${names.join(" ")}`),
  ]);
};

/** A proxy as Envoy behaves: it asks for endpoints of clusters, and confirms clusters when warm. */
class Client {
  readonly requests: Request[] = [];
  readonly responses: Response[] = [];
  readonly held = new Map<string, Map<string, string>>();
  readonly #warming = new Map<string, Set<string>>();

  start(): void {
    this.#ask(cluster, {});
    this.#ask(listener, {});
  }

  take(): void {
    const response = this.responses.shift();
    if (response === undefined) return;
    const { typeUrl, nonce } = response;
    const held = this.held.get(typeUrl) ?? new Map<string, string>();
    this.held.set(typeUrl, held);
    const refused: string[] = [];
    for (const resource of response.resources) {
      const text = this.text(resource.framed);
      if (text.startsWith(String(bad))) refused.push(resource.name);
      else held.set(resource.name, text);
    }
    for (const name of response.removed) held.delete(name);
    this.#check(response);
    if (typeUrl === cluster) return this.#warm(response, refused);
    if (typeUrl === listener && response.resources.length > 0)
      this.#ask(route, { subscribe: ["main"] });
    if (typeUrl === endpoint)
      for (const name of [...response.resources.map((r) => r.name), ...response.removed])
        this.#warmed(name);
    const error = refused.length > 0 ? "Proto constraint validation failed" : undefined;
    this.#ask(typeUrl, { nonce, error });
  }

  text(framed: Uint8Array): string {
    return this.#texts.get(framed) ?? "";
  }
  readonly #texts = new Map<Uint8Array, string>();
  learn(framed: Uint8Array, text: string): void {
    this.#texts.set(framed, text);
  }

  #check(response: Response): void {
    const routes = this.held.get(route)?.get("main")?.split(" ").slice(1).filter(Boolean) ?? [];
    // Clusters that were refused when new are missing through their own fault.
    const lost = routes.filter((name) => !this.#usable.has(name) && !this.#faulty.has(name));
    assert.deepEqual(lost, [], `a route without its cluster after ${response.typeUrl}`);
  }
  readonly #faulty = new Set<string>();
  /** Clusters that have been warm since they were added. */
  readonly #usable = new Set<string>();

  #warm(response: Response, refused: readonly string[]): void {
    const good = response.resources.map((r) => r.name).filter((name) => !refused.includes(name));
    for (const name of refused) this.#faulty.add(name);
    const unsubscribe = response.removed;
    const known = this.#subscribed;
    const subscribe = good.filter((name) => !known.has(name));
    for (const name of subscribe) known.add(name);
    for (const name of unsubscribe) {
      known.delete(name);
      this.#usable.delete(name);
      this.held.get(endpoint)?.delete(name);
    }
    if (subscribe.length + unsubscribe.length > 0) this.#ask(endpoint, { subscribe, unsubscribe });
    this.#warming.set(response.nonce, new Set(good));
    const list = refused.map((name) => `${name}: bad`).join(" ");
    const error = refused.length > 0 ? `Error adding/updating cluster(s) ${list}` : undefined;
    this.#errors.set(response.nonce, error);
    this.#warmed(undefined);
  }
  readonly #subscribed = new Set<string>();
  readonly #errors = new Map<string, string | undefined>();

  #warmed(name: string | undefined): void {
    for (const [nonce, names] of this.#warming) {
      if (name !== undefined && names.delete(name)) {
        this.#usable.add(name);
        this.#faulty.delete(name);
      }
      if (names.size > 0) continue;
      this.#warming.delete(nonce);
      this.#ask(cluster, { nonce, error: this.#errors.get(nonce) });
    }
  }

  #ask(typeUrl: string, more: Partial<Request>): void {
    const empty = { subscribe: [], unsubscribe: [], held: {}, nonce: "", error: undefined };
    this.requests.push({ typeUrl, ...empty, ...more });
  }
}

type Step = { readonly kind: "change"; readonly to: Content } | { readonly kind: "send" | "take" };

const steps = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: content.map((to): Step => ({ kind: "change", to })) },
    { weight: 3, arbitrary: fc.constantFrom<Step>({ kind: "send" }, { kind: "take" }) },
  ),
  { maxLength: 60 },
);

class World {
  readonly client = new Client();
  readonly #stream = new StreamSubscription();
  #snapshot: Snapshot = createSnapshot([]);
  writes = 0;

  constructor(first: Content) {
    this.client.start();
    this.change(first);
  }

  readonly view: View = {
    get: (typeUrl, name) => this.#snapshot.types.get(typeUrl)?.get(name),
    names: (typeUrl) => this.#snapshot.types.get(typeUrl)?.keys() ?? [],
  };

  change(to: Content): void {
    this.#snapshot = snapshotOf(to);
    const names = Object.keys(to.clusters).join(" ");
    for (const [typeUrl, named] of this.#snapshot.types)
      for (const { name, framed } of named.values())
        this.client.learn(framed, this.#textOf(to, typeUrl, name, names));
    this.#stream.touchAll();
  }

  #textOf = (to: Content, ...[typeUrl, name, names]: [string, string, string]): string =>
    typeUrl === cluster
      ? String(to.clusters[name])
      : typeUrl === endpoint
        ? String(to.endpoints)
        : typeUrl === listener
          ? String(to.listener)
          : `${to.routes} ${names}`;

  send(): void {
    const request = this.client.requests.shift();
    if (request !== undefined) this.#stream.receive(request);
    for (;;) {
      const response = this.#stream.next(this.view);
      if (response === undefined) return;
      this.writes += 1;
      assert.ok(this.writes < 2_000, "a hot loop");
      this.client.responses.push(response);
    }
  }

  settle(): void {
    this.send();
    for (let turn = 0; turn < 2_000; turn += 1) {
      if (this.client.requests.length + this.client.responses.length === 0) return;
      this.send();
      this.client.take();
    }
    assert.fail("client and server never come to rest");
  }
}

const run = (first: Content, list: readonly Step[]): World => {
  const world = new World(first);
  for (const step of list) {
    if (step.kind === "change") world.change(step.to);
    else if (step.kind === "send") world.send();
    else world.client.take();
  }
  world.settle();
  return world;
};

test("rules 1, 2, 3, 15: any history ends with the proxy holding the view, routes never without their clusters", () => {
  const good = { clusters: { a: 1, b: 2 }, endpoints: 1, listener: 1, routes: 1 };
  fc.assert(
    fc.property(content, steps, (first, list) => {
      const world = run(first, list);
      world.change(good);
      world.settle();
      const held = (typeUrl: string): Record<string, string> =>
        Object.fromEntries(world.client.held.get(typeUrl) ?? []);
      assert.deepEqual(held(cluster), { a: "1", b: "2" });
      assert.deepEqual(held(endpoint), { a: "1", b: "1" });
      assert.deepEqual(held(listener), { edge: "1" });
      assert.deepEqual(held(route), { main: "1 a b" });
      const writes = world.writes;
      world.change(good);
      world.settle();
      assert.equal(world.writes, writes, "rule 5: an equal view is not sent");
    }),
    { numRuns: 500 },
  );
});
