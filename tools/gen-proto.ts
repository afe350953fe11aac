// Generates packages/protocol/src/gen from proto/. With --check: fails if the committed files differ.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

function filesOf(dir: string): Map<string, string> {
  return new Map(
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [path.slice(dir.length), readFileSync(path, "utf8")];
      }),
  );
}

const root = new URL("..", import.meta.url).pathname;
const target = join(root, "packages/protocol/src/gen");
const check = process.argv.includes("--check");
const out = check ? mkdtempSync(join(tmpdir(), "belay-gen-")) : target;
const template = {
  version: "v2",
  clean: true,
  plugins: [
    {
      local: join(root, "node_modules/.bin/protoc-gen-es"),
      out,
      opt: ["target=ts", "import_extension=ts", "erasable_syntax=true"],
      strategy: "all",
    },
  ],
};
execFileSync(
  join(root, "node_modules/.bin/buf"),
  ["generate", "--template", JSON.stringify(template)],
  {
    cwd: join(root, "proto"),
    stdio: "inherit",
  },
);
if (check) {
  const [fresh, committed] = [filesOf(out), filesOf(target)];
  rmSync(out, { recursive: true });
  const stale = [...new Set([...fresh.keys(), ...committed.keys()])].filter(
    (name) => fresh.get(name) !== committed.get(name),
  );
  if (stale.length > 0) {
    process.stderr.write(`stale, run \`npm run gen\`: ${stale.join(", ")}\n`);
    process.exitCode = 1;
  }
}
