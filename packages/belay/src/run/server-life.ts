import type { Clock, Logger, Random } from "@belay/model";
import type { CoordinatorAddress } from "@belay/protocol";
import { setTimeout as delay } from "node:timers/promises";
import { BelayError, isErrorCode } from "@belay/model";
import { CliFailure } from "../cli/cli-failure.ts";
import { EXIT } from "../cli/exit-code.ts";
import { ProgressLine } from "../cli/progress-line.ts";
import type { ExecEnd, ExecProcess } from "../process/exec-process.ts";
import { formatSocketAddress, type SocketAddress } from "../machine/socket-address.ts";
import type { StopSignal } from "../process/stop-signal.ts";
import { countConnections, exposedAddresses } from "./exposure.ts";
import { probeHealth } from "./health-probe.ts";
import { HealthWatch } from "./health-watch.ts";
import { type Incarnation, Registration } from "./registration.ts";
import type { RunSettings } from "./run-settings.ts";
import { serviceFileAdvice } from "./service-file-advice.ts";

const PROBE_EVERY_MS = 100;
const PROBE_TIMEOUT_MS = 1000;
const DRAIN_MS_MAX = 120_000;
/** How often a drain looks whether there is still somebody to move its keys. */
const DRAIN_CHECK_MS = 200;

export interface ServerLifeOptions {
  readonly settings: RunSettings;
  readonly serverId: string;
  /** Where it listens, as edges dial it. */
  readonly at: SocketAddress;
  readonly coordinator: CoordinatorAddress;
  readonly token: string | undefined;
  readonly software: string;
  readonly previous: Incarnation | undefined;
  readonly command: ExecProcess;
  readonly stop: StopSignal;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** How a life of the command ended. `lost`: its lease is gone, the command was stopped. */
export type LifeEnd =
  | { readonly kind: "ended"; readonly code: number }
  | { readonly kind: "lost"; readonly last: Incarnation | undefined };

type Event =
  | { readonly kind: "stop" }
  | { readonly kind: "empty"; readonly end: ExecEnd }
  | { readonly kind: "expired"; readonly reason: string }
  | { readonly kind: "silent" }
  | { readonly kind: "refused"; readonly code: string; readonly message: string };

/** One life of a command that is already started: registered once healthy, until it or the lease ends. */
export class ServerLife {
  readonly #options: ServerLifeOptions;
  readonly #ended = Promise.withResolvers<Event>();
  #registration: Registration | undefined;
  #watch: HealthWatch | undefined;
  #drained: (() => void) | undefined;
  readonly #progress = new ProgressLine();

  constructor(options: ServerLifeOptions) {
    this.#options = options;
    void options.stop.stopped.then(() => this.#ended.resolve({ kind: "stop" }));
    void options.command.ended.then((end) => this.#ended.resolve({ kind: "empty", end }));
  }

  async run(): Promise<LifeEnd> {
    const { command } = this.#options;
    try {
      const early = await Promise.race([this.#untilHealthy(), this.#ended.promise]);
      if (early !== undefined) return await this.#finish(early);
      this.#warnOfExposure();
      this.#register();
      return await this.#finish(await this.#ended.promise);
    } catch (error) {
      await command.stop(this.#options.settings.stopTimeout);
      throw error;
    } finally {
      this.#watch?.stop();
      this.#registration?.close();
      this.#progress.end();
    }
  }

  async #finish(event: Event): Promise<LifeEnd> {
    if (event.kind === "expired" || event.kind === "silent") return this.#lost(event);
    const { command, settings } = this.#options;
    switch (event.kind) {
      case "empty":
        // Without the proof the lease has to run out (S3): a process of it may still be there.
        if (event.end.proven) await this.#registration?.died(event.end.status);
        else this.#options.logger.error({}, "belay-exec is gone: nobody knows what still runs");
        return { kind: "ended", code: event.end.status };
      case "stop":
        await this.#drain();
        return { kind: "ended", code: await this.#stopAndLeave() };
      case "refused":
        await command.stop(settings.stopTimeout);
        throw refusal(event.code, event.message, settings.service);
      default:
        throw new TypeError(`no such event: ${String(event)}`);
    }
  }

  async #stopAndLeave(): Promise<number> {
    const { command, settings } = this.#options;
    const { status, proven } = await command.stop(settings.stopTimeout);
    if (proven) await this.#registration?.leave();
    return status;
  }

  async #lost(event: Event & { kind: "expired" | "silent" }): Promise<LifeEnd> {
    const { command, settings, logger, stop } = this.#options;
    const why = event.kind === "expired" ? event.reason : "the coordinator is silent";
    logger.error({ why }, "the lease is lost: the command is stopped");
    const last = this.#registration?.incarnation;
    if (event.kind === "silent") await this.#stopAndLeave();
    else await command.stop(settings.stopTimeout);
    return stop.wanted ? { kind: "ended", code: EXIT.leaseLost } : { kind: "lost", last };
  }

  async #untilHealthy(): Promise<undefined> {
    const { settings, at, command, clock } = this.#options;
    const deadlineMs = clock.now() + settings.startTimeout;
    const probe = async (): Promise<undefined> => {
      if (command.isEnded || this.#options.stop.wanted) return undefined;
      if (await probeHealth(settings.health, at, PROBE_TIMEOUT_MS)) return undefined;
      if (clock.now() > deadlineMs) {
        throw new CliFailure(
          `the command is not healthy on ${formatSocketAddress(at)} after ${settings.startTimeout / 1000} s.`,
          [
            "It must listen on the port that --port names; with --port auto that is in the variable PORT.",
            "--start-timeout gives it more time, --health says how it is checked.",
          ],
        );
      }
      await delay(PROBE_EVERY_MS);
      return probe();
    };
    await probe();
    // Whatever else has happened by now wins the race that this is in.
    if (command.isEnded || this.#options.stop.wanted) await this.#ended.promise;
    return undefined;
  }

  #register(): void {
    const { settings, at, serverId, logger, command, previous, token } = this.#options;
    const watch = new HealthWatch(settings.health, at);
    this.#watch = watch;
    const coordinator = formatSocketAddress(this.#options.coordinator);
    const registration = new Registration({
      coordinator: this.#options.coordinator,
      ...(token === undefined ? {} : { token }),
      service: settings.service,
      serverId,
      address: formatSocketAddress(at),
      zone: settings.zone,
      capacity: settings.capacity,
      ...(previous === undefined ? {} : { previous }),
      software: this.#options.software,
      clock: this.#options.clock,
      random: this.#options.random,
      logger,
      countConnections: () => countConnections(at.port),
      isHealthy: () => watch.healthy,
      onRegistered: (as) => {
        // If we are killed, belay-exec kills the command and says for us that it is dead (S8).
        command.tellSession({ coordinator, ...as, token });
        const fields = { service: settings.service, id: serverId, incarnation: as.incarnation };
        logger.info({ ...fields, address: formatSocketAddress(at) }, "registered");
      },
      onExpired: (reason) => {
        this.#ended.resolve({ kind: "expired", reason });
        // What is expired owns nothing.
        this.#drained?.();
      },
      onSilent: () => {
        const stops = settings.onLostLease === "stop";
        logger.warn({}, "the coordinator is silent for a whole lease; edges send nothing here");
        if (!stops) return;
        this.#ended.resolve({ kind: "silent" });
        this.#drained?.();
      },
      onRefused: (code, message) => this.#ended.resolve({ kind: "refused", code, message }),
      onDrainProgress: (remaining) => {
        this.#progress.show(`belay run: draining ${serverId}: ${remaining} left`);
        if (remaining === 0) this.#drained?.();
      },
    });
    this.#registration = registration;
  }

  /** M6: the server owns nothing before its command stops. */
  async #drain(): Promise<void> {
    const { logger, stop, command } = this.#options;
    const registration = this.#registration;
    if (registration?.incarnation === undefined) return;
    if (!registration.connected) {
      const text =
        "the coordinator is away: the command goes on until no edge sends to it any more";
      logger.warn({}, `${text}; a second signal ends it now`);
    }
    const drained = Promise.withResolvers<void>();
    this.#drained = drained.resolve;
    const stopNow = (why: string): void => {
      logger.warn({}, `${why}: the command stops`);
      drained.resolve();
    };
    const late = `still not drained after ${DRAIN_MS_MAX / 1000} s`;
    const timer = setTimeout(() => stopNow(late), DRAIN_MS_MAX);
    // While the coordinator is away nothing moves: there is no use in waiting longer than the lease.
    const check = setInterval(() => {
      if (registration.forsaken) stopNow("the coordinator has been away for a whole lease");
    }, DRAIN_CHECK_MS);
    registration.startDrain();
    await Promise.race([drained.promise, command.ended, stop.forced]);
    clearTimeout(timer);
    clearInterval(check);
    this.#progress.end();
  }

  #warnOfExposure(): void {
    const { settings, at, logger } = this.#options;
    const exposed = exposedAddresses(at.port);
    if (exposed.length === 0 || settings.advertise !== undefined) return;
    logger.warn(
      { port: at.port, address: exposed.join(",") },
      "the command listens beyond loopback: who reaches it there passes Belay by; let it listen on HOST (127.0.0.1), or say --advertise if edges on other machines are meant",
    );
  }
}

function refusal(code: string, message: string, service: string): Error {
  if (code === "service-unknown") {
    return new CliFailure(
      `no service is called ${service}.`,
      serviceFileAdvice(service),
      EXIT.notFound,
    );
  }
  return isErrorCode(code)
    ? new BelayError(code, message)
    : new CliFailure(`the coordinator refuses the server: ${message} [${code}]`, [], EXIT.refused);
}
