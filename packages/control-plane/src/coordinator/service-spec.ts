import type { Service } from "@belay/model";
import { type CoordinatorConnection, Placement } from "@belay/protocol";

export type ServiceSpecInit = Parameters<CoordinatorConnection["defineServices"]>[0][number];

const placements = {
  "least-loaded": Placement.LEAST_LOADED,
  spread: Placement.SPREAD,
  pack: Placement.PACK,
  rendezvous: Placement.RENDEZVOUS,
} as const;

/** What the coordinator must know of a service. Minted if any route's rule is: one service, one way (A7). */
export function toServiceSpec(service: Service): ServiceSpecInit {
  const { ownership } = service;
  const rules = [service.key, ...service.routes.map(({ key }) => key)];
  return {
    name: service.name,
    leaseMs: ownership.leaseMs,
    feedLeaseMs: ownership.believeMs,
    idleMs: ownership.idleMs,
    drainMs: ownership.drainMs,
    parkMs: ownership.parkMs,
    guarded: ownership.guard !== "none",
    minted: rules.some(({ minted }) => minted !== undefined),
    placement: placements[ownership.placement],
    movesPerSecond: ownership.movesPerSecond,
  };
}
