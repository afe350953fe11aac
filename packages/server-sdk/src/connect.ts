import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { BelayError, isErrorCode, type Clock, type Logger, type Random } from "@belay/model";
import { type CoordinatorAddress, createBootClock, createSystemRandom } from "@belay/protocol";
import { Belay } from "./belay.ts";
import { createStderrLogger } from "./stderr-logger.ts";

const COORDINATOR_DEFAULT = "127.0.0.1:8801";

export interface ConnectOptions {
  /** The service's name, as its service file has it. */
  readonly service: string;
  /** `ip:port` of this server, as edges dial it. */
  readonly address: string;
  /** `host:port`; by default BELAY_COORDINATOR, else 127.0.0.1:8801. */
  readonly coordinator?: string;
  /** Unique within the service; by default BELAY_SERVER_ID, else host-pid-random. */
  readonly serverId?: string;
  readonly zone?: string;
  /** Keys that it takes at most; 0, the default: no limit. */
  readonly capacity?: number;
  /** Needed where the coordinator asks for one; by default what the file BELAY_TOKEN_FILE holds. */
  readonly token?: string;
  /** Longest time that `drain` waits for keys to move away; 60,000 by default. */
  readonly drainMs?: number;
  /** Longest time that an onRelease hook may take; 10,000 by default. */
  readonly releaseMs?: number;
  /** pino fits. By default warnings and errors go to stderr. */
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Registers this process as a server. Waits for the coordinator as long as it takes; rejects with a
 * BelayError when it refuses the registration for good (`guard-mismatch`, `server-id-taken` …).
 */
export async function connect(options: ConnectOptions): Promise<Belay> {
  const random = options.random ?? createSystemRandom();
  const clock = options.clock ?? createBootClock();
  const logger = options.logger ?? createStderrLogger();
  const belay = new Belay({
    coordinator: parseAddress(
      options.coordinator ?? process.env["BELAY_COORDINATOR"] ?? COORDINATOR_DEFAULT,
    ),
    token: options.token ?? readToken(process.env["BELAY_TOKEN_FILE"]),
    session: {
      service: options.service,
      serverId: options.serverId ?? process.env["BELAY_SERVER_ID"] ?? defaultServerId(random),
      address: options.address,
      zone: options.zone ?? "",
      capacity: options.capacity ?? 0,
    },
    drainMsMax: options.drainMs ?? 60_000,
    releaseMsMax: options.releaseMs ?? 10_000,
    clock,
    random,
    logger,
  });
  const refused = await belay.registered();
  if (refused === undefined) return belay;
  await belay.close();
  const code = isErrorCode(refused.code) ? refused.code : "bad-request";
  throw new BelayError(code, refused.message, { details: { service: options.service } });
}

function readToken(file: string | undefined): string {
  return file === undefined || file === "" ? "" : readFileSync(file, "utf8").trim();
}

function parseAddress(text: string): CoordinatorAddress {
  const at = text.lastIndexOf(":");
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  const port = Number(text.slice(at + 1));
  if (at < 1 || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new BelayError("usage", `"${text}" is no address of a coordinator: write host:port`);
  }
  return { host, port };
}

/** Names the process for people, and never the same twice. */
function defaultServerId(random: Random): string {
  const suffix = Buffer.from(random.bytes(3)).toString("hex");
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .slice(0, 64);
  return `${host}-${process.pid}-${suffix}`;
}
