// `npm test`: sets up what is needed like `npm start`, then runs every test with Node 24.
import { join } from "node:path";
import { become } from "../../packages/belay/bin/become.mjs";
import { printFailure } from "./failure.mjs";
import { PINNED_NODE, ROOT, setUp } from "./setup.mjs";

try {
  await setUp();
  process.chdir(ROOT);
  become(PINNED_NODE, [join(ROOT, "tools/setup/run-tests.mjs"), ...process.argv.slice(2)]);
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
