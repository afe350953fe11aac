#!/usr/bin/env node
// The program `belay`: plain JavaScript for any Node ≥ 20, which becomes the Node 24 that the
// packages bring. In the source tree it runs the TypeScript as it stands, installed the built files.
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { become } from "./become.mjs";

const here = realpathSync(dirname(fileURLToPath(import.meta.url)));
const inSourceTree = !here.includes("/node_modules/");
const main = join(here, inSourceTree ? "../src/cli/main.ts" : "../dist/cli/main.js");
const node = findNode(here);

if (node === undefined) {
  console.error(
    `belay: Node 24 is needed and this is ${process.versions.node}.\n` +
      "  → On Linux `npm ci` brings it (or `npm start`, which does all there is to do); elsewhere install Node 24.",
  );
  process.exitCode = 1;
} else {
  // Node options are ours alone: what npm or a debugger set for another Node must not leak in.
  delete process.env.NODE_OPTIONS;
  const flags = inSourceTree ? ["--conditions=belay-source"] : [];
  become(node, [...flags, main, ...process.argv.slice(2)]);
}

/** The nearest Node 24 of the packages; else this one, if it is new enough. */
function findNode(from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const modules = join(folder, "node_modules");
    for (const name of [`node-linux-${process.arch}/bin/node`, ".bin/node"]) {
      if (existsSync(join(modules, name))) return join(modules, name);
    }
    if (folder === dirname(folder)) break;
  }
  return Number(process.versions.node.split(".")[0]) >= 24 ? process.execPath : undefined;
}
