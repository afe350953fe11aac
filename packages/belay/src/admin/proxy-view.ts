import { type ControlPlane, shortType } from "@belay/control-plane";
import type { ProxyInfo } from "@belay/protocol";
import { ask, toProxyCoordinatorView } from "./coordinator-view.ts";
import type { ProxiesView, ProxyView } from "./schemas.ts";
import { toNackView } from "./service-view.ts";

/**
 * Proxies as the coordinator and the xDS server see them, joined by name. Two processes of one name
 * (a hot restart, or one that is gone but still counts) are two rows.
 */
export async function toProxiesView(controlPlane: ControlPlane): Promise<ProxiesView> {
  let infos: readonly ProxyInfo[] = [];
  let coordinatorProblem = "";
  try {
    infos = (await ask(controlPlane, { case: "proxies", value: {} }, "proxies")).proxies;
  } catch (cause) {
    coordinatorProblem = cause instanceof Error ? cause.message : String(cause);
  }
  const streams = new Map(toXdsViews(controlPlane));
  const proxies: ProxyView[] = infos
    // Who is connected takes the stream of that name.
    .toSorted((a, b) => Number(b.connected) - Number(a.connected))
    .map((info) => {
      const xds = streams.get(info.name);
      streams.delete(info.name);
      return {
        name: info.name,
        pool: info.pool,
        coordinator: toProxyCoordinatorView(info),
        xds: xds?.view ?? null,
      };
    });
  for (const [name, { pool, view }] of streams) {
    proxies.push({ name, pool, coordinator: null, xds: view });
  }
  return { proxies: proxies.toSorted((a, b) => (a.name < b.name ? -1 : 1)), coordinatorProblem };
}

interface XdsView {
  readonly pool: string;
  readonly view: NonNullable<ProxyView["xds"]>;
}

function toXdsViews(controlPlane: ControlPlane): (readonly [name: string, XdsView])[] {
  const rejections = controlPlane.rejections();
  return controlPlane.proxies().map(({ id, pool, envoyVersion, peer, inSync, types }) => {
    const view = {
      connected: true,
      envoyVersion,
      peer,
      inSync,
      types: types.map(({ typeUrl, sent, acked }) => ({ type: shortType(typeUrl), sent, acked })),
      nacks: rejections.filter(({ proxy }) => proxy === id).map(toNackView),
    };
    return [id, { pool, view }] as const;
  });
}
