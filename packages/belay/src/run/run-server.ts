import { isIP } from "node:net";
import { constants, hostname } from "node:os";
import { BelayError, type Logger } from "@belay/model";
import { createBootClock, createSystemRandom } from "@belay/protocol";
import { CliFailure } from "../cli/cli-failure.ts";
import { EXIT } from "../cli/exit-code.ts";
import { readVersion } from "../cli/version.ts";
import { createProcessLogger } from "../log/process-logger.ts";
import { findFreePort, requireFreePort } from "../machine/free-port.ts";
import { readToken } from "../machine/loopback.ts";
import { parseSocketAddress, type SocketAddress } from "../machine/socket-address.ts";
import { ExecProcess } from "../process/exec-process.ts";
import { StopSignal } from "../process/stop-signal.ts";
import { findExec } from "../proxy/envoy-files.ts";
import type { Incarnation } from "./registration.ts";
import type { RunSettings } from "./run-settings.ts";
import { type LifeEnd, ServerLife } from "./server-life.ts";
import { toShellPath } from "./shell-path.ts";

/** Handed on to the command as they come; SIGINT and SIGTERM mean a drain first. */
const PASSED_ON = ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGWINCH", "SIGCONT"] as const;
const SERVER_ID = /^[A-Za-z0-9._-]{1,128}$/;
const SERVICE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const ID_RANDOM_BYTES = 4;

/** What stays the same over the lives of the command. */
interface Run {
  readonly words: readonly string[];
  readonly settings: RunSettings;
  readonly exec: string;
  readonly at: SocketAddress;
  readonly serverId: string;
  readonly stop: StopSignal;
  readonly logger: Logger;
}

/**
 * Runs a command as a server of a service until it ends, or SIGTERM or SIGINT; settles with its exit
 * code, or EXIT.leaseLost.
 */
export async function runServer(words: readonly string[], settings: RunSettings): Promise<number> {
  const logger = createProcessLogger(settings.logLevel, settings.logFormat);
  const serverId = settings.id ?? createServerId();
  if (!SERVICE_NAME.test(settings.service)) {
    throw new BelayError("usage", `--service ${settings.service} is no name of a service`);
  }
  if (!SERVER_ID.test(serverId)) {
    throw new BelayError("usage", `--id ${serverId}: 1 to 128 of A-Z a-z 0-9 . _ - are needed`);
  }
  const host = settings.advertise ?? "127.0.0.1";
  if (isIP(host) === 0) throw new BelayError("usage", `--advertise ${host} is no IP address`);
  const run: Run = {
    words,
    settings,
    exec: findExec(),
    at: { host, port: await choosePort(host, settings.port) },
    serverId,
    stop: new StopSignal(["SIGINT", "SIGTERM"]),
    logger,
  };
  return live(run, undefined);
}

/** One life after the other, as long as --restart and lost leases make it so. */
async function live(run: Run, previous: Incarnation | undefined): Promise<number> {
  const end = await liveOnce(run, previous);
  if (end.kind === "ended") return end.code;
  if (run.settings.restart !== true) return EXIT.leaseLost;
  run.logger.info({}, "the command starts anew");
  return live(run, end.last);
}

async function liveOnce(run: Run, previous: Incarnation | undefined): Promise<LifeEnd> {
  const { words, settings, at, serverId, stop, logger } = run;
  const coordinator = parseSocketAddress(
    settings.coordinator ?? `127.0.0.1:${settings.coordinatorPort}`,
    "--coordinator (BELAY_COORDINATOR)",
  );
  const command = new ExecProcess({
    exec: run.exec,
    command: words,
    env: commandEnv(run),
    stdio: "inherit",
    graceMs: settings.stopTimeout,
    onProblem: (message) => logger.warn({}, message),
  });
  const passOn = (signal: NodeJS.Signals): void => command.signal(signal);
  for (const signal of PASSED_ON) process.on(signal, passOn);
  void stop.forced.then(() => command.signal("SIGKILL", "all"));
  try {
    await started(command);
    void command.exited.then((status) => afterExit(run, command, status));
    const token = readToken("127.0.0.1", settings.tokenFile);
    return await new ServerLife({
      settings,
      serverId,
      at,
      coordinator,
      token,
      software: `belay ${readVersion()} run`,
      previous,
      command,
      stop,
      clock: createBootClock(),
      random: createSystemRandom(),
      logger,
    }).run();
  } finally {
    for (const signal of PASSED_ON) process.off(signal, passOn);
  }
}

async function started(command: ExecProcess): Promise<void> {
  try {
    await command.started;
  } catch (cause) {
    const { status } = await command.ended;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CliFailure(message, ["Is it installed, and may you execute it?"], status);
  }
}

/**
 * A command that ended well may have left a daemon, which is then the server. One that broke must
 * not leave half of itself: what is left is killed, and with it proven dead.
 */
function afterExit({ logger, stop }: Run, command: ExecProcess, status: number): void {
  const signal = signalOf(status);
  if (signal !== undefined && !stop.wanted && !command.isStopping) {
    logger.warn({ exitCode: status }, `the command was ended by ${signal}`);
  }
  if (status !== 0) command.signal("SIGKILL", "all");
  else if (!command.isEnded) logger.debug({}, "the command ended; what it started goes on");
}

/** SIGKILL of 137: 128 + its number, as shells have it. */
function signalOf(status: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
}

function commandEnv({ settings, at, serverId }: Run): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_COMPILE_CACHE: _cache, ...env } = process.env;
  return {
    ...env,
    ...(env["PATH"] === undefined ? {} : { PATH: toShellPath(env["PATH"], env) }),
    BELAY_SERVER_ID: serverId,
    BELAY_SERVICE: settings.service,
    BELAY_EDGE_URL: settings.edgeUrl ?? `http://127.0.0.1:${settings.edgePort}`,
    PORT: String(at.port),
    HOST: at.host,
  };
}

async function choosePort(host: string, wanted: number | "auto"): Promise<number> {
  if (wanted === "auto") return findFreePort(host);
  // Otherwise somebody else's server would pass our health check.
  await requireFreePort({ what: "the command", host, port: wanted, env: "--port" });
  return wanted;
}

function createServerId(): string {
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .slice(0, 64);
  const random = Buffer.from(createSystemRandom().bytes(ID_RANDOM_BYTES)).toString("hex");
  return `${host}-${process.pid}-${random}`;
}
