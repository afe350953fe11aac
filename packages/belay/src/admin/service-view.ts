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
}

/** All services: those that proxies get, and files with problems that never were good. */
export function toServicesView(controlPlane: ControlPlane): ServicesView {
  const { served, files, alarm } = controlPlane.book();
  const services: ServiceView[] = [];
  for (const [name, it] of served) {
    const file = files.find((state) => state.file === it.service.source.file);
    services.push(toServiceView(controlPlane, name, { file, served: it }));
  }
  const problems: Problem[] = [];
  for (const file of files) {
    const owned = [...served.values()].some(({ service }) => service.source.file === file.file);
    if (owned) continue;
    if (file.name === undefined || served.has(file.name)) problems.push(...file.problems);
    else services.push(toServiceView(controlPlane, file.name, { file, served: undefined }));
  }
  return {
    services: services.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    problems,
    folder: {
      path: controlPlane.folder.path,
      managed: controlPlane.folder.managed,
      alarm: controlPlane.status().alarm || alarm,
    },
  };
}

function toServiceView(
  controlPlane: ControlPlane,
  name: string,
  { file, served }: Sources,
): ServiceView {
  const service = served?.service;
  const source = service?.source.file ?? file?.file ?? "";
  const definition = controlPlane.definitionProblems().get(name);
  const nacks = controlPlane.rejections().filter(({ sources }) => sources[0]?.file === source);
  return {
    name,
    file: source,
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
    nacks: nacks.map(toNackView),
  };
}
