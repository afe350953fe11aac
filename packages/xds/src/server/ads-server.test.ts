import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials, type ServiceError } from "@grpc/grpc-js";
import { decodeEnvoy, encodeEnvoy, typeUrls } from "@belay/envoy-api";
import {
  DeltaDiscoveryRequestSchema,
  type DeltaDiscoveryResponse,
  DeltaDiscoveryResponseSchema,
} from "@belay/envoy-api/gen/service/discovery/v3/discovery";
import type { Logger } from "@belay/model";
import type { Draft } from "../resources/resource.ts";
import { createSnapshot } from "../resources/snapshot.ts";
import { AdsServer, type AdsServerOptions } from "./ads-server.ts";
import { edgeListeners } from "./edge-listeners.ts";

const silent = (): void => {};
const logger: Logger = { debug: silent, info: silent, warn: silent, error: silent };
const options = { module: null, accessLog: "off" } as const;
const method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const asIs = (bytes: Buffer): Buffer => bytes;

type Ask = MessageInitShape<typeof DeltaDiscoveryRequestSchema>;

const cleanups: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const startServer = async (more: Partial<AdsServerOptions> = {}) => {
  const server = new AdsServer({ logger, ...more });
  cleanups.push(() => server.close());
  return { server, port: await server.listen("127.0.0.1", 0) };
};

/** A client that talks the protocol by hand; answers come one by one. */
class Stream {
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  readonly #got: DeltaDiscoveryResponse[] = [];
  #wake: () => void = silent;
  readonly ended: Promise<ServiceError>;

  constructor(port: number) {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    this.#call = client.makeBidiStreamRequest(method, asIs, asIs);
    const { promise, resolve } = Promise.withResolvers<ServiceError>();
    this.ended = promise;
    this.#call.on("error", resolve);
    this.#call.on("data", (bytes: Buffer) => {
      this.#got.push(fromBinary(DeltaDiscoveryResponseSchema, bytes));
      this.#wake();
    });
    cleanups.push(() => {
      this.#call.cancel();
      client.close();
    });
  }

  ask(request: Ask): void {
    this.raw(
      Buffer.from(
        toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)),
      ),
    );
  }

  raw(bytes: Buffer): void {
    this.#call.write(bytes);
  }

  /** The next response, acknowledged. */
  async next(): Promise<DeltaDiscoveryResponse> {
    while (this.#got.length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    const response = this.#got.shift();
    if (response === undefined) throw new Error("nothing came");
    this.ask({ typeUrl: response.typeUrl, responseNonce: response.nonce });
    return response;
  }

  get waiting(): number {
    return this.#got.length;
  }
}

const node = (id: string, more: Record<string, unknown> = {}): Ask["node"] => ({
  id,
  cluster: "edge",
  ...more,
});

const cluster = (name: string): Draft => ({
  typeUrl: typeUrls.cluster,
  name,
  value: encodeEnvoy(typeUrls.cluster, { name }),
  sources: [],
});

const namesOf = (response: DeltaDiscoveryResponse): string[] =>
  response.resources.map((resource) => resource.name);

test("rule 7: a pool without a snapshot is waited for, and shown as not served", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { server, port } = await startServer({ onProxyChange: () => resolve() });
  const stream = new Stream(port);
  stream.ask({ node: node("p1"), typeUrl: typeUrls.cluster });
  server.setSnapshot("other", createSnapshot([cluster("x")]));
  stream.ask({ typeUrl: typeUrls.listener });
  while (server.status().length === 0) await new Promise(setImmediate);
  assert.equal(server.status()[0]?.served, false);
  server.setSnapshot("edge", createSnapshot([cluster("a")]));
  assert.deepEqual(namesOf(await stream.next()), ["a"]);
  await stream.next();
  await promise;
  assert.equal(server.status()[0]?.inSync, true);
});

test("each proxy gets the listener on its own port, one without a port none", async () => {
  const { server, port } = await startServer();
  server.setSnapshot("edge", createSnapshot([]), edgeListeners(options));
  for (const edgePort of [8080, 8081]) {
    const stream = new Stream(port);
    const metadata = { edge: { address: "127.0.0.1", port: edgePort } };
    stream.ask({ node: node(`p${edgePort}`, { metadata }), typeUrl: typeUrls.listener });
    const response = await stream.next();
    const bytes = response.resources[0]?.resource?.value ?? new Uint8Array();
    assert.match(JSON.stringify(decodeEnvoy(typeUrls.listener, bytes)), new RegExp(`:${edgePort}`));
  }
  const bare = new Stream(port);
  bare.ask({ node: node("bare"), typeUrl: typeUrls.listener });
  assert.deepEqual(namesOf(await bare.next()), []);
});

test("rule 9: endpoints go to the pool that uses them, and not before they are known", async () => {
  const { server, port } = await startServer();
  server.setSnapshot("edge", createSnapshot([cluster("a")]));
  server.setSnapshot("other", createSnapshot([cluster("b")]));
  const stream = new Stream(port);
  stream.ask({
    node: node("p1"),
    typeUrl: typeUrls.endpoint,
    resourceNamesSubscribe: ["a", "b"],
  });
  const unknown = await stream.next();
  assert.deepEqual([namesOf(unknown), unknown.removedResources], [[], ["b"]]);
  server.setEndpoints("other", "b", ["10.0.0.1:80"]);
  server.setEndpoints("edge", "b", ["10.0.0.1:80"]);
  server.setEndpoints("edge", "a", []);
  assert.deepEqual(namesOf(await stream.next()), ["a"], "none is an answer too");
  server.setEndpoints("edge", "a", []);
  server.setEndpoints("edge", "a", ["10.0.0.1:80"]);
  assert.deepEqual(namesOf(await stream.next()), ["a"]);
  assert.equal(stream.waiting, 0);
  assert.throws(() => server.setEndpoints("edge", "a", ["localhost:80"]), /localhost:80/);
});

test("a stream that does not say who it is, or sends rubbish, ends; others go on", async () => {
  const { server, port } = await startServer();
  server.setSnapshot("edge", createSnapshot([cluster("a")]));
  const good = new Stream(port);
  good.ask({ node: node("good"), typeUrl: typeUrls.cluster });
  await good.next();
  const nameless = new Stream(port);
  nameless.ask({ typeUrl: typeUrls.cluster });
  assert.match((await nameless.ended).message, /node id/);
  const rubbish = new Stream(port);
  rubbish.raw(Buffer.from([0xff, 0xff, 0xff]));
  await rubbish.ended;
  server.setSnapshot("edge", createSnapshot([cluster("a"), cluster("b")]));
  assert.deepEqual(namesOf(await good.next()), ["b"]);
  assert.deepEqual(
    server.status().map(({ id }) => id),
    ["good"],
  );
});

test("rule 10: a stream that names too much is ended", async () => {
  const { port } = await startServer();
  const stream = new Stream(port);
  const names = Array.from({ length: 100_001 }, (_, index) => String(index));
  stream.ask({ node: node("p1"), typeUrl: typeUrls.endpoint, resourceNamesSubscribe: names });
  assert.match((await stream.ended).message, /RESOURCE_EXHAUSTED/);
});

test("at close proxies are told to come again", async () => {
  const { server, port } = await startServer();
  const stream = new Stream(port);
  stream.ask({ node: node("p1"), typeUrl: typeUrls.cluster });
  while (server.status().length === 0) await new Promise(setImmediate);
  const closing = server.close();
  assert.match((await stream.ended).message, /UNAVAILABLE/);
  await closing;
});
