import type { IncomingMessage, ServerResponse } from "node:http";
import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { apply, type Command } from "./command.ts";
import {
  PlayerStateSchema,
  type WorldRequest,
  WorldRequestSchema,
} from "./gen/world/v1/world_pb.ts";
import type { Site } from "./site.ts";

/** Protobuf in, protobuf out; JSON out for people (`accept: application/json`). */
export function answerRpc(
  { belay, world }: Site,
  call: {
    request: IncomingMessage;
    reply: ServerResponse;
    body: Uint8Array;
    /** As the edge read it from the envelope; the server does not read it again. */
    player: string;
    epoch: bigint;
  },
): void {
  const { request, reply, player, epoch } = call;
  const command = parseCommand(call.body);
  if (command === undefined) {
    reply.writeHead(400, { "content-type": "text/plain" });
    reply.end("the body is no world.v1.WorldRequest with an action\n");
    return;
  }
  const { count, x, y } = apply(world, player, command);
  const state = create(PlayerStateSchema, { player, server: belay.serverId, epoch, count, x, y });
  if (request.headers.accept === "application/json") {
    reply.writeHead(200, { "content-type": "application/json" });
    reply.end(`${toJsonString(PlayerStateSchema, state)}\n`);
  } else {
    reply.writeHead(200, { "content-type": "application/x-protobuf" });
    reply.end(toBinary(PlayerStateSchema, state));
  }
}

function parseCommand(body: Uint8Array): Command | undefined {
  let request: WorldRequest;
  try {
    request = fromBinary(WorldRequestSchema, body);
  } catch {
    return undefined;
  }
  const { action } = request;
  if (action.case === undefined) return undefined;
  if (action.case !== "move") return { type: action.case };
  return { type: "move", dx: action.value.dx, dy: action.value.dy };
}
