// `npm start`: sets up what is needed, then runs `belay up` with the demo. Plain JavaScript for the
// system's Node, because on a fresh clone there is nothing else.
import { join } from "node:path";
import { printFailure } from "./failure.mjs";
import { become } from "../../packages/belay/bin/become.mjs";
import { PINNED_NODE, ROOT, setUp } from "./setup.mjs";

try {
  await setUp();
  process.chdir(ROOT);
  const main = join(ROOT, "packages/belay/src/cli/main.ts");
  become(PINNED_NODE, [
    "--conditions=belay-source",
    main,
    "up",
    "--demo",
    ...process.argv.slice(2),
  ]);
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
