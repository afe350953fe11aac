import assert from "node:assert/strict";
import { test } from "node:test";
import { typeUrls } from "@belay/envoy-api";
import type { Resource } from "../resources/resource.ts";
import { createSnapshot } from "../resources/snapshot.ts";
import { type Request, type Response, StreamSubscription } from "./stream.ts";
import type { View } from "./type-subscription.ts";

const { cluster, endpoint, listener, route } = typeUrls;
type Content = Partial<Record<string, Record<string, string>>>;

const viewOf = (content: Content): View => {
  const drafts = Object.entries(content).flatMap(([typeUrl, named]) =>
    Object.entries(named ?? {}).map(([name, text]) => {
      const sources = [{ name, label: `${name}.yaml:1` }];
      return { typeUrl, name, value: Buffer.from(text), sources };
    }),
  );
  const { types } = createSnapshot(drafts);
  return {
    get: (typeUrl, name) => types.get(typeUrl)?.get(name),
    names: (typeUrl) => types.get(typeUrl)?.keys() ?? [],
  };
};

const ask = (typeUrl: string, more: Partial<Request> = {}): Request => ({
  typeUrl,
  subscribe: [],
  unsubscribe: [],
  held: {},
  nonce: "",
  error: undefined,
  ...more,
});

const short: Record<string, string> = {
  [cluster]: "CDS",
  [endpoint]: "EDS",
  [listener]: "LDS",
  [route]: "RDS",
};

/** Reads a response as `CDS +a +b -c`. */
const read = ({ typeUrl, resources, removed }: Response): string =>
  [
    short[typeUrl],
    ...resources.map((resource: Resource) => `+${resource.name}`),
    ...removed.map((name) => `-${name}`),
  ].join(" ");

/** All responses that may go now; each is acknowledged at once unless told otherwise. */
const drain = (stream: StreamSubscription, view: View, acknowledge = true): string[] => {
  const out: string[] = [];
  for (let turn = 0; turn < 100; turn += 1) {
    const response = stream.next(view);
    if (response === undefined) return out;
    out.push(read(response));
    if (acknowledge) stream.receive(ask(response.typeUrl, { nonce: response.nonce }));
  }
  throw new Error("the stream never rests");
};

const world: Content = {
  [cluster]: { a: "1", b: "1" },
  [endpoint]: { a: "1", b: "1" },
  [listener]: { edge: "1" },
  [route]: { main: "1" },
};

const subscribed = (content: Content = world): StreamSubscription => {
  const stream = new StreamSubscription();
  const view = viewOf(content);
  stream.receive(ask(cluster));
  stream.receive(ask(endpoint, { subscribe: ["a", "b"] }));
  stream.receive(ask(listener));
  stream.receive(ask(route, { subscribe: ["main"] }));
  drain(stream, view);
  return stream;
};

const changed = (content: Content): View => viewOf({ ...world, ...content });

test("rule 1: clusters, endpoints, listeners, routes, in this order", () => {
  const stream = new StreamSubscription();
  stream.receive(ask(route, { subscribe: ["main"] }));
  stream.receive(ask(listener));
  stream.receive(ask(endpoint, { subscribe: ["a"] }));
  stream.receive(ask(cluster));
  assert.deepEqual(drain(stream, viewOf(world)), ["CDS +a +b", "EDS +a", "LDS +edge", "RDS +main"]);
  assert.ok(stream.inSync);
});

test("rule 1: listeners and routes wait until the clusters are confirmed, endpoints never", () => {
  const stream = subscribed();
  const view = changed({ [cluster]: { a: "2", b: "1" }, [listener]: { edge: "2" } });
  stream.touchAll();
  assert.deepEqual(drain(stream, view, false), ["CDS +a", "EDS +a"]);
  stream.receive(ask(cluster, { nonce: "5" }));
  assert.deepEqual(drain(stream, view), ["LDS +edge", "RDS +main"]);
});

test("rule 1: removals come last, and only after their users have confirmed that they left", () => {
  const stream = subscribed();
  const view = viewOf({
    ...world,
    [cluster]: { a: "1" },
    [endpoint]: { a: "1" },
    [route]: { main: "2" },
  });
  stream.touchAll();
  assert.deepEqual(drain(stream, view, false), ["RDS +main"]);
  stream.receive(ask(route, { nonce: "5" }));
  assert.deepEqual(drain(stream, view), ["CDS -b", "EDS -b"]);
});

test("rule 15: a cluster stays while a refused route may still name it", () => {
  const stream = subscribed();
  stream.touchAll();
  const bad = viewOf({ ...world, [cluster]: { a: "1" }, [route]: { main: "bad" } });
  assert.deepEqual(drain(stream, bad, false), ["RDS +main"]);
  stream.receive(ask(route, { nonce: "5", error: "no" }));
  assert.deepEqual(drain(stream, bad), []);
  stream.touchAll();
  const good = viewOf({ ...world, [cluster]: { a: "1" }, [route]: { main: "3" } });
  assert.deepEqual(drain(stream, good), ["RDS +main", "CDS -b"]);
});

test("rule 1: the newest version replaces what waits", () => {
  const stream = subscribed();
  for (const version of ["2", "3", "4", "5"]) {
    stream.touch(endpoint, ["a"]);
    drain(stream, changed({ [endpoint]: { a: version, b: "1" } }), false);
  }
  for (const version of ["6", "7"]) {
    stream.touch(endpoint, ["a"]);
    const view = changed({ [endpoint]: { a: version, b: "1" } });
    assert.deepEqual(drain(stream, view, false), [], "four are unanswered");
  }
  const view = changed({ [endpoint]: { a: "7", b: "1" } });
  stream.receive(ask(endpoint, { nonce: "5" }));
  assert.deepEqual(drain(stream, view), ["EDS +a"]);
});

test("rule 2: a changed cluster is followed by its endpoints, a listener by its routes", () => {
  const stream = subscribed();
  const view = changed({ [cluster]: { a: "1", b: "2" }, [listener]: { edge: "2" } });
  stream.touchAll();
  assert.deepEqual(drain(stream, view), ["CDS +b", "EDS +b", "LDS +edge", "RDS +main"]);
});

test("rule 2: an unknown name is answered and stays subscribed", () => {
  const stream = new StreamSubscription();
  stream.receive(ask(endpoint, { subscribe: ["late"] }));
  assert.deepEqual(drain(stream, viewOf(world)), ["EDS -late"]);
  stream.touch(endpoint, ["late"]);
  assert.deepEqual(drain(stream, viewOf({ [endpoint]: { late: "1" } })), ["EDS +late"]);
});

test("rule 3: a refused version is parked until it changes", () => {
  const stream = subscribed();
  const bad = changed({ [listener]: { edge: "bad" } });
  stream.touchAll();
  drain(stream, bad, false);
  const [rejection] = stream.receive(ask(listener, { nonce: "5", error: "no such filter" }));
  assert.equal(rejection?.name, "edge");
  stream.receive(ask(route, { nonce: "6" }));
  stream.touchAll();
  assert.deepEqual(drain(stream, bad), [], "no hot loop");
  assert.ok(!stream.inSync);
  assert.equal(stream.status().find((type) => type.typeUrl === listener)?.acked, 0);
  stream.touchAll();
  assert.deepEqual(drain(stream, viewOf(world)), ["LDS +edge", "RDS +main"]);
  assert.ok(stream.inSync);
});

test("rule 3: a refused cluster keeps nobody else back, and is shown with its source", () => {
  const stream = subscribed();
  const view = changed({ [cluster]: { a: "2", b: "bad", c: "1" } });
  stream.touchAll();
  assert.deepEqual(drain(stream, view, false), ["CDS +a +b +c", "EDS +a +b"]);
  const error = "Error adding/updating cluster(s) b: malformed";
  const rejections = stream.receive(ask(cluster, { nonce: "5", error }));
  assert.deepEqual(
    rejections.map(({ name, message, sources }) => [name, message, sources[0]?.label]),
    [["b", error, "b.yaml:1"]],
  );
  assert.equal(stream.status().find((type) => type.typeUrl === cluster)?.acked, 2);
});

test("rule 3: where nobody knows which of several is bad, each goes once more by itself", () => {
  const stream = subscribed();
  const view = changed({ [endpoint]: { a: "2", b: "bad" } });
  stream.touchAll();
  assert.deepEqual(drain(stream, view, false), ["EDS +a +b"]);
  stream.receive(ask(endpoint, { nonce: "5", error: "malformed IP address" }));
  const first = stream.next(view);
  const second = stream.next(view);
  assert.deepEqual(
    [first, second].map((response) => response && read(response)),
    ["EDS +a", "EDS +b"],
  );
  stream.receive(ask(endpoint, { nonce: "6" }));
  const [rejection] = stream.receive(ask(endpoint, { nonce: "7", error: "malformed IP address" }));
  assert.equal(rejection?.name, "b");
  assert.deepEqual(drain(stream, view), []);
});

test("rule 4: a stale nonce still carries changes of the subscription", () => {
  const stream = subscribed();
  const request = ask(endpoint, { nonce: "gone", subscribe: ["c"], unsubscribe: ["a"] });
  stream.receive(request);
  const view = changed({ [endpoint]: { a: "2", b: "1", c: "1" } });
  stream.touchAll();
  assert.deepEqual(drain(stream, view), ["EDS +c"]);
});

test("rule 4: unsubscribing forgets, subscribing again sends again", () => {
  const stream = subscribed();
  stream.receive(ask(endpoint, { unsubscribe: ["a"] }));
  assert.deepEqual(drain(stream, viewOf(world)), []);
  stream.receive(ask(endpoint, { subscribe: ["a"] }));
  assert.deepEqual(drain(stream, viewOf(world)), ["EDS +a"]);
  stream.receive(ask(endpoint, { subscribe: ["a"] }));
  assert.deepEqual(drain(stream, viewOf(world)), ["EDS +a"], "asked for, though unchanged");
});

test("rule 4: a name dropped while everything is wanted is sent again", () => {
  const stream = subscribed();
  stream.receive(ask(cluster, { subscribe: ["a"] }));
  drain(stream, viewOf(world));
  stream.receive(ask(cluster, { unsubscribe: ["a"] }));
  assert.deepEqual(drain(stream, viewOf(world)), ["CDS +a", "EDS +a"]);
  stream.receive(ask(cluster, { unsubscribe: ["*"] }));
  stream.touchAll();
  assert.deepEqual(drain(stream, changed({ [cluster]: { a: "2" } })), []);
});

test("rule 5: nothing is pushed unchanged, whatever is touched", () => {
  const stream = subscribed();
  stream.touchAll();
  stream.touch(endpoint, ["a", "b", "c"]);
  assert.deepEqual(drain(stream, viewOf(world)), []);
});

const versionOf = (resource: Resource | "pending" | undefined): string =>
  typeof resource === "object" ? resource.version : "old";

test("rules 5 and 7: after a reconnect only what differs from the client's versions is sent", () => {
  const view = viewOf(world);
  const held = (typeUrl: string, names: readonly string[]): Record<string, string> =>
    Object.fromEntries(names.map((name) => [name, versionOf(view.get(typeUrl, name))]));
  const stream = new StreamSubscription();
  stream.receive(ask(cluster, { held: held(cluster, ["a", "b", "gone"]) }));
  stream.receive(ask(endpoint, { subscribe: ["a", "b"], held: held(endpoint, ["a", "b"]) }));
  stream.receive(ask(listener, { held: { edge: "old" } }));
  stream.receive(ask(route, { subscribe: ["main"], held: held(route, ["main"]) }));
  assert.deepEqual(drain(stream, view), ["LDS +edge", "RDS +main", "CDS -gone"]);
});

test("a client that holds nothing is answered even when there is nothing", () => {
  const stream = new StreamSubscription();
  stream.receive(ask(cluster));
  stream.receive(ask(listener, { subscribe: ["*"] }));
  assert.deepEqual(drain(stream, viewOf({})), ["CDS", "LDS"]);
  stream.touchAll();
  assert.deepEqual(drain(stream, viewOf({ [cluster]: { a: "1" } })), ["CDS +a"]);
});

test("rule 7: what is not known yet is neither answered nor taken away, and comes when it is known", () => {
  const stream = subscribed();
  const known = viewOf(world);
  const view: View = {
    get: (typeUrl, name) => (typeUrl === endpoint ? "pending" : known.get(typeUrl, name)),
    names: (typeUrl) => known.names(typeUrl),
  };
  stream.touchAll();
  stream.receive(ask(endpoint, { subscribe: ["c"] }));
  assert.deepEqual(drain(stream, view), []);
  stream.touch(endpoint, ["c"]);
  assert.deepEqual(drain(stream, changed({ [endpoint]: { a: "1", b: "1", c: "1" } })), ["EDS +c"]);
});
