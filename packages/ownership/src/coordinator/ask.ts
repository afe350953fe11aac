import { ServerState } from "@belay/protocol";
import type { FrameOf, InitOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { beginDrain } from "./drain.ts";
import { smallestKeys } from "./key-order.ts";
import { beginMove } from "./moves.ts";
import { holdLeftMs } from "./peers.ts";
import type { ProblemCode } from "./problem.ts";
import { leaseLeftMs } from "./register.ts";
import { canTake, place, serverState, shardState } from "./shards.ts";
import type { Peer, Proxy, Server, Service, Shard } from "./state.ts";
import { SERVER_TABLE, SHARD_TABLE } from "./transitions.ts";

type Question = NonNullable<FrameOf<"ask">["question"]>;
type QuestionOf<Case> =
  Extract<Question, { case: Case }> extends { value: infer Value } ? Value : never;
type AnswerBody = NonNullable<InitOf<"answer">["answer"]>;

/** An order or question that cannot be fulfilled, as `Answer.problem_code` and message. */
interface Refused {
  readonly code: ProblemCode;
  readonly message: string;
}

/** What an answer is made of once all that was staged before it is committed. */
type Reply = { readonly refused: Refused } | { readonly reply: () => AnswerBody };

/** What operators ask and order. */
export function ask(core: Core, peer: Peer, frame: FrameOf<"ask">): void {
  const result = answerTo(core, frame.question);
  core.answer(() => {
    const { requestId } = frame;
    const value =
      "refused" in result
        ? { requestId, problemCode: result.refused.code, problemMessage: result.refused.message }
        : { requestId, answer: result.reply() };
    core.send(peer, { case: "answer", value });
  });
}

function answerTo(core: Core, question: Question): Reply {
  const { case: kind, value } = question;
  if (kind === "owner") return askOwner(core, value);
  if (kind === "servers") return askServers(core, value);
  if (kind === "shards") return askShards(core, value);
  if (kind === "move") return askMove(core, value);
  if (kind === "drain") return askDrain(core, value);
  if (kind === "status") return { reply: () => ({ case: "status", value: status(core) }) };
  if (kind === "proxies") {
    return { reply: () => ({ case: "proxies", value: { proxies: proxyInfos(core) } }) };
  }
  return refused("bad-request", "this coordinator does not know the kind of question");
}

const refused = (code: ProblemCode, message: string): Reply => ({ refused: { code, message } });

const unknownService = (name: string): Reply =>
  refused("service-unknown", `no service "${name}" is defined`);

function askOwner(core: Core, { service: name, key }: QuestionOf<"owner">): Reply {
  const service = core.services.get(name);
  if (service === undefined) return unknownService(name);
  return {
    reply: () => {
      const shard = service.shards.get(key);
      const value = shard === undefined ? freeInfo(name, key) : shardInfo(core, shard);
      return { case: "owner", value };
    },
  };
}

const freeInfo = (service: string, key: string): ShardInfo => ({ service, key, state: "free" });

type ShardInfo = NonNullable<Extract<AnswerBody, { case: "owner" }>["value"]>;

function shardInfo(core: Core, shard: Shard): ShardInfo {
  const state = shardState(core, shard);
  const owner = core.servers.get(shard.owner);
  // What an ended owner left has no owner: the next resolve places it.
  if (state === "orphaned") return freeInfo(shard.service.row.name, shard.key);
  return {
    service: shard.service.row.name,
    key: shard.key,
    state: state === "owned" ? "owned" : "moving",
    serverId: owner?.row.serverId ?? "",
    address: owner?.row.address ?? "",
    incarnation: shard.owner,
    epoch: shard.epoch,
    toServerId: shard.move?.to ?? "",
  };
}

function askServers(core: Core, { service: name }: QuestionOf<"servers">): Reply {
  const service = core.services.get(name);
  if (name !== "" && service === undefined) return unknownService(name);
  return {
    reply: () => {
      const servers = Array.from((service?.servers ?? core.servers).values());
      return {
        case: "servers",
        value: { servers: servers.map((server) => serverInfo(core, server)) },
      };
    },
  };
}

const serverInfo = (core: Core, server: Server) => ({
  service: server.row.service,
  serverId: server.row.serverId,
  incarnation: server.row.incarnation,
  address: server.row.address,
  zone: server.row.zone,
  state: server.row.state,
  guarded: server.row.guarded,
  connected: server.peer !== undefined,
  shards: server.shards.size,
  capacity: server.row.capacity,
  leaseLeftMs: leaseLeftMs(core, server),
  requestsPerSecond: server.load?.requestsPerSecond ?? 0,
  openStreams: server.load?.openStreams ?? 0,
});

/** Costs a look at every shard of the service, or of the server if one is named. */
function askShards(core: Core, question: QuestionOf<"shards">): Reply {
  const service = core.services.get(question.service);
  if (service === undefined) return unknownService(question.service);
  const limit = Math.min(Math.max(question.limit, 1), core.limits.pageShards);
  const owner = service.servers.get(question.serverId);
  if (question.serverId !== "" && owner === undefined) {
    return refused(
      "server-unknown",
      `no live server "${question.serverId}" of "${question.service}"`,
    );
  }
  return {
    reply: () => {
      const all = owner?.shards ?? service.shards.values();
      const page = smallestKeys(all, question.afterKey, limit + 1);
      const shards = page.slice(0, limit).map((shard) => shardInfo(core, shard));
      return { case: "shards", value: { shards, more: page.length > limit } };
    },
  };
}

const proxyInfos = (core: Core) => Array.from(core.proxies.values(), (p) => proxyInfo(core, p));

function proxyInfo(core: Core, proxy: Proxy) {
  const untils = Array.from(core.services.values(), (s) => core.believesUntil(proxy, s));
  const leftMs = Math.max(0, ...untils.map((until) => Math.ceil(until - core.now())));
  return {
    name: proxy.name,
    pool: proxy.pool,
    processId: proxy.processId,
    connected: proxy.peer !== undefined,
    dropped: proxy.dropped,
    behind: BigInt(core.feed.countAfter(proxy.dropped)),
    leaseLeftMs: leftMs,
    mapEntries: proxy.load?.mapEntries ?? 0n,
    mapBytes: proxy.load?.mapBytes ?? 0n,
    parked: proxy.load?.parked ?? 0,
    openStreams: proxy.load?.openStreams ?? 0,
    software: proxy.software,
  };
}

function askMove(core: Core, question: QuestionOf<"move">): Reply {
  const service = core.services.get(question.service);
  if (service === undefined) return unknownService(question.service);
  const shard = service.shards.get(question.key);
  const action = SHARD_TABLE[shardState(core, shard)].move;
  if (action === "refuse-moving") {
    return refused("key-moving", "the key is on the move already: wait until that has ended");
  }
  if (action === "refuse-free" || shard === undefined) {
    return refused("key-unowned", `nobody owns this key of "${question.service}"`);
  }
  return move(core, shard, question);
}

function move(core: Core, shard: Shard, question: QuestionOf<"move">): Reply {
  const from = core.servers.get(shard.owner);
  const problem = findMoveProblem(core, shard, question.toServerId);
  if (problem !== undefined || from === undefined) {
    return { refused: problem ?? { code: "key-unowned", message: "its owner has ended" } };
  }
  beginMove(core, shard, { to: question.toServerId, idle: false, released: false });
  const fromServerId = from.row.serverId;
  return { reply: () => ({ case: "move", value: { revision: core.revision, fromServerId } }) };
}

function findMoveProblem(core: Core, shard: Shard, toServerId: string): Refused | undefined {
  const { service } = shard;
  const name = service.row.name;
  if (service.row.minted) {
    const message = `keys of "${name}" are minted by their servers, which hold the state: they do not move`;
    return { code: "key-minted", message };
  }
  if (core.moving.size >= core.limits.moves || core.entriesFull) {
    return { code: "too-many-moves", message: `${core.moving.size} keys are on the move already` };
  }
  if (toServerId === "") {
    const wish = { service, key: shard.key, zone: "", not: shard.owner };
    if (place(core, wish).type === "server") return undefined;
    return { code: "no-server", message: `no other active server of "${name}" can take the key` };
  }
  const to = service.servers.get(toServerId);
  if (to === undefined) {
    return { code: "server-unknown", message: `no live server "${toServerId}" of "${name}"` };
  }
  if (to.row.incarnation === shard.owner) {
    return { code: "already-there", message: `server "${toServerId}" owns the key already` };
  }
  if (canTake(to)) return undefined;
  const isDraining = to.row.state === ServerState.DRAINING;
  return isDraining
    ? { code: "server-draining", message: `server "${toServerId}" is draining` }
    : { code: "no-server", message: `server "${toServerId}" is full or not connected` };
}

function askDrain(core: Core, question: QuestionOf<"drain">): Reply {
  const candidates = findServers(core, question);
  const [server] = candidates;
  if (server === undefined) {
    return refused("server-unknown", `no live server "${question.serverId}"`);
  }
  if (candidates.length > 1) {
    const names = candidates.map((candidate) => candidate.row.service).join(", ");
    return refused("server-ambiguous", `server "${question.serverId}" is in ${names}: name one`);
  }
  if (SERVER_TABLE[serverState(server)].drain === "begin") beginDrain(core, server);
  const { service, serverId } = server.row;
  return {
    reply: () => ({ case: "drain", value: { service, serverId, remaining: server.shards.size } }),
  };
}

function findServers(core: Core, { service: name, serverId }: QuestionOf<"drain">): Server[] {
  const services: Iterable<Service> =
    name === "" ? core.services.values() : [core.services.get(name)].filter((s) => s !== undefined);
  return Array.from(services).flatMap((service) => service.servers.get(serverId) ?? []);
}

function status(core: Core) {
  return {
    generation: core.generation,
    term: core.term,
    revision: core.revision,
    services: core.services.size,
    servers: core.servers.size,
    shards: BigInt(core.shardCount),
    proxies: core.proxies.size,
    moving: core.moving.size,
    holdUntilMs: BigInt(Math.ceil(holdLeftMs(core))),
    store: core.config.storeName,
  };
}
