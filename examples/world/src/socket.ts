import type { Server } from "node:http";
import type { WebSocketServer } from "ws";
import { apply, type Command, parseMove } from "./command.ts";
import type { Site } from "./site.ts";

/** A socket per player: each message is a command, each answer the player's state. */
export function attachSockets(
  { belay, world }: Site,
  server: Server,
  sockets: WebSocketServer,
): void {
  belay.attachWebSocket(server, sockets, (socket, _request, { key: player, epoch }) => {
    if (player === undefined) {
      socket.close(1008, "a player is needed");
      return undefined;
    }
    let messages = 0;
    return (data) => {
      messages += 1;
      const state = apply(world, player, commandOf(Buffer.isBuffer(data) ? data.toString() : ""));
      const seen = { player, server: belay.serverId, epoch: Number(epoch), messages, ...state };
      socket.send(JSON.stringify(seen));
    };
  });
}

/** `{"dx": 1}` moves, `look` looks, anything else counts. */
const commandOf = (text: string): Command =>
  text === "look" ? { type: "look" } : (parseMove(text) ?? { type: "count" });
