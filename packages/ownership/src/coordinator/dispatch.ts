import { type FrameBody, Role } from "@belay/protocol";
import { ask } from "./ask.ts";
import type { Core } from "./core.ts";
import { mint } from "./mint.ts";
import { acknowledge, goodbye, quiet, renewFeedLease, reportHosts } from "./proxies.ts";
import { register } from "./register.ts";
import { resolve } from "./resolve.ts";
import { busy, confirm, end, releaseShards, renew, resume, startDrain } from "./servers.ts";
import { defineServices } from "./services.ts";
import type { Peer } from "./state.ts";

/** Hands a frame to the part that answers it. False: it is not allowed for the peer's role. */
export function dispatch(core: Core, peer: Peer, frame: FrameBody): boolean {
  if (peer.role === Role.PROXY) return dispatchProxy(core, peer, frame);
  if (peer.role === Role.CONTROL_PLANE) return dispatchControlPlane(core, peer, frame);
  return dispatchServer(core, peer, frame);
}

function dispatchProxy(core: Core, peer: Peer, frame: FrameBody): boolean {
  const { proxy } = peer;
  // Its place was taken by a newer connection, or it said goodbye: the rest means nothing.
  if (proxy === undefined) return true;
  if (frame.case === "resolve") resolve(core, peer, frame.value);
  else if (frame.case === "renewFeedLease") renewFeedLease(core, proxy, frame.value);
  else if (frame.case === "dropped") acknowledge(core, proxy, frame.value.revision);
  else if (frame.case === "quiet") quiet(core, proxy, frame.value);
  else if (frame.case === "mint") mint(core, peer, frame.value);
  else if (frame.case === "hosts") reportHosts(core, proxy, frame.value);
  else if (frame.case === "goodbye") goodbye(core, proxy);
  else return false;
  return true;
}

function dispatchServer(core: Core, peer: Peer, frame: FrameBody): boolean {
  if (frame.case === "renewServerLease") renew(core, peer, frame.value);
  else if (frame.case === "confirm") confirm(core, peer, frame.value);
  else if (frame.case === "release") releaseShards(core, peer, frame.value);
  else if (frame.case === "busy") busy(core, peer, frame.value);
  else if (frame.case === "register") register(core, peer, frame.value);
  else if (frame.case === "resume") resume(core, peer, frame.value);
  else if (frame.case === "startDrain") startDrain(core, peer, frame.value);
  else if (frame.case === "leave" || frame.case === "died") end(core, peer, frame.value);
  else return false;
  return true;
}

function dispatchControlPlane(core: Core, peer: Peer, frame: FrameBody): boolean {
  if (frame.case === "defineServices") defineServices(core, peer, frame.value);
  else if (frame.case === "ask") ask(core, peer, frame.value);
  else return false;
  return true;
}
