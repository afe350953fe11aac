import type { ControlPlane } from "@belay/control-plane";
import { BelayError, explain } from "@belay/model";
import { ask, toShardView } from "./coordinator-view.ts";
import type { ExplainRequest, ExplainView, ShardView } from "./schemas.ts";

/** What an edge does with a request, and who owns its key now. Places nothing. */
export async function toExplainView(
  controlPlane: ControlPlane,
  request: ExplainRequest,
): Promise<ExplainView> {
  const found = explain(controlPlane.served(), request);
  const { service, key, route } = found;
  const steps = [...found.steps];
  let shard: ShardView | null = null;
  if (service !== undefined && key !== undefined) {
    try {
      shard = toShardView(
        await ask(controlPlane, { case: "owner", value: { service, key } }, "owner"),
      );
      steps.push(describe(shard));
    } catch (cause) {
      if (!(cause instanceof BelayError)) throw cause;
      steps.push(`owner: not known now (${cause.message})`);
    }
  }
  return {
    outcome: found.outcome,
    host: found.host,
    path: found.path,
    service: service ?? null,
    route: route === undefined ? null : { match: route.match, file: route.file, line: route.line },
    key: key ?? null,
    server: found.server ?? null,
    from: found.from ?? null,
    reason: found.reason ?? null,
    status: found.status ?? null,
    upstreamPath: found.upstreamPath,
    steps,
    shard,
  };
}

function describe({ state, server, address, epoch }: ShardView): string {
  if (state === "free") return "owner: nobody yet; the first request places the key";
  const where = `${server} at ${address}, epoch ${epoch}`;
  return state === "moving" ? `owner: moving away from ${where}; requests wait` : `owner: ${where}`;
}
