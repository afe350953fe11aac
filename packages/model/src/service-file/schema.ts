import { z } from "zod";
import { keyEntrySchema } from "./key-schema.ts";
import { choice, duration, flag, integer, matching, size, text, wrong } from "./leaf.ts";

const SECOND = 1000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MIB = 1_048_576;
export const HOSTS_MAX = 100;
export const ROUTES_MAX = 200;

/** The name of a service, of its file and of its upstream cluster. */
export const serviceNamePattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

const hostPattern =
  /^(\*|(\*\.)?[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*)$/;

const host = text("play.example.com", (value) => {
  const name = value.toLowerCase();
  if (name.length <= 253 && hostPattern.test(name)) return { ok: true, value: name };
  return /:\d+$/.test(name)
    ? wrong(
        `"${value.slice(0, 80)}" has a port`,
        `write ${name.replace(/:\d+$/, "")}: a host is matched on every port`,
      )
    : wrong(
        `"${value.slice(0, 80)}" is no host`,
        'write a name, "*.example.com", or "*" (in quotes)',
      );
});

const absolutePath = text("/rpc", (value) =>
  /^\/[\x21-\x7e]{0,511}$/.test(value) && !/[?#*{}]/.test(value)
    ? { ok: true, value }
    : wrong(
        `"${value.slice(0, 80)}" is no absolute path of at most 512 characters without ?, #, * and braces`,
        "write a path like /rpc",
      ),
);

const websocket = z.strictObject({
  enabled: flag().optional(),
  idle: duration({ min: SECOND, max: 7 * DAY }).optional(),
});

const routeSchema = z.strictObject({
  match: z.strictObject({ path: absolutePath.optional(), prefix: absolutePath.optional() }),
  respond: z
    .strictObject({
      status: integer({ min: 200, max: 599 }),
      body: text("ok", (value) =>
        value.length <= 4096
          ? { ok: true, value }
          : wrong("the body is longer than 4096 characters", "shorten it"),
      ).optional(),
      "content-type": matching({
        pattern: /^[\x20-\x7e]{1,128}$/,
        says: "a media type",
        example: "text/plain",
      }).optional(),
    })
    .optional(),
  timeout: duration({ min: 0, max: DAY }).optional(),
  key: z.array(keyEntrySchema).optional(),
  websocket: websocket.optional(),
});

const ownershipSchema = z.strictObject({
  guard: choice("none", "sdk").optional(),
  sharding: choice("key").optional(),
  placement: choice("least-loaded", "spread", "pack", "rendezvous").optional(),
  idle: duration({ min: SECOND, max: 30 * DAY }).optional(),
  lease: duration({ min: SECOND, max: DAY }).optional(),
  believe: duration({ min: SECOND, max: DAY }).optional(),
  drain: duration({ min: 1, max: HOUR / 2 }).optional(),
  park: duration({ min: 1, max: HOUR }).optional(),
  "moves-per-second": integer({ min: 1, max: 100_000 }).optional(),
  "unknown-key": integer({ min: 400, max: 599 }).optional(),
});

/** The service file after YAML, with `key` always a list (`none` is the empty one). */
export const serviceFileSchema = z.strictObject({
  service: matching({
    pattern: serviceNamePattern,
    says: "1-63 of a-z, 0-9 and inner -",
    example: "world",
  }),
  team: matching({
    pattern: /^[^\p{Cc}]{1,63}$/u,
    says: "1-63 characters",
    example: "overworld",
  }).optional(),
  hosts: z.array(host).optional(),
  servers: z
    .strictObject({
      registered: flag().optional(),
      protocol: choice("http1", "h2").optional(),
    })
    .optional(),
  key: z.array(keyEntrySchema),
  ownership: ownershipSchema.optional(),
  routes: z.array(routeSchema).optional(),
  body: z
    .strictObject({
      replay: size({ min: 0, max: 64 * MIB }).optional(),
      scan: size({ min: 64, max: MIB }).optional(),
    })
    .optional(),
  websocket: websocket
    .extend({ "close-code": integer({ min: 1000, max: 4999 }).optional() })
    .optional(),
});

export type RawService = z.infer<typeof serviceFileSchema>;
export type RawRoute = z.infer<typeof routeSchema>;
export type RawOwnership = z.infer<typeof ownershipSchema>;
