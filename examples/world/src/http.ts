import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestContext } from "@belay/server-sdk";
import { apply, type Command, parseMove } from "./command.ts";
import { answerRpc } from "./rpc.ts";
import type { Site } from "./site.ts";

const BODY_BYTES_MAX = 8 * 1024 * 1024;

/** The path as the demo knows it: `/s/alice/count` and `/count` are the same. */
const pathOf = (request: IncomingMessage): string =>
  new URL(request.url ?? "/", "http://world").pathname.replace(/^\/s\/[^/]+(?=\/|$)/, "") || "/";

/** Answers one admitted request. */
export async function answer(
  site: Site,
  call: { request: IncomingMessage; reply: ServerResponse; context: RequestContext },
): Promise<void> {
  const { belay, world } = site;
  const { request, reply, context } = call;
  const path = pathOf(request);
  if (path === "/info") {
    const { serverId: server, incarnation } = belay;
    sendJson(reply, 200, { server, incarnation: Number(incarnation), players: world.size });
    return;
  }
  const body = await readBody(request);
  if (body === undefined) {
    sendJson(reply, 413, { error: `the body is longer than ${BODY_BYTES_MAX} bytes` });
    return;
  }
  const { key: player, epoch } = context;
  if (player === undefined) {
    sendJson(reply, 400, { error: "this path needs a player: /s/NAME/… or x-player-id: NAME" });
    return;
  }
  if (path === "/rpc") {
    answerRpc(site, { request, reply, body, player, epoch });
    return;
  }
  const command = commandOf(request.method ?? "GET", path, body);
  if (command === undefined) {
    sendJson(reply, 404, { error: "try GET /, POST /count, POST /move, POST /rpc or GET /info" });
    return;
  }
  const state = apply(world, player, command);
  sendJson(reply, 200, { player, server: belay.serverId, epoch: Number(epoch), ...state });
}

function commandOf(method: string, path: string, body: Buffer): Command | undefined {
  if (method === "POST" && path === "/count") return { type: "count" };
  if (method === "POST" && path === "/move") return parseMove(body.toString());
  return method === "GET" && path === "/" ? { type: "look" } : undefined;
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function sendJson(reply: ServerResponse, status: number, value: object): void {
  reply.writeHead(status, { "content-type": "application/json" });
  reply.end(`${JSON.stringify(value)}\n`);
}
