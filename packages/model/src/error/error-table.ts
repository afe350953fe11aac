import { exitCodes } from "./exit-codes.ts";
import { reasonTable, type ErrorFacts, type ReasonCode } from "./reason-table.ts";

const { failed, usage, invalidFile, notFound, refused, unreachable, environment } = exitCodes;

const invalid = { http: 422, grpc: 3, exit: invalidFile, fault: "client" } as const;
const badCall = { http: 400, grpc: 3, exit: usage, fault: "client" } as const;
const forbidden = { http: 403, grpc: 7, exit: refused, fault: "client" } as const;
const missing = { http: 404, grpc: 5, exit: notFound, fault: "client" } as const;
const conflict = { http: 409, grpc: 9, exit: refused, fault: "client" } as const;
const taken = { http: 409, grpc: 6, exit: refused, fault: "client" } as const;
const full = { http: 429, grpc: 8, exit: refused, fault: "operator" } as const;
const away = { http: 503, grpc: 14, exit: unreachable, fault: "operator" } as const;
const machine = { http: 500, grpc: 9, exit: environment, fault: "operator" } as const;

/** Service files and the admin API. */
const apiFacts = {
  "invalid-service-file": {
    ...invalid,
    says: "a service file has problems; each is listed with its place",
    hint: "Correct each problem that is listed.",
  },
  "name-mismatch": {
    ...invalid,
    says: "the service file is for another service than the address names",
    hint: "Let `service:` in the file be the name in the address.",
  },
  "services-folder-yours": {
    ...conflict,
    fault: "operator",
    says: "the service files are in a folder of yours (`--services`), which Belay does not write",
    hint: "Edit the file in that folder: it is watched, no apply is needed.",
  },
  "services-folder-failed": {
    ...machine,
    says: "the folder of service files cannot be written",
    hint: "See whether the disk is full and the folder belongs to the user that Belay runs as.",
  },
  "bad-request": {
    ...badCall,
    says: "a parameter or the body of the call is not as the route takes it",
    hint: "See docs/reference/admin-api.md or GET /openapi.json for what the route takes.",
  },
  "route-unknown": {
    ...badCall,
    http: 404,
    grpc: 12,
    says: "the admin API has no such route",
    hint: "GET /openapi.json lists all routes.",
  },
  "body-not-json": {
    ...badCall,
    http: 415,
    says: "the body of the call is not JSON, or does not say that it is",
    hint: "Send `content-type: application/json` and JSON.",
  },
  "body-too-large": {
    ...badCall,
    http: 413,
    grpc: 8,
    says: "the body of the call is too large",
    hint: "Send less in one call.",
  },
  "foreign-host": {
    ...forbidden,
    says: "the Host header is not the address of the admin API",
    hint: "Use the address that the API listens on: 127.0.0.1 or localhost.",
  },
  "foreign-origin": {
    ...forbidden,
    says: "the call comes from a web page of another origin",
    hint: "Call the API from a program; it is not for other people's web pages.",
  },
  unauthorized: {
    ...forbidden,
    http: 401,
    grpc: 16,
    says: "the token is missing or wrong",
    hint: "Let BELAY_TOKEN_FILE name the token file that the core was started with.",
  },
  "coordinator-unreachable": {
    ...away,
    says: "the control plane has no connection to the coordinator",
    hint: "Start the coordinator, or wait: the control plane connects again by itself.",
  },
  timeout: {
    ...away,
    http: 504,
    grpc: 4,
    says: "the coordinator did not answer in time; what was asked for may still happen",
    hint: "Look before you ask again; if it lasts, `belay doctor` says what is slow.",
  },
} as const satisfies Record<string, ErrorFacts>;

/** What the coordinator says to its peers and to operators. */
const coordinatorFacts = {
  "bad-frame": {
    ...badCall,
    exit: failed,
    says: "a peer broke the coordinator protocol",
    hint: "Speak proto/belay/v1 with frames of 1 byte to 1 MiB, and only those of your role.",
  },
  "unknown-version": {
    ...machine,
    http: 400,
    says: "the peer speaks another version of the coordinator protocol",
    hint: "Run the same version of Belay on both sides.",
  },
  "role-unknown": {
    ...badCall,
    says: "the peer says a role that the coordinator does not know",
    hint: "Run the same version of Belay on both sides.",
  },
  "bad-address": {
    ...badCall,
    says: "the address of a server is not `IP:port`",
    hint: "Register the address under which proxies reach the server, like 10.0.0.7:9000.",
  },
  "bad-server-id": {
    ...badCall,
    says: "a server id is not 1-128 of A-Z, a-z, 0-9, `.`, `_` and `-`",
    hint: "Choose another `--id`.",
  },
  "bad-service": {
    ...badCall,
    says: "the definition of a service is out of its ranges",
    hint: "See docs/reference/service-file.md for the ranges.",
  },
  "server-id-taken": {
    ...taken,
    says: "a living server of the service has this id",
    hint: "Give the server another `--id`, or stop the other one first.",
  },
  "address-taken": {
    ...taken,
    says: "another server has, or had until just now, this address (S7)",
    hint: "Wait until it has ended, or use another port.",
  },
  "guard-mismatch": {
    ...conflict,
    says: "a server without SDK registers for a guarded service",
    hint: "Use the SDK in the server, or set `ownership.guard: none` in the service file.",
  },
  "guard-change": {
    ...conflict,
    says: "a service becomes guarded while servers without SDK are registered",
    hint: "Drain and stop those servers first: `belay get servers`.",
  },
  "wrong-secret": {
    ...forbidden,
    says: "the session secret of the incarnation is wrong",
    hint: "Only the process that registered may speak for an incarnation.",
  },
  "not-registered": {
    ...conflict,
    says: "the session has no registered server",
    hint: "Register (or resume) first.",
  },
  busy: {
    ...full,
    says: "too much is asked for at the same time",
    hint: "Try again in a moment.",
  },
  "too-many-services": {
    ...full,
    says: "the coordinator has as many services as it takes",
    hint: "Remove services that are no longer used.",
  },
  "too-many-servers": {
    ...full,
    says: "the coordinator has as many servers as it takes",
    hint: "Stop servers that are no longer used.",
  },
  "too-many-peers": {
    ...full,
    says: "the coordinator has as many connections as it takes",
    hint: "Stop peers that are no longer used.",
  },
  "too-many-resolves": {
    ...full,
    says: "a proxy asks for more keys at the same time than it may",
    hint: "If it lasts, somebody invents keys: see `belay get proxies`.",
  },
  "too-many-moves": {
    ...full,
    says: "as many keys are on the move as the coordinator takes",
    hint: "Wait until some have arrived: `belay status` counts them.",
  },
  "key-unowned": {
    ...missing,
    says: "nobody owns the key",
    hint: "The first request for it places it; there is nothing to move.",
  },
  "key-moving": {
    ...conflict,
    says: "the key is on the move already",
    hint: "Wait until that move has ended: `belay owner SERVICE KEY`.",
  },
  "key-minted": {
    ...conflict,
    says: "the key was minted by its server, whose state cannot be handed over (A7)",
    hint: "Drain the server: it keeps its keys until they are idle or it ends.",
  },
  "already-there": {
    ...conflict,
    says: "the server owns the key already",
    hint: "Nothing is left to do.",
  },
  "server-draining": {
    ...conflict,
    says: "the server is draining and takes no keys",
    hint: "Choose a server that is active: `belay get servers`.",
  },
  "server-ambiguous": {
    ...badCall,
    http: 409,
    says: "several services have a server of this id",
    hint: "Name the service too.",
  },
} as const satisfies Record<string, ErrorFacts>;

/** The machine that Belay runs on. */
const machineFacts = {
  usage: {
    ...badCall,
    says: "the command line is wrong",
    hint: "`--help` after the command shows how it is used.",
  },
  "port-in-use": {
    ...machine,
    says: "something listens on the port already",
    hint: "Stop what listens there, or choose another port.",
  },
  "token-needed": {
    ...machine,
    says: "a listener beyond loopback has no (good) token",
    hint: "Listen on loopback, or give `--token-file` a file with at least 16 characters.",
  },
  "tool-missing": {
    ...machine,
    says: "a program that Belay needs is not there",
    hint: "Install the tool that is named.",
  },
  "envoy-wrong": {
    ...machine,
    says: "Envoy is not the version that the module is built for",
    hint: "Use Envoy 1.40.0, or unset BELAY_ENVOY.",
  },
  "disk-full": {
    ...machine,
    grpc: 8,
    says: "the disk is full",
    hint: "Make room on the disk that is named.",
  },
  "store-newer": {
    ...machine,
    says: "the store was written by a newer Belay",
    hint: "Run that version, or start with another data folder.",
  },
  "store-locked": {
    ...machine,
    says: "another process uses the store",
    hint: "Stop the other coordinator of this data folder first.",
  },
  "store-failed": {
    ...machine,
    grpc: 15,
    says: "the store cannot be read or written",
    hint: "See whether the disk is full or broken; the log has the cause.",
  },
  deposed: {
    ...away,
    says: "another coordinator has taken the store over (T1)",
    hint: "Connect to that one.",
  },
} as const satisfies Record<string, ErrorFacts>;

export type ErrorCode =
  | ReasonCode
  | keyof typeof apiFacts
  | keyof typeof coordinatorFacts
  | keyof typeof machineFacts;

/** The one table: code → HTTP, gRPC, exit code, whose fault, what it means, what to do. */
export const errorTable: Readonly<Record<ErrorCode, ErrorFacts>> = {
  ...reasonTable,
  ...apiFacts,
  ...coordinatorFacts,
  ...machineFacts,
};

/** The groups of the table, as docs/reference/errors.md shows them. */
export const errorGroups = [
  { title: "Answers of an edge (`x-belay-reason`)", facts: reasonTable },
  { title: "Service files and the admin API", facts: apiFacts },
  { title: "The coordinator", facts: coordinatorFacts },
  { title: "The machine", facts: machineFacts },
] as const satisfies readonly { title: string; facts: Readonly<Record<string, ErrorFacts>> }[];

/** True for a code of this table; texts from the wire may be newer than we are. */
export const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(errorTable, text);
