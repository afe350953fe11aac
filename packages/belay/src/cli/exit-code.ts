import { exitCodes } from "@belay/model";

/** The exit codes of `belay`, as `belay --help` and docs/reference/cli.md list them. */
export const EXIT = {
  ...exitCodes,
  leaseLost: 75,
  cannotExecute: 126,
  commandNotFound: 127,
  brokenPipe: 141,
} as const;

export const EXIT_CODES: readonly (readonly [code: string, meaning: string])[] = [
  [String(EXIT.ok), "done"],
  [String(EXIT.failed), "what was asked could not be done; the message says why"],
  [String(EXIT.usage), "the command line is wrong: unknown command, flag or value"],
  [String(EXIT.invalidFile), "a service file has problems"],
  [String(EXIT.notFound), "no such service, server or key"],
  [String(EXIT.refused), "Belay refuses it as things stand; the message says why"],
  [String(EXIT.unreachable), "the admin API or the coordinator cannot be reached"],
  [
    String(EXIT.environment),
    "this machine is not as needed: a port in use, no Envoy, a full disk, an output that nobody takes",
  ],
  [String(EXIT.leaseLost), "`belay run`: the lease was lost and the command was stopped"],
  [String(EXIT.cannotExecute), "`belay run`: the command cannot be executed"],
  [String(EXIT.commandNotFound), "`belay run`: there is no such command"],
  [String(EXIT.brokenPipe), "who read the output went away before its end (128 + SIGPIPE)"],
  ["other", "`belay run` and `belay proxy` end as their command and Envoy do (128 + signal)"],
];
