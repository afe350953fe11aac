import { z } from "zod";
import { buildService } from "./build.ts";
import { memberText, type MemberPath, type Outline } from "./outline.ts";
import { compareProblems, type Problem } from "./problem.ts";
import { kindOf } from "./quantity.ts";
import { describeIssue, membersAt, valueAt } from "./schema-issue.ts";
import { serviceFileSchema, type RawService } from "./schema.ts";
import type { Service } from "./service.ts";
import { readYaml } from "./yaml-document.ts";

/** Problems of one file that are reported; a file with more is not worth reading on. */
const PROBLEMS_MAX = 100;

/** Leaving out a member may leave its holder without a needed one, and so on up to the section. */
const PRUNE_ROUNDS_MAX = 6;

export type ParseResult =
  | { readonly ok: true; readonly service: Service }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly name?: string };

/**
 * Reads one service file. Never throws; reports all problems at once, each with its place and a fix.
 * `file` is only for messages. `name` of a refused file is there if it could be read.
 */
export function parseServiceFile(text: string, file: string): ParseResult {
  const { value, outline, problems: faults } = readYaml(text);
  const problems: Problem[] = faults.map(({ position, what, fix }) => ({
    severity: "error",
    file,
    ...position,
    path: "",
    what,
    fix,
  }));
  const report = new Report(file, value, outline);
  let built: Omit<Service, "source"> | undefined;
  if (isMapping(value)) {
    built = judge(value, report);
  } else if (faults.length === 0) {
    report.add(
      [],
      `expected a mapping, found ${kindOf(value)}`,
      "write `service: NAME` and `key: …`",
    );
  }
  problems.push(...report.problems);
  if (built !== undefined && problems.length === 0) {
    return { ok: true, service: { ...built, source: { file, positions: outline.toJSON() } } };
  }
  const name = isMapping(value) ? value["service"] : undefined;
  return {
    ok: false,
    problems: problems.toSorted(compareProblems).slice(0, PROBLEMS_MAX),
    ...(typeof name === "string" && serviceFileSchema.shape.service.safeParse(name).success
      ? { name }
      : {}),
  };
}

type Mapping = Record<string, unknown>;

const isMapping = (value: unknown): value is Mapping =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Problems at members of the text; lists that we made of a single value lose their index. */
class Report {
  readonly problems: Problem[] = [];
  readonly #file: string;
  readonly #written: unknown;
  readonly #outline: Outline;

  constructor(file: string, written: unknown, outline: Outline) {
    this.#file = file;
    this.#written = written;
    this.#outline = outline;
  }

  add(path: MemberPath, what: string, fix: string): void {
    const shown = this.#asWritten(path);
    const position = this.#outline.positionOf(shown);
    const at = memberText(shown);
    this.problems.push({ severity: "error", file: this.#file, ...position, path: at, what, fix });
  }

  #asWritten(path: MemberPath): MemberPath {
    const shown: (string | number)[] = [];
    for (const part of path) {
      if (typeof part === "number" && !Array.isArray(valueAt(this.#written, shown))) continue;
      shown.push(part);
    }
    return shown;
  }
}

function judge(value: Mapping, report: Report): Omit<Service, "source"> | undefined {
  const wide = widen(value);
  const first = serviceFileSchema.safeParse(wide);
  if (first.success) return build(first.data, report, new Set());
  const broken = new Set<string>();
  for (const issue of first.error.issues) {
    const path = issue.path.filter((part) => typeof part !== "symbol");
    if (issue.code === "unrecognized_keys") {
      const members = membersAt(serviceFileSchema, path);
      for (const member of issue.keys) {
        const { what, fix } = describeIssue(issue, { written: member, members });
        report.add([...path, member], what, fix);
      }
    } else {
      const { what, fix } = describeIssue(issue, { written: valueAt(wide, path), members: [] });
      report.add(path, what, fix);
      broken.add(sectionOf(path));
    }
  }
  // What the schema refuses is left out, so that contradictions elsewhere are reported with it.
  let rest = wide;
  let { issues } = first.error;
  for (let round = 0; round < PRUNE_ROUNDS_MAX; round += 1) {
    rest = prune(rest, issues);
    const again = serviceFileSchema.safeParse(rest);
    if (again.success) {
      build(again.data, report, broken);
      break;
    }
    issues = again.error.issues;
  }
  return undefined;
}

/** `routes[1]` of `routes[1].timeout`; `ownership` of `ownership.lease`. */
function sectionOf(path: MemberPath): string {
  const [member, index] = path;
  return memberText(
    path.length > 2 && typeof index === "number" ? [member ?? "", index] : [member ?? ""],
  );
}

function build(raw: RawService, report: Report, broken: ReadonlySet<string>) {
  return buildService(raw, (path, what, fix) => {
    const [member] = path;
    // A member that the schema refused was replaced by its default: what follows from that is noise.
    if (broken.has(sectionOf([...path, ""])) || broken.has(sectionOf([member ?? ""]))) return;
    report.add(path, what, fix);
  });
}

/** `key` may be one place or `none`, `use` one id: lists are what the schema knows. */
function widen(value: Mapping): Mapping {
  const wide = structuredClone(value);
  widenKey(wide);
  const routes = wide["routes"];
  if (Array.isArray(routes)) {
    for (const route of routes) if (isMapping(route)) widenKey(route);
  }
  return wide;
}

function widenKey(holder: Mapping): void {
  if (holder["key"] === "none") holder["key"] = [];
  if (isMapping(holder["key"])) holder["key"] = [holder["key"]];
  if (!Array.isArray(holder["key"])) return;
  for (const entry of holder["key"]) {
    const envelope: unknown = isMapping(entry) ? entry["envelope"] : undefined;
    if (!isMapping(envelope) || Array.isArray(envelope["use"])) continue;
    if (envelope["use"] !== undefined) envelope["use"] = [envelope["use"]];
  }
}

function prune(value: Mapping, issues: readonly z.core.$ZodIssue[]): Mapping {
  const rest = structuredClone(value);
  // Later items first, so that the indices of earlier ones stay right.
  for (const issue of issues.toReversed()) {
    const path = issue.path.filter((part) => typeof part !== "symbol");
    if (issue.code === "unrecognized_keys") {
      for (const member of issue.keys) remove(rest, [...path, member]);
    } else {
      remove(rest, path);
    }
  }
  rest["service"] ??= "unnamed";
  rest["key"] ??= [];
  return rest;
}

/** Removes a member; a missing one takes its holder with it. */
function remove(root: Mapping, path: MemberPath): void {
  const holder = valueAt(root, path.slice(0, -1));
  const last = path.at(-1);
  if (last === undefined) return;
  if (Array.isArray(holder) && typeof last === "number") holder.splice(last, 1);
  else if (isMapping(holder) && Object.hasOwn(holder, last)) delete holder[last];
  else remove(root, path.slice(0, -1));
}
