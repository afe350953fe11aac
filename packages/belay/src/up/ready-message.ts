import { styleText } from "node:util";
import { ApiClient } from "../cli/api-client.ts";
import { dialHost } from "../machine/loopback.ts";
import type { Demo } from "./demo.ts";
import { apiUrl } from "./plan.ts";
import type { UpSettings } from "./up-settings.ts";

const API_DEFAULT = "http://127.0.0.1:8800";

/** Says on standard output that all is ready, where, and what to try in another shell. */
export async function printReady(settings: UpSettings, demo: Demo | undefined): Promise<void> {
  const host = dialHost(settings.bind);
  const edge = `http://${host}:${settings.edgePort}`;
  const api = apiUrl(settings);
  // A plain shell knows nothing of our ports: what differs from the defaults goes with the command.
  const env = [
    ...(api === API_DEFAULT ? [] : [`BELAY_API=${api} `]),
    ...(settings.tokenFile === undefined ? [] : [`BELAY_TOKEN_FILE=${settings.tokenFile} `]),
  ].join("");
  const tries =
    demo === undefined
      ? [
          [`${env}npx belay apply FILE.yaml`, "bring a service"],
          [`${env}npx belay get services`, "what is served"],
          [`${env}npx belay status`, "how it is"],
        ]
      : [
          [`curl ${edge}/s/ann/`, "the key `ann` reaches its owner"],
          [`${env}npx belay owner ${demo.service} ann`, "who that is, at which epoch"],
          [`${env}npx belay move ${demo.service} ann`, "move it, and ask again"],
        ];
  const width = Math.max(...tries.map(([line = ""]) => line.length));
  const lines = [
    "",
    bold(`Belay is ready.${await describeWait(settings, api)}`),
    `  edge         ${edge}`,
    `  admin API    ${api}`,
    `  coordinator  ${host}:${settings.coordinatorPort}`,
    `  xDS          ${host}:${settings.xdsPort}`,
    `  Envoy admin  http://127.0.0.1:${settings.envoyAdminPort}`,
    "",
    bold("Try, in another terminal:"),
    ...tries.map(([line = "", does = ""]) => `  ${line.padEnd(width)}  # ${does}`),
    "",
    "Ctrl-C stops everything.",
    "",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

function bold(text: string): string {
  return styleText("bold", text, { stream: process.stdout });
}

/** After a kill the coordinator waits until nobody can believe what it does not know (S4, P6). */
async function describeWait(settings: UpSettings, api: string): Promise<string> {
  const tokenFile = settings.tokenFile === undefined ? {} : { tokenFile: settings.tokenFile };
  try {
    const { coordinator } = await new ApiClient({ api, ...tokenFile }).get(
      "/v1/status",
      (it) => it.statusSchema,
    );
    const holdMs = coordinator.holdMs ?? 0;
    if (holdMs === 0) return "";
    const seconds = Math.ceil(holdMs / 1000);
    return `\nServers of the last run may still live: for ${seconds} s nothing is taken from them.`;
  } catch {
    return "";
  }
}
