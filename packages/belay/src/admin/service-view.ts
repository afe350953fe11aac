import { createHash } from "node:crypto";
import type { ControlPlane, FileState, ProxyRejection, ServedService } from "@belay/control-plane";
import { formatKeyRule, positionOf, type Problem, type Service } from "@belay/model";
import type { ServicesView, ServiceView } from "./schemas.ts";

const versionOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 12);

/** What the API says of a refused resource. */
export function toNackView(rejection: ProxyRejection): ServiceView["nacks"][number] {
  const { proxy, type, resource, message, sources, atMs } = rejection;
  const [source] = sources;
  return {
    proxy,
    type,
    resources: [resource],
    message,
    file: source?.file ?? "",
    line: source?.line ?? 0,
    atMs,
  };
}

function definitionProblem(service: Service, code: string, message: string): Problem {
  const path = code === "guard-change" ? "ownership.guard" : "service";
  return {
    severity: "error",
    file: service.source.file,
    ...positionOf(service, path),
    path,
    what: `the coordinator refuses it (${code}): ${message}`,
    fix: "the coordinator goes on with the definition that it has; correct the file",
  };
}

interface Sources {
  readonly file: FileState | undefined;
  readonly served: ServedService | undefined;
  /** What proxies refuse of this file now. */
  readonly rejections: readonly ProxyRejection[];
}

/** All services: those that proxies get, and files with problems that never were good. */
export function toServicesView(controlPlane: ControlPlane): ServicesView {
  const { served, files } = controlPlane.book();
  const states = new Map(files.map((file) => [file.file, file]));
  const rejections = Map.groupBy(controlPlane.rejections(), ({ sources }) => sources[0]?.file);
  const owned = new Set<string>();
  const services: ServiceView[] = [];
  for (const [name, it] of served) {
    const path = it.service.source.file;
    owned.add(path);
    const sources = { file: states.get(path), served: it, rejections: rejections.get(path) ?? [] };
    services.push(toServiceView(controlPlane, name, sources));
  }
  const problems: Problem[] = [];
  for (const file of files) {
    if (owned.has(file.file)) continue;
    if (file.name === undefined || served.has(file.name)) problems.push(...file.problems);
    else {
      const sources = { file, served: undefined, rejections: [] };
      services.push(toServiceView(controlPlane, file.name, sources));
    }
  }
  return {
    services: services.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    problems,
    folder: {
      path: controlPlane.folder.path,
      managed: controlPlane.folder.managed,
      alarm: controlPlane.status().alarm,
    },
  };
}

function toServiceView(controlPlane: ControlPlane, name: string, sources: Sources): ServiceView {
  const { file, served, rejections } = sources;
  const service = served?.service;
  const definition = controlPlane.definitionProblems().get(name);
  return {
    name,
    file: service?.source.file ?? file?.file ?? "",
    line:
      service === undefined ? (file?.problems[0]?.line ?? 1) : positionOf(service, "service").line,
    // Without a file (a folder that cannot be read) the last good text is all there is.
    state: file?.state ?? "last-good",
    ...(service?.team === undefined ? {} : { team: service.team }),
    hosts: [...(service?.hosts ?? [])],
    keys: service === undefined ? [] : formatKeyRule(service.key),
    guard: service?.ownership.guard ?? "none",
    placement: service?.ownership.placement ?? "",
    leaseMs: service?.ownership.leaseMs ?? 0,
    servers: controlPlane.link.book.countOf(name),
    version: served === undefined ? "" : versionOf(served.text),
    problems: [
      ...(file?.problems ?? []),
      ...(definition === undefined || service === undefined
        ? []
        : [definitionProblem(service, definition.code, definition.message)]),
    ],
    nacks: rejections.map(toNackView),
  };
}
