import { ServerState } from "@belay/protocol";
import type { Core } from "./core.ts";
import { beginMove } from "./moves.ts";
import { serverEntry } from "./rows.ts";
import { serverState, shardState } from "./shards.ts";
import type { Server, Shard } from "./state.ts";
import { SERVER_TABLE, SHARD_TABLE } from "./transitions.ts";

const STEP_MS = 50;
const MOVES_PER_SECOND_DEFAULT = 200;

/**
 * M6: takes nothing new, gives up what it has at a bounded rate. The order is that of use, the shard
 * touched last first: it is all that is known of their load. Minted shards stay until idle (A7).
 */
export function beginDrain(core: Core, server: Server): void {
  if (SERVER_TABLE[serverState(server)].drain !== "begin") return;
  server.row = { ...server.row, state: ServerState.DRAINING };
  core.staging.put(server.row);
  core.staging.publish(serverEntry(server.row));
  core.logger.info(
    { service: server.row.service, server: server.row.serverId, shards: server.shards.size },
    "drain begins",
  );
  continueDrain(core, server);
}

/** Also after a restart. */
export function continueDrain(core: Core, server: Server): void {
  server.drainList = server.service.row.minted ? [] : byUse(server.shards);
  core.later(() => step(core, server));
}

const byUse = (shards: Iterable<Shard>): Shard[] =>
  Array.from(shards).toSorted((a, b) => a.touchedAt - b.touchedAt);

function step(core: Core, server: Server): void {
  const list = server.drainList;
  if (
    list === undefined ||
    list.length === 0 ||
    core.servers.get(server.row.incarnation) !== server
  )
    return;
  const perSecond = server.service.row.movesPerSecond || MOVES_PER_SECOND_DEFAULT;
  const stepMs = Math.max(STEP_MS, 1000 / perSecond);
  let budget = Math.max(1, Math.floor((perSecond * stepMs) / 1000));
  while (budget > 0 && !core.entriesFull && core.moving.size < core.limits.moves) {
    const shard = list.pop();
    if (shard === undefined) break;
    if (shard.owner !== server.row.incarnation) continue;
    if (SHARD_TABLE[shardState(core, shard)].move !== "begin") continue;
    beginMove(core, shard, { to: "", idle: false, released: false });
    budget -= 1;
  }
  if (list.length > 0) core.due.add(core.now() + stepMs, () => step(core, server));
}
