// Writes docs/reference/cli.md; test/cli/help.test.ts fails if it is stale.
import { writeFileSync } from "node:fs";
import { createProgram } from "./program.ts";
import { createReference } from "./reference.ts";

const target = new URL("../../../../docs/reference/cli.md", import.meta.url);
writeFileSync(target, createReference(createProgram()));
