import { join, resolve } from "node:path";
import {
  BelayUnderTest,
  type Child,
  freePorts,
  node,
  type Reply,
  runTypeScript,
  until,
} from "@belay/testkit";

/** `lease: 3s`: I11's bound is asserted, so it has to be short. */
export const worldYaml = `
service: world
key:
  - path: /s/{key}/**
  - header: x-player-id
  - cookie: player
  - query: player
  - envelope: { field: 12, marker: belay1, use: player }
ownership: { guard: sdk, lease: 3s, drain: 2s, park: 8s }
routes:
  - match: { path: /healthz }
    respond: { status: 200, body: ok }
  - match: { prefix: / }
`;

/** The same for servers that know nothing of Belay. */
export const plainYaml = `
service: world
key:
  - path: /s/{key}/**
  - header: x-player-id
ownership: { lease: 3s, drain: 2s, park: 8s }
`;

export interface Answer {
  readonly server: string;
  readonly key: string;
  readonly epoch: string;
  readonly count: number;
  readonly path: string;
  readonly length: number;
  readonly headers: Readonly<Record<string, string>>;
}

export const parseAnswer = (reply: Reply): Answer => JSON.parse(reply.body) as Answer;

export const recordOf = (belay: BelayUnderTest): string => join(belay.data, "runs.tsv");

/** Starts a recording server with the SDK and waits until it is registered. */
export async function addServer(
  belay: BelayUnderTest,
  id: string,
  options: { env?: Record<string, string> } = {},
): Promise<Child> {
  const [port] = await freePorts(1);
  const child = belay.spawn(
    id,
    [...runTypeScript, resolve(import.meta.dirname, "recording-server.ts")],
    { env: { PORT: String(port), SERVER_ID: id, RECORD: recordOf(belay), ...options.env } },
  );
  await child.printed(/ready/);
  await registered(belay, id);
  return child;
}

const plainServer = [node, resolve(import.meta.dirname, "plain-server.mjs")];

/** Starts a plain server under `belay run` and waits until it is registered. */
export async function runPlain(
  belay: BelayUnderTest,
  id: string,
  options: { command?: readonly string[]; service?: string } = {},
): Promise<Child> {
  const { command = plainServer, service = "world" } = options;
  const args = ["run", "--service", service, "--id", id, "--port", "auto", "--", ...command];
  const child = belay.belay(id, args, { env: { RECORD: recordOf(belay) } });
  await registered(belay, id);
  return child;
}

interface ServerRow {
  readonly id: string;
  readonly shards: number;
  readonly state: string;
}

export async function servers(belay: BelayUnderTest): Promise<ServerRow[]> {
  const { servers: rows } = (await belay.api("/v1/servers")) as { servers: ServerRow[] };
  return rows;
}

/** Registered, and known to the edge: a server takes keys only when every edge can reach it. */
export async function registered(belay: BelayUnderTest, id: string): Promise<void> {
  await until(
    `${id} is registered`,
    async () => (await servers(belay)).some((row) => row.id === id),
    30_000,
  );
}

export async function gone(belay: BelayUnderTest, id: string): Promise<void> {
  await until(`${id} is gone`, async () => (await servers(belay)).every((row) => row.id !== id));
}

/** Requests each key once and answers key → server. Fails on any other status than 200. */
export async function placeKeys(
  belay: BelayUnderTest,
  keys: readonly string[],
): Promise<Map<string, string>> {
  const owners = new Map<string, string>();
  for (let at = 0; at < keys.length; at += 50) {
    await Promise.all(
      keys.slice(at, at + 50).map(async (key) => {
        const reply = await belay.get({ path: `/s/${key}/` });
        if (reply.status !== 200) throw new Error(`${key}: ${reply.status} ${reply.body}`);
        owners.set(key, parseAnswer(reply).server);
      }),
    );
  }
  return owners;
}
