import {
  linkServices,
  parseServiceFile,
  type ParseResult,
  type Problem,
  type Service,
  type ServiceFile,
} from "@belay/model";

/** A service that proxies get, with the text that it was read from. */
export interface ServedService {
  readonly service: Service;
  readonly text: string;
}

/** What became of one file. */
export interface FileState {
  readonly file: string;
  /** The service that it names, or last named when it was good. */
  readonly name: string | undefined;
  readonly state: "serving" | "last-good" | "refused";
  readonly problems: readonly Problem[];
}

/** The outcome of a reading of all files: what is served, and what is wrong. */
export interface Book {
  /** By service name, names sorted. */
  readonly served: ReadonlyMap<string, ServedService>;
  /** In order of their names. */
  readonly files: readonly FileState[];
  /** Not empty: the files are gone together, so all that was served stays (xDS rule 7). */
  readonly alarm: string;
  /** Readings by file: a text is parsed once. */
  readonly parsed: ReadonlyMap<string, ParsedFile>;
}

interface ParsedFile {
  readonly file: string;
  readonly text: string;
  readonly result: ParseResult;
}

/** What is served before any reading: what was kept on disk, or nothing. */
export const openBook = (served: ReadonlyMap<string, ServedService> = new Map()): Book => ({
  served,
  files: [],
  alarm: "",
  parsed: new Map(),
});

export interface SourceFile extends ServiceFile {
  /** Why this one could not be read. */
  readonly failure?: string;
}

/** What a source found. `removed`: services whose removal was ordered, so it is no accident. */
export interface Reading {
  readonly files: readonly SourceFile[];
  /** Not empty: why the source could not be read; `files` is then of no meaning. */
  readonly failure: string;
  readonly removed: ReadonlySet<string>;
}

interface Candidate extends ServedService {
  readonly file: string;
}

/**
 * The next book, after a new reading. Pure. Last good per service: a file with problems goes on with
 * the text that was good, and blocks nobody else (xDS rule 8).
 */
export function turnPage(before: Book, reading: Reading): Book {
  const alarm = alarmOf(before, reading);
  if (alarm !== "") return { ...before, alarm };
  const parsed = reading.files
    .toSorted((a, b) => (a.file < b.file ? -1 : 1))
    .map((source) => parseSource(source, before));
  const lastByFile = new Map([...before.served.values()].map((it) => [it.service.source.file, it]));
  const candidates: Candidate[] = [];
  const keep = new Map<string, ServedService>();
  for (const { file, text, result } of parsed) {
    if (result.ok) candidates.push({ file, text, service: result.service });
    const last =
      lastByFile.get(file) ?? (result.ok ? undefined : before.served.get(result.name ?? ""));
    if (!result.ok && last !== undefined) keep.set(last.service.name, last);
  }
  const linked = linkAll(before, candidates, keep);
  const files = parsed.map(({ file, text, result }): FileState => {
    const problems = [
      ...(result.ok ? [] : result.problems),
      ...linked.problems.filter((problem) => problem.file === file),
    ];
    const name = result.ok
      ? result.service.name
      : (result.name ?? lastByFile.get(file)?.service.name);
    const served = name === undefined ? undefined : linked.served.get(name);
    if (served?.service.source.file !== file) return { file, name, state: "refused", problems };
    const state = result.ok && served.text === text ? "serving" : "last-good";
    return { file, name, state, problems };
  });
  const byFile = new Map(parsed.map((it) => [it.file, it]));
  return { served: linked.served, files, alarm: "", parsed: byFile };
}

function parseSource({ file, text, failure }: SourceFile, before: Book): ParsedFile {
  if (failure === undefined) {
    const known = before.parsed.get(file);
    return known?.text === text ? known : { file, text, result: parseServiceFile(text, file) };
  }
  const what = `cannot be read: ${failure}`;
  const fix = "make it a file that the user Belay runs as may read";
  const problem: Problem = { severity: "error", file, line: 1, column: 1, path: "", what, fix };
  // No text is equal to this one, so that it is parsed when it can be read again.
  return { file, text: "\0", result: { ok: false, problems: [problem] } };
}

function alarmOf(before: Book, { files, failure, removed }: Reading): string {
  if (failure !== "") return failure;
  const left = [...before.served.keys()].filter((name) => !removed.has(name));
  if (files.length > 0 || left.length === 0) return "";
  return `the folder has no service file any more: ${left.length} services (${left.slice(0, 5).join(", ")}) stay as they were`;
}

interface Linked {
  readonly served: ReadonlyMap<string, ServedService>;
  readonly problems: readonly Problem[];
}

/**
 * All new texts together if they fit. Otherwise those already served first, together or one by one,
 * then newcomers: they never displace what proxies have.
 */
function linkAll(
  before: Book,
  candidates: readonly Candidate[],
  keep: ReadonlyMap<string, ServedService>,
): Linked {
  const names = new Set(candidates.map(({ service }) => service.name));
  const kept = [...keep.values()].filter(({ service }) => !names.has(service.name));
  const together = tryAll([...kept, ...candidates]);
  if (together.fits)
    return { served: byName([...kept, ...candidates]), problems: together.problems };

  const inOrder = candidates.toSorted((a, b) => rankOf(before, a) - rankOf(before, b));
  const incumbents = inOrder.filter((it) => rankOf(before, it) < newcomerRank);
  const fit = tryAll([...kept, ...incumbents]).fits;
  const served = new Map(kept.map((it) => [it.service.name, it]));
  const taken = new Set<string>();
  for (const it of incumbents) {
    const { name } = it.service;
    const last = before.served.get(name);
    if (fit || last === undefined) served.set(name, it);
    else served.set(name, last);
    // As it was: it fits, whatever the others want.
    if (fit || isSame(last, it)) taken.add(it.file);
  }
  const problems: Problem[] = [];
  const placed = new Set(
    candidates.filter((it) => taken.has(it.file)).map((it) => it.service.name),
  );
  for (const it of inOrder) {
    if (taken.has(it.file)) continue;
    const { name } = it.service;
    const others = [...served.values()].filter(
      ({ service }) => service.name !== name || placed.has(name),
    );
    const tried = linkServices([...others, it].map(({ service }) => service));
    if (tried.services.includes(it.service)) {
      served.set(name, it);
      placed.add(name);
    } else {
      problems.push(
        ...tried.problems.filter(({ file, severity }) => file === it.file && severity === "error"),
      );
    }
  }
  const warnings = linkServices([...served.values()].map(({ service }) => service)).problems;
  return { served: byName([...served.values()]), problems: [...problems, ...warnings] };
}

function tryAll(services: readonly ServedService[]): {
  fits: boolean;
  problems: readonly Problem[];
} {
  const { problems } = linkServices(services.map(({ service }) => service));
  return { fits: problems.every(({ severity }) => severity !== "error"), problems };
}

const isSame = (last: ServedService | undefined, now: Candidate): boolean =>
  last?.text === now.text && last.service.source.file === now.file;

const newcomerRank = 2;

/** Who is served from this very file comes first, then who is served, then newcomers. */
function rankOf(before: Book, { service, file }: Candidate): number {
  const last = before.served.get(service.name);
  if (last === undefined) return newcomerRank;
  return last.service.source.file === file ? 0 : 1;
}

const byName = (services: readonly ServedService[]): Map<string, ServedService> =>
  new Map(
    services
      .map(({ service, text }) => [service.name, { service, text }] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
