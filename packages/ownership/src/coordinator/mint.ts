import { isKey } from "@belay/model";
import { MintOutcome } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { createShard, give, isOrphanClear, shardState } from "./shards.ts";
import type { Peer, Server, Service } from "./state.ts";
import { SHARD_TABLE } from "./transitions.ts";

type Mint = FrameOf<"mint">;

/** A7: a proxy claims, for a server, the key that this server made in its answer. */
export function mint(core: Core, peer: Peer, frame: Mint): void {
  const service = core.services.get(frame.service);
  const server = core.servers.get(frame.incarnation);
  if (service === undefined || !service.row.minted || service.row.removed) {
    core.answer(() => send(core, peer, { frame, outcome: MintOutcome.SERVICE_UNKNOWN }));
  } else if (server === undefined || server.service !== service) {
    core.answer(() => send(core, peer, { frame, outcome: MintOutcome.SERVER_GONE }));
  } else if (isKey(frame.key)) {
    claim(core, { service, server, key: frame.key });
    core.answer(() => answerCurrent(core, peer, frame));
  } else {
    core.refuse(peer, {
      code: "bad-key",
      message: "the minted key is not 1-256 bytes of UTF-8 without control characters",
      requestId: frame.requestId,
    });
  }
}

interface Claim {
  readonly service: Service;
  readonly server: Server;
  readonly key: string;
}

/** Commits only if the shard has no owner; what is there already is compared when answered. */
function claim(core: Core, { service, server, key }: Claim): void {
  const shard = service.shards.get(key);
  switch (SHARD_TABLE[shardState(core, shard)].mint) {
    case "compare":
      return;
    case "claim":
      if (core.now() >= core.freeHoldUntil) give(core, createShard(core, service, key), server);
      return;
    case "claim-again":
      if (shard !== undefined && isOrphanClear(core, shard)) give(core, shard, server);
      return;
  }
}

/** T2: from what is committed now. */
function answerCurrent(core: Core, peer: Peer, frame: Mint): void {
  if (!core.servers.has(frame.incarnation)) {
    return send(core, peer, { frame, outcome: MintOutcome.SERVER_GONE });
  }
  const shard = core.services.get(frame.service)?.shards.get(frame.key);
  const isSame = shard?.owner === frame.incarnation;
  const outcome = isSame ? MintOutcome.OK : MintOutcome.CONFLICT;
  return send(core, peer, { frame, outcome, epoch: shard?.epoch ?? 0n });
}

interface MintReply {
  readonly frame: Mint;
  readonly outcome: MintOutcome;
  readonly epoch?: bigint;
}

function send(core: Core, peer: Peer, { frame, outcome, epoch }: MintReply): void {
  const { requestId, service, key } = frame;
  core.send(peer, {
    case: "minted",
    value: { requestId, service, key, outcome, epoch: epoch ?? 0n, revision: core.revision },
  });
}
