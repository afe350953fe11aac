import { Placement, type ServerLoad } from "@belay/protocol";
import { rendezvousWeight } from "./rendezvous-weight.ts";

/** What a policy looks at; counts are those of the staged state, so that 1,000 at once spread. */
export interface Candidate {
  readonly row: { readonly serverId: string; readonly zone: string };
  readonly shards: { readonly size: number };
  readonly load: ServerLoad | undefined;
}

export interface Wish {
  readonly key: string;
  /** Preferred if somebody is there; empty: none. */
  readonly zone: string;
}

type Policy = <Server extends Candidate>(candidates: readonly Server[], wish: Wish) => Server;

const POLICIES: Readonly<Record<Placement, Policy>> = {
  [Placement.UNSPECIFIED]: leastLoaded,
  [Placement.LEAST_LOADED]: leastLoaded,
  [Placement.SPREAD]: spread,
  [Placement.PACK]: pack,
  [Placement.RENDEZVOUS]: rendezvous,
};

/** A2: the server for `wish` among those that can take it; undefined: there is none. */
export function choose<Server extends Candidate>(
  policy: Placement,
  candidates: readonly Server[],
  wish: Wish,
): Server | undefined {
  const near = wish.zone === "" ? [] : candidates.filter((c) => c.row.zone === wish.zone);
  const pool = near.length > 0 ? near : candidates;
  return pool.length === 0 ? undefined : (POLICIES[policy] ?? leastLoaded)(pool, wish);
}

const requestsPerSecond = (candidate: Candidate): number => candidate.load?.requestsPerSecond ?? 0;

/** Below zero: `a` is to be preferred. Owned shards count first, then the load that it reports. */
const byLoad = (a: Candidate, b: Candidate): number =>
  a.shards.size - b.shards.size || requestsPerSecond(a) - requestsPerSecond(b);

function best<Server extends Candidate>(
  candidates: readonly Server[],
  compare: (a: Server, b: Server) => number,
): Server {
  return candidates.reduce((chosen, next) => (compare(next, chosen) < 0 ? next : chosen));
}

function leastLoaded<Server extends Candidate>(candidates: readonly Server[]): Server {
  return best(candidates, byLoad);
}

/** The zone that has the fewest shards per server, then the least loaded server there. */
function spread<Server extends Candidate>(candidates: readonly Server[]): Server {
  const zones = new Map<string, { shards: number; servers: number }>();
  for (const { row, shards } of candidates) {
    const zone = zones.get(row.zone) ?? { shards: 0, servers: 0 };
    zones.set(row.zone, zone);
    zone.shards += shards.size;
    zone.servers += 1;
  }
  const fill = ({ row }: Candidate): number => {
    const zone = zones.get(row.zone);
    return zone === undefined ? 0 : zone.shards / zone.servers;
  };
  return best(candidates, (a, b) => fill(a) - fill(b) || byLoad(a, b));
}

/** The fullest that still has room, so that others can be taken away. */
function pack<Server extends Candidate>(candidates: readonly Server[]): Server {
  return best(candidates, (a, b) => b.shards.size - a.shards.size || compareIds(a, b));
}

/** The same server for a key while the servers are the same, whoever asks. */
function rendezvous<Server extends Candidate>(candidates: readonly Server[], wish: Wish): Server {
  const weight = (candidate: Server): number => rendezvousWeight(candidate.row.serverId, wish.key);
  return best(candidates, (a, b) => weight(b) - weight(a) || compareIds(a, b));
}

const compareIds = (a: Candidate, b: Candidate): number => {
  if (a.row.serverId === b.row.serverId) return 0;
  return a.row.serverId < b.row.serverId ? -1 : 1;
};
