import { z } from "zod";

/** A uint64 of the protocol (epoch, revision, incarnation): decimal digits, as JSON numbers end at 2^53. */
const uint64 = z.string().regex(/^\d{1,20}$/);
const count = z.int().nonnegative();
const serviceName = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
const serverId = z.string().regex(/^[A-Za-z0-9._-]{1,128}$/);
const key = z.string().min(1).max(256);
/** A key as it is asked for: the routes judge it, so that a bad one is `bad-key`. */
const wantedKey = z.string().describe("1-256 bytes of UTF-8 without control characters");

export const problemSchema = z.strictObject({
  severity: z.enum(["error", "warning"]),
  file: z.string(),
  line: z.int().positive(),
  column: z.int().positive(),
  path: z.string(),
  what: z.string(),
  fix: z.string(),
});

/** Every answer that is not 2xx. `code` is one of docs/reference/errors.md. */
export const errorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  problems: z.array(problemSchema),
});

/** A proxy that refused what the control plane sent, tied to the line that caused it. */
export const nackSchema = z.strictObject({
  proxy: z.string(),
  type: z.string(),
  resources: z.array(z.string()),
  message: z.string(),
  file: z.string(),
  line: count,
  /** When, in milliseconds since 1970. */
  atMs: count,
});

export const serviceSchema = z.strictObject({
  name: serviceName,
  file: z.string(),
  line: z.int().positive(),
  /** `serving`: as in the file. `last-good`: the file has problems, its last good text is served. `refused`: never was good. */
  state: z.enum(["serving", "last-good", "refused"]),
  team: z.string().optional(),
  hosts: z.array(z.string()),
  /** The key places in words, in order. */
  keys: z.array(z.string()),
  guard: z.enum(["none", "sdk"]),
  placement: z.string(),
  leaseMs: count,
  servers: count,
  /** Content hash of the text that is served; empty if none is. */
  version: z.string(),
  problems: z.array(problemSchema),
  nacks: z.array(nackSchema),
});

export const servicesSchema = z.strictObject({
  services: z.array(serviceSchema),
  /** Of files that name no service. */
  problems: z.array(problemSchema),
  folder: z.strictObject({
    path: z.string(),
    /** False: a folder of yours (`--services`), `apply` refuses. */
    managed: z.boolean(),
    /** Not empty: what keeps the control plane from following the folder; the last good state is served. */
    alarm: z.string(),
  }),
});

export const checkRequestSchema = z.strictObject({
  files: z
    .array(z.strictObject({ file: z.string().min(1).max(1024), yaml: z.string().max(262_144) }))
    .min(1)
    .max(100),
});
export const checkSchema = z.strictObject({
  ok: z.boolean(),
  services: z.array(serviceName),
  problems: z.array(problemSchema),
});

export const applyRequestSchema = z.strictObject({
  yaml: z.string().max(262_144),
  /** Name of the file that the text comes from, for problems. */
  file: z.string().min(1).max(1024).optional(),
});
export const applySchema = z.strictObject({
  /** False: the same text was there. */
  changed: z.boolean(),
  file: z.string(),
  service: serviceSchema,
});
export const removedSchema = z.strictObject({ removed: serviceName });

export const serverSchema = z.strictObject({
  service: serviceName,
  id: z.string(),
  incarnation: uint64,
  address: z.string(),
  zone: z.string(),
  state: z.enum(["active", "draining", "unknown"]),
  guarded: z.boolean(),
  connected: z.boolean(),
  shards: count,
  /** 0: no limit. */
  capacity: count,
  leaseLeftMs: count,
  requestsPerSecond: z.number(),
  openStreams: count,
});
export const serversSchema = z.strictObject({ servers: z.array(serverSchema) });

export const shardSchema = z.strictObject({
  service: serviceName,
  key,
  state: z.enum(["free", "owned", "moving"]),
  /** Empty while nobody owns it. */
  server: z.string(),
  address: z.string(),
  incarnation: uint64,
  epoch: uint64,
  /** While moving, if asked for. */
  to: z.string(),
});
export const shardsSchema = z.strictObject({
  shards: z.array(shardSchema),
  /** `after` of the next page; absent on the last. */
  next: z.string().optional(),
});

export const proxySchema = z.strictObject({
  name: z.string(),
  pool: z.string(),
  /** As the coordinator sees its module; null: not connected to it, or the coordinator is away. */
  coordinator: z
    .strictObject({
      connected: z.boolean(),
      processId: z.string(),
      dropped: uint64,
      behind: uint64,
      leaseLeftMs: count,
      mapEntries: count,
      mapBytes: count,
      parked: count,
      openStreams: count,
      software: z.string(),
    })
    .nullable(),
  /** As the xDS server sees it; null: no stream. */
  xds: z
    .strictObject({
      connected: z.boolean(),
      envoyVersion: z.string(),
      /** Where its stream comes from, `IP:port`. */
      peer: z.string(),
      /** It has confirmed all that it should hold. */
      inSync: z.boolean(),
      /** Resources handed over and confirmed, by type (Cluster, ClusterLoadAssignment, Listener …). */
      types: z.array(z.strictObject({ type: z.string(), sent: count, acked: count })),
      nacks: z.array(nackSchema),
    })
    .nullable(),
});
export const proxiesSchema = z.strictObject({
  proxies: z.array(proxySchema),
  /** Not empty: why the coordinator's half is missing. */
  coordinatorProblem: z.string(),
});

export const explainRequestSchema = z.strictObject({
  method: z.string().regex(/^[A-Za-z]{1,32}$/),
  /** Absolute, or a path with a Host header. */
  url: z.string().min(1).max(8192),
  /** In order; names may repeat. */
  headers: z
    .array(z.tuple([z.string(), z.string()]))
    .max(100)
    .default([]),
});
export const explainSchema = z.strictObject({
  /** How the edge would go about the request. */
  outcome: z.enum(["forward", "need-body", "respond", "refuse", "no-service"]),
  host: z.string(),
  path: z.string(),
  /** Null with `no-service`. */
  service: serviceName.nullable(),
  route: z
    .strictObject({ match: z.string(), file: z.string(), line: z.int().positive() })
    .nullable(),
  /** The key, if one was found. */
  key: key.nullable(),
  /** The server id, if the path names one. */
  server: z.string().nullable(),
  /** The place that gave it, in words. */
  from: z.string().nullable(),
  /** A reason of docs/reference/errors.md, where the edge would answer itself. */
  reason: z.string().nullable(),
  status: z.int().nullable(),
  /** Path that the server sees. */
  upstreamPath: z.string(),
  /** One line per step, for people. */
  steps: z.array(z.string()),
  /** Who owns the key now; null if there is no key or the coordinator is away. */
  shard: shardSchema.nullable(),
});

export const moveRequestSchema = z.strictObject({
  service: serviceName,
  key: wantedKey,
  to: serverId.optional(),
});
export const moveSchema = z.strictObject({ revision: uint64, from: z.string() });

export const drainRequestSchema = z.strictObject({
  server: serverId,
  /** Needed if several services have a server of this id. */
  service: serviceName.optional(),
});
export const drainSchema = z.strictObject({
  service: serviceName,
  server: z.string(),
  remaining: count,
});

export const statusSchema = z.strictObject({
  version: z.string(),
  controlPlane: z.strictObject({
    upMs: count,
    /** `starting`: nothing to serve yet, proxies wait (xDS holds its answers). */
    state: z.enum(["starting", "serving"]),
    /** Where the endpoints come from. `last-known`: from before this start, until the coordinator has spoken. */
    endpoints: z.enum(["none", "last-known", "live"]),
    services: count,
    refused: count,
    nacks: count,
    proxies: count,
    alarm: z.string(),
  }),
  coordinator: z.strictObject({
    connected: z.boolean(),
    address: z.string(),
    /** Not empty: why there is no connection. */
    problem: z.string(),
    generation: z.string().optional(),
    term: uint64.optional(),
    revision: uint64.optional(),
    services: count.optional(),
    servers: count.optional(),
    shards: uint64.optional(),
    proxies: count.optional(),
    moving: count.optional(),
    /** How long rules S4 and P6 still wait. */
    holdMs: count.optional(),
    store: z.string().optional(),
  }),
});

export const healthSchema = z.strictObject({
  ok: z.literal(true),
  role: z.literal("control-plane"),
});

export const nameParamsSchema = z.strictObject({ name: serviceName });
export const serversQuerySchema = z.strictObject({ service: serviceName.optional() });
export const shardsQuerySchema = z.strictObject({
  service: serviceName,
  server: serverId.optional(),
  /** Exclusive, in byte order of the key. */
  after: wantedKey.optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});
export const ownerQuerySchema = z.strictObject({ service: serviceName, key: wantedKey });

export type AdminError = z.infer<typeof errorSchema>;
export type ServiceView = z.infer<typeof serviceSchema>;
export type ServicesView = z.infer<typeof servicesSchema>;
export type CheckView = z.infer<typeof checkSchema>;
export type ApplyView = z.infer<typeof applySchema>;
export type ServerView = z.infer<typeof serverSchema>;
export type ShardView = z.infer<typeof shardSchema>;
export type ShardsView = z.infer<typeof shardsSchema>;
export type ProxyView = z.infer<typeof proxySchema>;
export type ProxiesView = z.infer<typeof proxiesSchema>;
export type ExplainRequest = z.infer<typeof explainRequestSchema>;
export type ExplainView = z.infer<typeof explainSchema>;
export type MoveView = z.infer<typeof moveSchema>;
export type DrainView = z.infer<typeof drainSchema>;
export type StatusView = z.infer<typeof statusSchema>;
