import type { Command } from "commander";
import type { ShardsView } from "../admin/schemas.ts";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { parseCount } from "./options.ts";
import {
  formatMs,
  type OutputFormat,
  paint,
  paintState,
  printJson,
  printProblems,
  printTable,
} from "./printer.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

const PAGE_ROWS_MAX = 1000;

interface GetOptions extends ApiOptions {
  readonly output: OutputFormat;
}

/** `belay get services|servers|shards|proxies`. */
export function defineGet(program: Command): void {
  const get = program
    .command("get")
    .helpCommand(false)
    .summary("list services, servers, shards or proxies")
    .description("Lists services, servers, shards or proxies.");
  withExamples(get, [
    ["belay get servers world", "the servers of a service, with shards and lease"],
    ["belay get shards world --limit 20 -o json", "the first 20 shards, for a program"],
  ]);
  const services = get.command("services").description("Services and the state of their files.");
  withExamples(withOutput(withApi(services)).action(getServices), [
    ["belay get services", "state, key places, servers, problems"],
  ]);
  const servers = get
    .command("servers")
    .description("Servers that are registered.")
    .argument("[service]", "only of this service");
  withExamples(withOutput(withApi(servers)).action(getServers), [
    ["belay get servers", "of all services"],
    ["belay get servers world", "of one"],
  ]);
  const shards = get
    .command("shards")
    .description("Keys that have an owner, in byte order.")
    .argument("<service>", "the service")
    .option("--server <id>", "only those of this server")
    .option("--limit <count>", "at most so many", parseCount, 100);
  withExamples(withOutput(withApi(shards)).action(getShards), [
    ["belay get shards world --server world-1", "what a server owns"],
  ]);
  const proxies = get.command("proxies").description("Edges, and how far behind they are.");
  withExamples(withOutput(withApi(proxies)).action(getProxies), [
    ["belay get proxies", "connection, lease, owner map, refused configuration"],
  ]);
}

async function getServices(options: GetOptions): Promise<void> {
  const view = await new ApiClient(options).get("/v1/services", (it) => it.servicesSchema);
  if (options.output === "json") return printJson(view);
  printTable(
    ["NAME", "STATE", "KEY", "HOSTS", "GUARD", "SERVERS", "FILE"],
    view.services.map((it) => [
      it.name,
      paintState(it.state),
      it.keys.join(" | "),
      it.hosts.join(","),
      it.guard,
      String(it.servers),
      it.file,
    ]),
    `no services (${view.folder.path})`,
  );
  const problems = [...view.services.flatMap((it) => it.problems), ...view.problems];
  printProblems(problems);
  for (const it of view.services.flatMap((service) => service.nacks)) {
    console.log(`${it.file}:${it.line}: ${paint("red", "refused")} by ${it.proxy}: ${it.message}`);
  }
  if (view.folder.alarm !== "") console.log(`${paint("red", "alarm")}: ${view.folder.alarm}`);
  return undefined;
}

async function getServers(service: string | undefined, options: GetOptions): Promise<void> {
  const view = await new ApiClient(options).get("/v1/servers", (it) => it.serversSchema, {
    service,
  });
  if (options.output === "json") return printJson(view);
  printTable(
    ["SERVICE", "ID", "STATE", "ADDRESS", "SHARDS", "CAPACITY", "LEASE LEFT", "CONNECTED", "ZONE"],
    view.servers.map((it) => [
      it.service,
      it.id,
      paintState(it.state),
      it.address,
      String(it.shards),
      it.capacity === 0 ? "" : String(it.capacity),
      formatMs(it.leaseLeftMs),
      paintState(it.connected ? "yes" : "no"),
      it.zone,
    ]),
    "no servers",
  );
  return undefined;
}

interface ShardsOptions extends GetOptions {
  readonly server?: string;
  readonly limit: number;
}

async function getShards(service: string, options: ShardsOptions): Promise<void> {
  const page = await getShardPages(
    new ApiClient(options),
    { service, server: options.server },
    options.limit,
  );
  if (options.output === "json") return printJson(page);
  printTable(
    ["KEY", "STATE", "SERVER", "ADDRESS", "EPOCH", "TO"],
    page.shards.map((it) => [it.key, paintState(it.state), it.server, it.address, it.epoch, it.to]),
    "no shards",
  );
  if (page.next !== undefined) console.log(`… and more: --limit ${options.limit * 10}`);
  return undefined;
}

/** Up to `limit` shards, page after page; `next` is there if there are more. */
async function getShardPages(
  client: ApiClient,
  query: Readonly<Record<string, string | undefined>>,
  limit: number,
): Promise<ShardsView> {
  const rows = Math.min(PAGE_ROWS_MAX, Math.max(1, limit));
  const page = await client.get("/v1/shards", (it) => it.shardsSchema, {
    ...query,
    limit: String(rows),
  });
  const left = limit - page.shards.length;
  if (page.next === undefined || left <= 0) return page;
  const rest = await getShardPages(client, { ...query, after: page.next }, left);
  return { ...rest, shards: [...page.shards, ...rest.shards] };
}

async function getProxies(options: GetOptions): Promise<void> {
  const view = await new ApiClient(options).get("/v1/proxies", (it) => it.proxiesSchema);
  if (options.output === "json") return printJson(view);
  printTable(
    ["NAME", "POOL", "COORDINATOR", "LEASE LEFT", "BEHIND", "KEYS", "PARKED", "XDS", "REFUSED"],
    view.proxies.map((it) => [
      it.name,
      it.pool,
      paintState(it.coordinator?.connected ? "yes" : "no"),
      it.coordinator === null ? "" : formatMs(it.coordinator.leaseLeftMs),
      it.coordinator?.behind ?? "",
      String(it.coordinator?.mapEntries ?? ""),
      String(it.coordinator?.parked ?? ""),
      paintState(it.xds?.connected ? "yes" : "no"),
      String(it.xds?.nacks.length ?? ""),
    ]),
    "no proxies",
  );
  if (view.coordinatorProblem !== "") console.log(view.coordinatorProblem);
  return undefined;
}
