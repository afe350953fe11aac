import { mkdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "@belay/model";
import { createProcessLogger } from "../log/process-logger.ts";
import { openDataFolder } from "../machine/data-folder.ts";
import { requireFreePort } from "../machine/free-port.ts";
import { readToken } from "../machine/loopback.ts";
import { parseSocketAddress } from "../machine/socket-address.ts";
import { ExecProcess } from "../process/exec-process.ts";
import { startHealthEndpoint } from "../process/health-endpoint.ts";
import { StopSignal } from "../process/stop-signal.ts";
import { createBootstrapText } from "./bootstrap.ts";
import { drainEdge } from "./drain.ts";
import { EnvoyAdmin } from "./envoy-admin.ts";
import { findEnvoy, findExec, findModule, requireEnvoyVersion } from "./envoy-files.ts";
import type { ProxySettings } from "./proxy-settings.ts";

const METRICS_PORT = 8804;
const PROBE_MS = 50;
const STILL_WAITING_MS = 5000;
const STOP_MS = 5000;

/**
 * Runs an edge until SIGTERM, SIGINT or Envoy's end: Envoy drains first and stops last. Settles with
 * Envoy's exit code.
 */
export async function runProxy(settings: ProxySettings): Promise<number> {
  const logger = createProcessLogger(settings.logLevel, settings.logFormat);
  const stop = new StopSignal();
  const exec = findExec();
  const envoy = findEnvoy(settings.envoy);
  const module = findModule(settings.module);
  readToken(settings.bind, settings.tokenFile);
  await requireEnvoyVersion(envoy);
  await requirePorts(settings);
  const name = settings.name ?? `edge-${hostname()}-${process.pid}`;
  const file = writeBootstrap(settings, name);
  if (stop.wanted) return 0;
  const command = new ExecProcess({
    exec,
    command: [envoy, "-c", file, ...envoyFlags(settings)],
    env: { ...process.env, ENVOY_DYNAMIC_MODULES_SEARCH_PATH: dirname(module) },
    stdio: "inherit",
    graceMs: STOP_MS,
    onProblem: (message) => logger.warn({}, message),
  });
  void stop.forced.then(() => command.signal("SIGKILL", "all"));
  const admin = new EnvoyAdmin(settings.envoyAdminPort);
  const endpoint = await startHealthEndpoint({
    host: settings.bind,
    port: settings.metricsPort,
    fallbackPort: METRICS_PORT,
    command: "belay proxy",
    logger,
    health: async () => ({ ok: await admin.isReady().catch(() => false), role: "edge", name }),
    metrics: async () => admin.metrics(),
  });
  const over = Promise.race([stop.stopped, command.ended.then(() => undefined)]);
  void sayWhenReady({
    admin,
    settings,
    name,
    logger,
    isOver: () => command.isEnded || stop.wanted,
  });
  if ((await over) !== undefined) {
    logger.info({ name }, "draining");
    await drainEdge(admin, settings.drainTime, logger);
    if (settings.logLevel !== "debug") await admin.logErrorsOnly().catch(() => undefined);
  }
  const { status } = await command.stop(STOP_MS);
  endpoint.close();
  if (!stop.wanted) logger.error({ status }, "Envoy ended by itself; its words are above");
  return status;
}

async function requirePorts(settings: ProxySettings): Promise<void> {
  await Promise.all([
    requireFreePort({
      what: "the edge",
      host: settings.bind,
      port: settings.edgePort,
      env: "BELAY_EDGE_PORT",
    }),
    requireFreePort({
      what: "Envoy's admin interface",
      host: "127.0.0.1",
      port: settings.envoyAdminPort,
      env: "BELAY_ENVOY_ADMIN_PORT",
    }),
  ]);
}

function writeBootstrap(settings: ProxySettings, name: string): string {
  const folder = join(openDataFolder(settings.data), "proxy");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${name.replaceAll(/[^A-Za-z0-9._-]/g, "-")}.json`);
  const text = createBootstrapText({
    name,
    pool: settings.pool,
    edge: { host: settings.bind, port: settings.edgePort },
    envoyAdminPort: settings.envoyAdminPort,
    coordinator: parseSocketAddress(
      settings.coordinator ?? `127.0.0.1:${settings.coordinatorPort}`,
      "--coordinator (BELAY_COORDINATOR)",
    ),
    xds: parseSocketAddress(settings.xds ?? `127.0.0.1:${settings.xdsPort}`, "--xds (BELAY_XDS)"),
    maxWaitMs: settings.maxWait,
    tokenFile: settings.tokenFile === undefined ? undefined : resolve(settings.tokenFile),
    hugePages: settings.hugePages === "auto",
  });
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

function envoyFlags(settings: ProxySettings): string[] {
  const level = settings.logLevel === "warn" ? "warning" : settings.logLevel;
  const format =
    settings.logFormat === "json"
      ? '{"level":"%l","time":"%Y-%m-%dT%T.%e","thread":"%t","name":"%n","msg":"%j"}'
      : "%T.%e %^%L%$ %n: %v";
  return [
    "--disable-hot-restart",
    "--drain-time-s",
    String(Math.ceil(settings.drainTime / 1000)),
    "--drain-strategy",
    "immediate",
    "--log-level",
    // Envoy tells at "info" what only its developers read.
    level === "info" ? "warning" : level,
    "--log-format",
    format,
    ...(settings.concurrency === undefined ? [] : ["--concurrency", String(settings.concurrency)]),
  ];
}

interface ReadyWatch {
  readonly admin: EnvoyAdmin;
  readonly settings: ProxySettings;
  readonly name: string;
  readonly logger: Logger;
  isOver(): boolean;
}

/** Says once that the edge is open, and before that, now and then, that it waits and for whom. */
async function sayWhenReady(watch: ReadyWatch): Promise<void> {
  const { admin, settings, name, logger } = watch;
  let saidMs = performance.now();
  const probe = async (): Promise<void> => {
    if (watch.isOver()) return;
    if (await admin.isReady().catch(() => false)) {
      logger.info({ name, address: settings.bind, port: settings.edgePort }, "the edge is open");
      return;
    }
    if (performance.now() - saidMs > STILL_WAITING_MS) {
      saidMs = performance.now();
      const xds = settings.xds ?? `127.0.0.1:${settings.xdsPort}`;
      const coordinator = settings.coordinator ?? `127.0.0.1:${settings.coordinatorPort}`;
      const text = "the edge waits for its configuration and the coordinator's first snapshot";
      logger.warn({ xds, coordinator }, text);
    }
    await delay(PROBE_MS);
    await probe();
  };
  await probe();
}
