import { once } from "node:events";
import { createServer } from "node:net";
import { BelayError } from "@belay/model";
import { describeListener } from "./listening-sockets.ts";

/** A port that is to be listened on, and what changes it. */
export interface WantedPort {
  /** "the edge" */
  readonly what: string;
  readonly host: string;
  readonly port: number;
  /** "BELAY_EDGE_PORT" */
  readonly env: string;
}

/** Fails with `port-in-use`, naming port, holder and setting, if somebody listens there. */
export async function requireFreePort(wanted: WantedPort): Promise<void> {
  const { what, host, port, env } = wanted;
  const problem = await tryListen(host, port);
  if (problem === undefined) return;
  if (problem === "EADDRNOTAVAIL") {
    throw new BelayError("usage", `this machine has no address ${host} (--bind, BELAY_BIND)`);
  }
  if (problem === "EACCES") {
    const why = `you may not listen on port ${port} for ${what}; ${env} chooses another`;
    throw new BelayError("usage", why);
  }
  const holder = describeListener(port) ?? "a process that has just ended";
  const why = `port ${port} for ${what} is in use by ${holder}; ${env} chooses another port`;
  throw new BelayError("port-in-use", why, { details: { port, env } });
}

/** The code of what keeps us from listening there, undefined if nothing does. */
async function tryListen(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  server.listen({ host, port, exclusive: true });
  try {
    await once(server, "listening");
  } catch (cause) {
    return cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
  }
  server.close();
  await once(server, "close");
  return undefined;
}

/** A port that is free at this moment. */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer();
  server.listen({ host, port: 0 });
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new TypeError("not a TCP listener");
  return address.port;
}
