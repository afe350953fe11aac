import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  BelayError,
  FILE_BYTES_MAX,
  linkServices,
  parseServiceFile,
  type Logger,
} from "@belay/model";
import type { ServedService } from "../source/service-book.ts";
import { removeDurably, writeAtomically } from "./atomic-file.ts";

const headBytesMax = 4096;

/**
 * What was served last, on disk: one file for each service, its text under a line that names the file
 * it came from. So a restart serves it at once, whatever the folder holds by then (xDS rule 7).
 */
export class LastGoodStore {
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #written = new Map<string, string>();

  constructor(folder: string, logger: Logger) {
    this.#folder = folder;
    this.#logger = logger;
  }

  /** What is there and still good; makes the folder. What this version cannot read is left out. */
  async load(): Promise<Map<string, ServedService>> {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const names = (await readdir(this.#folder)).filter((name) =>
        /^[a-z0-9][^/]*\.yaml$/.test(name),
      );
      const read = await Promise.all(names.toSorted().map((name) => this.#read(name)));
      const found = read.filter((it) => it !== undefined);
      const linked = new Set(linkServices(found.map(({ service }) => service)).services);
      return new Map(
        found.filter(({ service }) => linked.has(service)).map((it) => [it.service.name, it]),
      );
    } catch (cause) {
      throw new BelayError(
        "services-folder-failed",
        `cannot read ${this.#folder}: ${String(cause)}`,
        { cause },
      );
    }
  }

  /** Makes the folder hold exactly these. Writes only what changed. */
  async save(served: ReadonlyMap<string, ServedService>): Promise<void> {
    for (const [name, { service, text }] of served) {
      const content = `# from ${JSON.stringify(service.source.file)}\n${text}`;
      if (this.#written.get(name) === content) continue;
      // One after the other: they are few, and the first that fails says why.
      await writeAtomically(this.#pathOf(name), content);
      this.#written.set(name, content);
    }
    for (const name of this.#written.keys()) {
      if (served.has(name)) continue;
      await removeDurably(this.#pathOf(name));
      this.#written.delete(name);
    }
  }

  #pathOf(name: string): string {
    return join(this.#folder, `${name}.yaml`);
  }

  async #read(name: string): Promise<ServedService | undefined> {
    const content = await readFile(join(this.#folder, name), "utf8");
    const end = content.indexOf("\n");
    const [, file] = /^# from (".*")$/.exec(content.slice(0, Math.max(0, end))) ?? [];
    const text = content.slice(end + 1);
    if (content.length > FILE_BYTES_MAX + headBytesMax) return undefined;
    this.#written.set(name.replace(/\.yaml$/, ""), content);
    const result =
      file === undefined ? undefined : parseServiceFile(text, String(JSON.parse(file)));
    if (result?.ok === true) return { service: result.service, text };
    this.#logger.warn(
      { file: join(this.#folder, name) },
      "a last good service file is good no more",
    );
    return undefined;
  }
}
