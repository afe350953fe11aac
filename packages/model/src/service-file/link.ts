import { parseServiceFile } from "./parse.ts";
import { compareProblems, type Problem } from "./problem.ts";
import type { Position, Service } from "./service.ts";

/** Services that one control plane serves. */
export const SERVICES_MAX = 1000;

export interface LinkResult {
  /** Those that can be served together. */
  readonly services: readonly Service[];
  /** Why others cannot; a warning keeps nobody out. */
  readonly problems: readonly Problem[];
}

/** Where a member of a service stands in its file; the nearest one around it if it is implicit. */
export function positionOf(service: Service, path: string): Position {
  const { positions } = service.source;
  let at = path;
  while (at !== "" && positions[at] === undefined) {
    at = at.slice(0, Math.max(at.lastIndexOf("."), at.lastIndexOf("["), 0));
  }
  return positions[at] ?? { line: 1, column: 1 };
}

interface Complaint {
  readonly severity: Problem["severity"];
  readonly path: string;
  readonly what: string;
  readonly fix: string;
}

const problemAt = (service: Service, complaint: Complaint): Problem => ({
  ...complaint,
  file: service.source.file,
  ...positionOf(service, complaint.path),
});

const placeOf = (service: Service, path: string): string =>
  `${service.source.file}:${positionOf(service, path).line}`;

/**
 * Checks services against each other. Earlier ones win: put those that are already served first, so
 * that a newcomer blocks nobody (xDS rule 8).
 */
export function linkServices(candidates: readonly Service[]): LinkResult {
  const services: Service[] = [];
  const problems: Problem[] = [];
  const byName = new Map<string, Service>();
  const byHost = new Map<string, Service>();
  for (const service of candidates) {
    const found = conflicts(service, { byName, byHost });
    problems.push(...found);
    if (found.length > 0) continue;
    services.push(service);
    byName.set(service.name, service);
    for (const host of service.hosts) byHost.set(host, service);
  }
  return { services, problems: problems.toSorted(compareProblems) };
}

interface Taken {
  readonly byName: ReadonlyMap<string, Service>;
  readonly byHost: ReadonlyMap<string, Service>;
}

function conflicts(service: Service, { byName, byHost }: Taken): Problem[] {
  const problems: Problem[] = [];
  const complain = (path: string, what: string, fix: string) =>
    problems.push(problemAt(service, { severity: "error", path, what, fix }));
  if (byName.size >= SERVICES_MAX) {
    complain("service", `there are ${SERVICES_MAX} services already`, "remove one");
  }
  const namesake = byName.get(service.name);
  if (namesake !== undefined) {
    const where = placeOf(namesake, "service");
    complain(
      "service",
      `${where} has a service ${service.name} too`,
      "rename one, or remove one file",
    );
    return problems;
  }
  for (const [index, host] of service.hosts.entries()) {
    const other = byHost.get(host);
    if (other === undefined) continue;
    const every = host === "*";
    complain(
      every && service.source.positions["hosts"] === undefined ? "service" : `hosts[${index}]`,
      every
        ? `it takes every host ("*"), and so does ${other.name} (${placeOf(other, "service")})`
        : `the host ${host} belongs to ${other.name} (${placeOf(other, "hosts")})`,
      every
        ? "name the `hosts` of one of them"
        : "a host belongs to one service: remove it from one",
    );
  }
  return problems;
}

export interface ServiceFile {
  readonly file: string;
  readonly text: string;
}

/**
 * Parses and links files: what `belay check` does. `served` are there already; those that the files
 * name anew make room. `services` are those of the files without an error.
 */
export function checkServiceFiles(
  files: readonly ServiceFile[],
  served: readonly Service[] = [],
): LinkResult {
  const parsed = files.map(({ file, text }) => parseServiceFile(text, file));
  const good = parsed.flatMap((result) => (result.ok ? [result.service] : []));
  const named = new Set(parsed.map((it) => (it.ok ? it.service.name : it.name)));
  const others = served.filter(({ name }) => !named.has(name));
  const linked = linkServices([...others, ...good]);
  const problems = [
    ...parsed.flatMap((result) => (result.ok ? [] : result.problems)),
    ...linked.problems,
  ];
  const services = linked.services.filter((service) => good.includes(service));
  return { services, problems: problems.toSorted(compareProblems) };
}
