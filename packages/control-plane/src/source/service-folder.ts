import { constants, watch, type FSWatcher } from "node:fs";
import { mkdir, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { BelayError, FILE_BYTES_MAX, SERVICES_MAX, type Logger } from "@belay/model";
import { removeDurably, writeAtomically } from "../disk/atomic-file.ts";
import type { Reading, SourceFile } from "./service-book.ts";

/** Events within this time are one change (xDS rule 10). */
const debounceMs = 50;
/** Longest that a stream of events may put a reading off. */
const debounceMsMax = 100;
/** What the watcher missed (network file systems, a folder made anew) is found by then. */
const rescanMs = 2000;
const filesAtOnce = 16;

export interface ServiceFolderOptions {
  readonly path: string;
  /** True: Belay's own, made if it is not there, and written by `write` and `remove`. */
  readonly managed: boolean;
  readonly logger: Logger;
  /** Every reading that may differ from the one before; the next waits until it is settled. */
  onReading(reading: Reading): Promise<void>;
}

/** A folder of service files (`*.yaml`, `*.yml`), watched. */
export class ServiceFolder {
  readonly #options: ServiceFolderOptions;
  #watcher: FSWatcher | undefined;
  #watched = "";
  #soon: NodeJS.Timeout | undefined;
  #firstEventMs = 0;
  #rescan: NodeJS.Timeout | undefined;
  #reading: Promise<void> = Promise.resolve();
  #last = "";
  readonly #removed = new Set<string>();
  #closed = false;

  constructor(options: ServiceFolderOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  get managed(): boolean {
    return this.#options.managed;
  }

  /** Reads the folder once, then follows it. Rejects if Belay's own folder cannot be made. */
  async start(): Promise<void> {
    if (this.managed) {
      try {
        await mkdir(this.path, { recursive: true, mode: 0o700 });
      } catch (cause) {
        throw failed(`cannot make ${this.path}`, cause);
      }
    }
    await this.refresh();
    this.#rescan = setInterval(() => void this.refresh(), rescanMs);
  }

  /** Reads the folder now, after readings that are under way. */
  refresh(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    this.#reading = this.#reading
      .then(() => this.#read())
      .catch((cause: unknown) => {
        this.#options.logger.error({ why: messageOf(cause) }, "a reading of the folder failed");
      });
    return this.#reading;
  }

  /** Where a service goes that has no file yet. */
  fileOf(name: string): string {
    return join(this.path, `${name}.yaml`);
  }

  /** Writes a service's file in one step, and has it read. Rejects in a folder of the user's. */
  async write(path: string, text: string): Promise<void> {
    this.requireManaged();
    try {
      await writeAtomically(path, text);
    } catch (cause) {
      throw failed(`cannot write ${path}`, cause);
    }
    await this.refresh();
  }

  /** Removes the service's file, and has that read as an order, even if it was the last one. */
  async remove(name: string, path: string): Promise<void> {
    this.requireManaged();
    this.#removed.add(name);
    try {
      await removeDurably(path);
    } catch (cause) {
      this.#removed.delete(name);
      throw failed(`cannot remove ${path}`, cause);
    }
    await this.refresh();
    this.#removed.delete(name);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#soon);
    clearInterval(this.#rescan);
    this.#watcher?.close();
    await this.#reading;
  }

  /** Throws `services-folder-yours` if Belay may not write here. */
  requireManaged(): void {
    if (this.managed) return;
    throw new BelayError(
      "services-folder-yours",
      `the service files are in ${this.path}, a folder of yours (--services), which Belay does not write`,
    );
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    const reading = await this.#scan();
    const known = JSON.stringify([reading.failure, reading.files, [...reading.removed]]);
    if (known === this.#last) return;
    this.#last = known;
    await this.#options.onReading(reading);
  }

  async #scan(): Promise<Reading> {
    const removed = new Set(this.#removed);
    try {
      await this.#watch();
      const entries = await readdir(this.path);
      const names = entries.filter((name) => /^[^.].*\.ya?ml$/.test(name)).toSorted();
      if (names.length > SERVICES_MAX) {
        const failure = `${this.path} has ${names.length} service files, at most ${SERVICES_MAX} are read`;
        return { files: [], failure, removed };
      }
      const files: SourceFile[] = [];
      for (let at = 0; at < names.length; at += filesAtOnce) {
        const some = names.slice(at, at + filesAtOnce);
        files.push(
          ...(await Promise.all(some.map((name) => readOne(join(this.path, name))))).flat(),
        );
      }
      return { files, failure: "", removed };
    } catch (cause) {
      this.#unwatch();
      return { files: [], failure: `cannot read ${this.path}: ${messageOf(cause)}`, removed };
    }
  }

  /** Follows the folder that has the path now, which may be another one than before. */
  async #watch(): Promise<void> {
    const { dev, ino } = await stat(this.path);
    const identity = `${dev}:${ino}`;
    if (this.#watcher !== undefined && this.#watched === identity) return;
    this.#unwatch();
    const watcher = watch(this.path, () => this.#event());
    watcher.on("error", () => this.#unwatch());
    this.#watcher = watcher;
    this.#watched = identity;
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #event(): void {
    if (this.#closed) return;
    const nowMs = performance.now();
    if (this.#soon === undefined) this.#firstEventMs = nowMs;
    clearTimeout(this.#soon);
    const leftMs = this.#firstEventMs + debounceMsMax - nowMs;
    this.#soon = setTimeout(() => void this.refresh(), Math.max(0, Math.min(debounceMs, leftMs)));
  }
}

/** The file, or none if it has just gone. One that cannot be read says so in its place. */
async function readOne(file: string): Promise<SourceFile[]> {
  try {
    const text = await readPlainFile(file);
    return [{ file, text }];
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return [];
    return [{ file, text: "", failure: messageOf(cause) }];
  }
}

/** At most one byte more than the parser takes; never waits for a pipe or a device. */
async function readPlainFile(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw new Error("it is no plain file");
    const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.toString("utf8", 0, length);
  } finally {
    await handle.close();
  }
}

const codeOf = (cause: unknown): unknown =>
  cause instanceof Error && "code" in cause ? cause.code : undefined;

const messageOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause);

function failed(what: string, cause: unknown): BelayError {
  const code = codeOf(cause) === "ENOSPC" ? "disk-full" : "services-folder-failed";
  return new BelayError(code, `${what}: ${messageOf(cause)}`, { cause });
}
