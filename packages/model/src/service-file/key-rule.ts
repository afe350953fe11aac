import { parsePathTemplate } from "../key/path-template.ts";
import { PLACES_MAX, type RawEnvelope, type RawKeyEntry, type RawMinted } from "./key-schema.ts";
import type { MemberPath } from "./outline.ts";
import type { EnvelopePlace, KeyPlace, KeyRule, MintedPlace } from "./service.ts";

/** Collects what contradicts what; `path` names the member that should change. */
export type Complain = (path: MemberPath, what: string, fix: string) => void;

/** Not asked for: no key is looked for, every request is balanced. */
export const balanced: KeyRule = { places: [], noKey: "balance" };

const placeNames = ["path", "header", "cookie", "query", "host", "envelope", "minted"] as const;
const mintedNames = ["header", "cookie", "json", "body"] as const;

/** The rule that a `key` list means; contradictions are complained of, the rest is kept. */
export function buildKeyRule(
  entries: readonly RawKeyEntry[],
  at: MemberPath,
  complain: Complain,
): KeyRule {
  if (entries.length > PLACES_MAX) {
    complain(at, `there are ${entries.length} places`, `name at most ${PLACES_MAX}`);
  }
  const places: KeyPlace[] = [];
  const minted: MintedPlace[] = [];
  for (const [index, entry] of entries.entries()) {
    const here = [...at, index];
    const named = placeNames.filter((name) => entry[name] !== undefined);
    if (named.length !== 1) {
      const what =
        named.length === 0 ? "names no place" : `names ${named.join(" and ")} in one entry`;
      complain(here, what, `give each entry one of ${placeNames.join(", ")}`);
    }
    if (entry.strip !== undefined && entry.path === undefined) {
      complain([...here, "strip"], "there is no path to strip", "remove it, or name a `path`");
    }
    places.push(...buildPlaces(entry, here, complain));
    if (entry.minted !== undefined) {
      const place = buildMinted(entry.minted, [...here, "minted"], complain);
      if (place !== undefined) minted.push(place);
    }
  }
  return judge({ places, minted }, at, complain);
}

function buildPlaces(entry: RawKeyEntry, at: MemberPath, complain: Complain): KeyPlace[] {
  const places: KeyPlace[] = [];
  if (entry.path !== undefined) {
    places.push({ from: "path", template: entry.path, strip: entry.strip ?? true });
  }
  for (const from of ["header", "cookie", "query"] as const) {
    const name = entry[from];
    if (name !== undefined) places.push({ from, name });
  }
  if (entry.host !== undefined) places.push({ from: "host", template: entry.host });
  if (entry.envelope !== undefined) {
    places.push(buildEnvelope(entry.envelope, [...at, "envelope"], complain));
  }
  return places;
}

function buildEnvelope(raw: RawEnvelope, at: MemberPath, complain: Complain): EnvelopePlace {
  const numbers = {
    marker: raw.numbers?.marker ?? 1,
    version: raw.numbers?.version ?? 2,
    app: raw.numbers?.app ?? 3,
    server: raw.numbers?.server ?? 4,
    player: raw.numbers?.player ?? 5,
    envelope: raw.numbers?.envelope ?? 6,
  };
  if (new Set(Object.values(numbers)).size < 6) {
    complain([...at, "numbers"], "two members have the same field number", "give each its own");
  }
  if (raw.use.length === 0 || new Set(raw.use).size < raw.use.length) {
    complain([...at, "use"], "the ids are none, or one twice", "list each id of the key once");
  }
  return {
    from: "envelope",
    field: raw.field ?? 0,
    marker: raw.marker ?? "belay1",
    use: raw.use,
    numbers,
  };
}

function buildMinted(raw: RawMinted, at: MemberPath, complain: Complain): MintedPlace | undefined {
  const named = mintedNames.filter((name) => raw[name] !== undefined);
  if (named.length !== 1) {
    const what = named.length === 0 ? "names no place" : `names ${named.join(" and ")}`;
    complain(at, what, `name one of ${mintedNames.join(", ")}`);
  }
  if (raw.header !== undefined) return { from: "header", name: raw.header };
  if (raw.cookie !== undefined) return { from: "cookie", name: raw.cookie };
  if (raw.json !== undefined) return { from: "json", path: raw.json };
  return raw.body === undefined ? undefined : { from: "body", pattern: raw.body };
}

/** True for a path place that names a server outright. */
function namesServer(place: KeyPlace): boolean {
  if (place.from !== "path") return false;
  const result = parsePathTemplate(place.template);
  return result.ok && result.template.names === "server";
}

interface Parts {
  readonly places: KeyPlace[];
  readonly minted: readonly MintedPlace[];
}

function judge({ places, minted }: Parts, at: MemberPath, complain: Complain): KeyRule {
  const [mint] = minted;
  if (minted.length > 1) complain(at, "there are two `minted` places", "keep one");
  const envelopes = places.filter(({ from }) => from === "envelope");
  if (envelopes.length > 1) complain(at, "there are two envelopes", "keep one");
  if (mint !== undefined && envelopes.length > 0) {
    complain(
      at,
      "the server mints its keys, so a client's envelope cannot make one",
      "keep one of the two",
    );
  }
  const texts = places.map((place) => JSON.stringify(place));
  if (new Set(texts).size < texts.length) complain(at, "one place stands there twice", "keep one");
  const servers = places.filter(namesServer);
  if (servers.length > 0 && (places.length > 1 || mint !== undefined)) {
    complain(
      at,
      "{server} names the server outright, other places name a key: one request cannot obey both",
      "keep {server} alone, or use {key}",
    );
  }
  if (mint === undefined) {
    const free = places.length === 0 || servers.length > 0;
    return { places, noKey: free ? "balance" : "refuse" };
  }
  // Clients send a minted header or cookie back under its own name.
  if (mint.from === "header" || mint.from === "cookie") {
    const back: KeyPlace = { from: mint.from, name: mint.name };
    if (!texts.includes(JSON.stringify(back))) places.push(back);
  } else if (places.length === 0) {
    complain(
      at,
      `the server mints its keys in the ${mint.from === "json" ? "JSON" : "body"} of its answer, but no place says where clients send them`,
      "add the place: path, header, cookie, query or host",
    );
  }
  return { places, minted: mint, noKey: "balance" };
}
