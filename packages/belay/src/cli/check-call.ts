import type { CheckView } from "../admin/schemas.ts";
import type { ApiClient } from "./api-client.ts";

/** What one call takes, below the API's own limits: 100 files, 1 MiB of JSON. */
const FILES_MAX = 100;
const CHARS_MAX = 400_000;

interface FileText {
  readonly file: string;
  readonly yaml: string;
}

/** All problems of the files, together as far as one call takes them. Changes nothing. */
export async function checkFiles(
  client: ApiClient,
  files: readonly FileText[],
): Promise<CheckView> {
  const views = await Promise.all(
    toBatches(files).map((batch) =>
      client.post("/v1/services:check", (it) => it.checkSchema, { files: batch }),
    ),
  );
  return {
    ok: views.every(({ ok }) => ok),
    services: views.flatMap(({ services }) => services),
    problems: views.flatMap(({ problems }) => problems),
  };
}

function toBatches(files: readonly FileText[]): FileText[][] {
  const batches: FileText[][] = [];
  let chars = CHARS_MAX;
  for (const it of files) {
    const last = batches.at(-1);
    chars += it.yaml.length;
    if (last !== undefined && last.length < FILES_MAX && chars <= CHARS_MAX) last.push(it);
    else {
      batches.push([it]);
      chars = it.yaml.length;
    }
  }
  return batches;
}
