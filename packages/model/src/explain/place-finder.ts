import type { ReasonCode } from "../error/reason-table.ts";
import { matchHost, parseHostTemplate } from "../key/host-template.ts";
import { decodeKey, isKey, percentDecode } from "../key/key.ts";
import { matchPath, parsePathTemplate } from "../key/path-template.ts";
import type { KeyPlace, KeyRule } from "../service-file/service.ts";

/** The parts of a request that places look at. */
export interface RequestHead {
  /** Absolute path with its query, as it travels. */
  readonly path: string;
  readonly authority: string;
  /** In order, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** What the places of a route give, as native/keys/src/extract.rs has it. */
export type Extraction =
  | { readonly kind: "key"; readonly key: string; readonly from: KeyPlace; readonly path: string }
  | { readonly kind: "server"; readonly id: string; readonly from: KeyPlace; readonly path: string }
  | { readonly kind: "need-body"; readonly path: string }
  | { readonly kind: "none"; readonly path: string }
  | { readonly kind: "refused"; readonly reason: ReasonCode; readonly from: KeyPlace };

/** One value that a place gave: still encoded in paths and queries. */
interface Value {
  readonly text: string;
  readonly encoded: boolean;
}

const serverId = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Finds the key of a request. All places but the body are compared; of several path (or host)
 * templates the first that matches counts; an empty value is an absent one.
 */
export function extractKey(rule: KeyRule, request: RequestHead): Extraction {
  const { places, path, server } = chosen(rule, request);
  if (server !== undefined) {
    const id = decodeKey(server.raw);
    return id !== undefined && serverId.test(id)
      ? { kind: "server", id, from: server.from, path }
      : { kind: "refused", reason: "server-unknown", from: server.from };
  }
  let found: { key: string; from: KeyPlace } | undefined;
  for (const from of places) {
    for (const { text, encoded } of valuesOf(from, request)) {
      const key = encoded ? decodeKey(text) : isKey(text) ? text : undefined;
      if (key === undefined) return { kind: "refused", reason: "bad-key", from };
      if (found !== undefined && found.key !== key) {
        return { kind: "refused", reason: "key-conflict", from };
      }
      found ??= { key, from };
    }
  }
  if (found !== undefined) return { kind: "key", ...found, path };
  const envelope = rule.places.some(({ from }) => from === "envelope");
  return envelope ? { kind: "need-body", path } : { kind: "none", path };
}

interface Chosen {
  /** Paths first; those whose templates do not count are left out. */
  readonly places: readonly KeyPlace[];
  /** As the server is to see it. */
  readonly path: string;
  readonly server?: { readonly raw: string; readonly from: KeyPlace };
}

function chosen(rule: KeyRule, request: RequestHead): Chosen {
  const others = rule.places.filter(({ from }) => from !== "path" && from !== "host");
  const host = rule.places.find((p) => p.from === "host" && valuesOf(p, request).length > 0);
  const places = host === undefined ? others : [host, ...others];
  for (const place of rule.places) {
    if (place.from !== "path") continue;
    const template = parsePathTemplate(place.template);
    const match = template.ok ? matchPath(template.template, request.path) : undefined;
    if (!template.ok || match === undefined) continue;
    const path = place.strip ? match.stripped : request.path;
    if (template.template.names !== "server") return { places: [place, ...places], path };
    return { places: [], path, server: { raw: match.raw, from: place } };
  }
  return { places, path: request.path };
}

function valuesOf(place: KeyPlace, request: RequestHead): Value[] {
  if (place.from === "path") {
    const template = parsePathTemplate(place.template);
    const match = template.ok ? matchPath(template.template, request.path) : undefined;
    return match === undefined ? [] : [{ text: match.raw, encoded: true }];
  }
  if (place.from === "host") {
    const template = parseHostTemplate(place.template);
    const label = template.ok ? matchHost(template.template, request.authority) : undefined;
    return label === undefined ? [] : [{ text: label, encoded: false }];
  }
  if (place.from === "header") return plain(headerValues(request, place.name));
  if (place.from === "cookie") {
    return plain(headerValues(request, "cookie").flatMap((value) => cookies(value, place.name)));
  }
  if (place.from === "envelope") return [];
  return queryValues(request.path, place.name).map((text) => ({ text, encoded: true }));
}

const plain = (texts: readonly string[]): Value[] =>
  texts
    .map((text) => text.replaceAll(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, ""))
    .filter((text) => text !== "")
    .map((text) => ({ text, encoded: false }));

const headerValues = (request: RequestHead, name: string): string[] =>
  request.headers.filter(([header]) => header === name).map(([, value]) => value);

/** Values of one cookie in a `cookie` header (RFC 6265, section 5.4), as they stand there. */
function cookies(header: string, name: string): string[] {
  return header.split(";").flatMap((pair) => {
    const equals = pair.indexOf("=");
    return equals >= 0 && pair.slice(0, equals).trim() === name ? [pair.slice(equals + 1)] : [];
  });
}

/** Raw values of one parameter; its name may be percent-encoded, since servers decode it. */
function queryValues(path: string, name: string): string[] {
  const whole = path.split("#", 1)[0] ?? "";
  const at = whole.indexOf("?");
  if (at < 0) return [];
  return whole
    .slice(at + 1)
    .split("&")
    .flatMap((pair) => {
      const equals = pair.indexOf("=");
      if (equals < 0) return [];
      const value = pair.slice(equals + 1);
      return value !== "" && isEncodingOf(pair.slice(0, equals), name) ? [value] : [];
    });
}

function isEncodingOf(raw: string, name: string): boolean {
  if (raw === name) return true;
  const bytes = percentDecode(raw);
  return bytes !== undefined && new TextDecoder().decode(bytes) === name;
}
