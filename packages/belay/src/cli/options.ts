import { InvalidArgumentError, Option } from "commander";

const PORT_MAX = 65_535;
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;
const UNIT_MS = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
]);
const DURATION_MS_MAX = 24 * 3_600_000;

/** A TCP port, 1 to 65535. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port >= 1 && port <= PORT_MAX) return port;
  throw new InvalidArgumentError("A port is a number from 1 to 65535.");
}

/** A TCP port; 0: any free one. */
export function parsePortOrAny(text: string): number {
  return text === "0" ? 0 : parsePort(text);
}

/** `500ms`, `30s`, `2m`, `1h` in milliseconds; at most a day. */
export function parseDuration(text: string): number {
  const match = DURATION.exec(text);
  const ms = Number(match?.[1]) * (UNIT_MS.get(match?.[2] ?? "") ?? Number.NaN);
  if (ms >= 0 && ms <= DURATION_MS_MAX) return ms;
  throw new InvalidArgumentError("A time is a number with ms, s, m or h, at most 24h: 30s.");
}

/** A whole number of at least 0. */
export function parseCount(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("A whole number of at least 0 is needed.");
}

function portOption(flag: string, what: string, fallback: number): Option {
  const env = `BELAY_${flag.replaceAll("-", "_").toUpperCase()}`;
  return new Option(`--${flag} <port>`, what).env(env).default(fallback).argParser(parsePort);
}

export const edgePort = (): Option => portOption("edge-port", "port of the edge", 8080);
export const apiPort = (): Option => portOption("api-port", "port of the admin API", 8800);
export const coordinatorPort = (): Option =>
  portOption("coordinator-port", "port of the coordinator", 8801);
export const xdsPort = (): Option => portOption("xds-port", "port of xDS", 8802);
export const envoyAdminPort = (): Option =>
  portOption("envoy-admin-port", "port of Envoy's admin interface, always on loopback", 9901);

export const metricsPort = (fallback: number): Option =>
  new Option(
    "--metrics-port <port>",
    `port of /healthz and /metrics, 0: any free one (default: ${fallback}, left out if it is in use)`,
  )
    .env("BELAY_METRICS_PORT")
    .argParser(parsePortOrAny);

export const bind = (): Option =>
  new Option("--bind <ip>", "address to listen on; beyond loopback only with --token-file")
    .env("BELAY_BIND")
    .default("127.0.0.1");

export const data = (): Option =>
  new Option("--data <dir>", "folder for state, made with mode 0700")
    .env("BELAY_DATA")
    .default(".belay");

export const tokenFile = (): Option =>
  new Option("--token-file <file>", "file with the secret that peers and operators must show").env(
    "BELAY_TOKEN_FILE",
  );

export const envoyBinary = (): Option =>
  new Option("--envoy <file>", "an Envoy 1.40.0 of yours").env("BELAY_ENVOY");

/** Where the coordinator is; by default on this machine at --coordinator-port. */
export const coordinatorAddress = (): Option =>
  new Option(
    "--coordinator <ip:port>",
    "address of the coordinator (default: loopback, --coordinator-port)",
  ).env("BELAY_COORDINATOR");

export const services = (): Option =>
  new Option(
    "--services <dir>",
    "a folder of yours with service files (default: <data>/services, which `belay apply` writes)",
  );

export const accessLog = (): Option =>
  new Option(
    "--access-log <mode>",
    "of edges, a JSON line a request on stdout: off, hash (keys as hashes) or plain (keys and paths)",
  )
    .env("BELAY_ACCESS_LOG")
    .choices(["off", "hash", "plain"])
    .default("off");

export const api = (): Option =>
  new Option("--api <url>", "address of the admin API")
    .env("BELAY_API")
    .default(`http://127.0.0.1:${process.env["BELAY_API_PORT"] ?? "8800"}`);

export const output = (): Option =>
  new Option("-o, --output <format>", "how to print").choices(["table", "json"]).default("table");

export const logLevel = (): Option =>
  new Option("--log-level <level>", "least level to log")
    .env("BELAY_LOG_LEVEL")
    .choices(["debug", "info", "warn", "error"])
    .default("info");

export const logFormat = (): Option =>
  new Option("--log-format <format>", "how to log")
    .env("BELAY_LOG_FORMAT")
    .choices(["text", "json"])
    .default("text");
