import type { World } from "./world.ts";

type Fault = (world: World) => void;

const crashServer: Fault = (world) => {
  const server = world.random.pick(world.servers);
  server.crash();
  world.restartLater(server);
};

const crashProxy: Fault = (world) => {
  const proxy = world.random.pick(world.proxies);
  proxy.crash();
  world.restartLater(proxy);
};

const crashCoordinator: Fault = (world) => {
  world.coordinator.crash();
  world.restartLater(world.coordinator);
};

/** Sometimes longer than the lease. */
const pauseMs = (world: World): number =>
  world.random.between(1, world.random.chance(0.5) ? 200 : world.options.leaseMs * 1.5);

const pauseServer: Fault = (world) => world.random.pick(world.servers).pause(pauseMs(world));

const freezeServer: Fault = (world) =>
  world.random.pick(world.servers).freezeAtRenewal(world.options.leaseMs * 2);

const pauseCoordinator: Fault = (world) => world.coordinator.pause(pauseMs(world));

/** Unguarded services assume that a proxy is not paused by more than margin between pick and act. */
const pauseProxy: Fault = (world) => {
  if (world.options.guarded) world.random.pick(world.proxies).pause(pauseMs(world));
};

const cutLink: Fault = (world) => {
  const links = Array.from(world.links).filter((link) => link.isOpen);
  if (links.length === 0) return;
  const way = world.random.pick([["up"], ["down"], ["up", "down"]] as const);
  world.note(`a connection is cut: ${way.join(" and ")}`);
  world.random.pick(links).cut(way);
};

/** H3: the coordinator restarts while somebody cannot hear it. */
const restartBehindCut: Fault = (world) => {
  cutLink(world);
  crashCoordinator(world);
};

const drainServer: Fault = (world) => {
  const server = world.random.pick(world.servers);
  world.note(`${server.name} drains`);
  server.drain();
};

const FAULTS: readonly Fault[] = [
  crashServer,
  crashServer,
  crashProxy,
  crashCoordinator,
  pauseServer,
  pauseServer,
  freezeServer,
  pauseProxy,
  pauseCoordinator,
  cutLink,
  cutLink,
  restartBehindCut,
  drainServer,
];

/** One fault after the other until `until`. */
export function planFaults(world: World, until: number): void {
  const at = world.timeline.now + world.random.next() * 2 * world.options.faultEveryMs;
  if (at >= until) return;
  world.timeline.plan(at, () => {
    world.random.pick(FAULTS)(world);
    planFaults(world, until);
  });
}
