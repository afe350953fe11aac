import type { ControlPlane } from "@belay/control-plane";
import { BelayError } from "@belay/model";
import {
  type AskInit,
  type ProxyInfo,
  type ServerInfo,
  ServerState,
  type ShardInfo,
} from "@belay/protocol";
import type { ProxyView, ServerView, ShardView, StatusView } from "./schemas.ts";

type Answer = Extract<Awaited<ReturnType<ControlPlane["ask"]>>, { value: unknown }>;
type AnswerValue<C extends Answer["case"]> = Extract<Answer, { case: C }>["value"];

/** Asks the coordinator and takes the answer of that name. Rejects with a BelayError. */
export function ask<C extends Answer["case"]>(
  controlPlane: ControlPlane,
  question: AskInit,
  expected: C,
): Promise<AnswerValue<C>>;
export async function ask(
  controlPlane: ControlPlane,
  question: AskInit,
  expected: Answer["case"],
): Promise<unknown> {
  const answer = await controlPlane.ask(question);
  if (answer.case === expected) return answer.value;
  const got = answer.case ?? "nothing";
  throw new BelayError("internal", `the coordinator answers ${got}, not ${expected}`);
}

const states: Readonly<Record<ServerState, ServerView["state"]>> = {
  [ServerState.UNSPECIFIED]: "unknown",
  [ServerState.ACTIVE]: "active",
  [ServerState.DRAINING]: "draining",
};

export const toServerView = (info: ServerInfo): ServerView => ({
  service: info.service,
  id: info.serverId,
  incarnation: String(info.incarnation),
  address: info.address,
  zone: info.zone,
  state: states[info.state] ?? "unknown",
  guarded: info.guarded,
  connected: info.connected,
  shards: info.shards,
  capacity: info.capacity,
  leaseLeftMs: info.leaseLeftMs,
  requestsPerSecond: info.requestsPerSecond,
  openStreams: info.openStreams,
});

const shardStates: readonly ShardView["state"][] = ["free", "owned", "moving"];

export const toShardView = (info: ShardInfo): ShardView => ({
  service: info.service,
  key: info.key,
  state: shardStates.find((state) => state === info.state) ?? "free",
  server: info.serverId,
  address: info.address,
  incarnation: String(info.incarnation),
  epoch: String(info.epoch),
  to: info.toServerId,
});

export const toProxyCoordinatorView = (info: ProxyInfo): NonNullable<ProxyView["coordinator"]> => ({
  connected: info.connected,
  processId: Buffer.from(info.processId).toString("hex"),
  dropped: String(info.dropped),
  behind: String(info.behind),
  leaseLeftMs: info.leaseLeftMs,
  mapEntries: Number(info.mapEntries),
  mapBytes: Number(info.mapBytes),
  parked: info.parked,
  openStreams: info.openStreams,
  software: info.software,
});

/** The coordinator's half of `status`; when it is away, why. */
export async function toCoordinatorStatus(
  controlPlane: ControlPlane,
): Promise<StatusView["coordinator"]> {
  const { connected, address, problem } = controlPlane.link.status();
  if (!connected) return { connected, address, problem };
  try {
    const status = await ask(controlPlane, { case: "status", value: {} }, "status");
    return {
      connected,
      address,
      problem,
      generation: Buffer.from(status.generation).toString("hex"),
      term: String(status.term),
      revision: String(status.revision),
      services: status.services,
      servers: status.servers,
      shards: String(status.shards),
      proxies: status.proxies,
      moving: status.moving,
      holdMs: Number(status.holdUntilMs),
      store: status.store,
    };
  } catch (cause) {
    return { connected, address, problem: cause instanceof Error ? cause.message : String(cause) };
  }
}
