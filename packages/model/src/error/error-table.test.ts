import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { BelayError, toBelayError } from "./belay-error.ts";
import { errorGroups, errorTable, isErrorCode } from "./error-table.ts";
import { exitCodes } from "./exit-codes.ts";
import { reasonTable, type ErrorFacts } from "./reason-table.ts";

const root = new URL("../../../../", import.meta.url);
const page = new URL("docs/reference/errors.md", root);

test("the reasons are those that the module answers with", () => {
  const text = readFileSync(new URL("proto/testdata/reasons.json", root), "utf8");
  const ours = Object.entries(reasonTable).map(([code, facts]) => {
    const { http, grpc, retryAfterMs, fault, says } = facts;
    return { code, http, grpc, retryAfterMs, fault, says };
  });
  assert.deepEqual(ours, JSON.parse(text));
});

test("every code has a status, an exit code, words and a hint", () => {
  const exits = new Set<number>(Object.values(exitCodes));
  for (const [code, facts] of Object.entries(errorTable)) {
    assert.match(code, /^[a-z]+(-[a-z]+)*$/);
    assert.ok(facts.http >= 400 && facts.http <= 599, code);
    assert.ok(facts.grpc >= 1 && facts.grpc <= 16, code);
    assert.ok(facts.exit !== 0 && exits.has(facts.exit), code);
    assert.ok(facts.says.length > 0 && !facts.says.endsWith("."), code);
    assert.match(facts.hint, /^[A-Z`].*\.$/, code);
  }
});

test("no code stands in two groups", () => {
  const codes = errorGroups.flatMap(({ facts }) => Object.keys(facts));
  assert.equal(new Set(codes).size, codes.length);
  assert.deepEqual(codes.toSorted(), Object.keys(errorTable).toSorted());
});

function renderGroup(title: string, facts: Readonly<Record<string, ErrorFacts>>): string {
  const rows = Object.entries(facts).map(
    ([code, row]) =>
      `| \`${code}\` | ${row.says} | ${row.hint} | ${row.fault} | ${row.http} | ${row.grpc} | ${row.exit} |`,
  );
  return [
    `## ${title}`,
    "| code | what happened | what to do | whose fault | HTTP | gRPC | exit |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

test("docs/reference/errors.md lists every code as the table has it", () => {
  const text = [
    "# Errors",
    "",
    "Every fault has a code of this closed set: in `x-belay-reason` on the answers that an edge makes",
    "itself, in `code` on the admin API, in brackets on the command line. «Whose fault» says who can",
    "mend it: the client (whoever called), the operator of Belay, the stateful server, or Belay itself.",
    "An edge adds Retry-After (1 s) where trying again helps by itself. The page is checked against the",
    "code by a test; `BELAY_WRITE_DOCS=1 npm run test:unit` writes it anew.",
    "",
    errorGroups.map(({ title, facts }) => renderGroup(title, facts)).join("\n\n"),
    "",
  ].join("\n");
  if (process.env["BELAY_WRITE_DOCS"] === "1") writeFileSync(page, text);
  const wanted = text.split("\n");
  for (const [index, line] of readFileSync(page, "utf8").split("\n").entries()) {
    assert.equal(line, wanted[index], `errors.md:${index + 1}`);
  }
});

test("anything thrown becomes a BelayError", () => {
  const own = new BelayError("port-in-use", "8800 is in use", { details: { port: 8800 } });
  assert.equal(toBelayError(own), own);
  assert.equal(own.facts.exit, exitCodes.environment);
  const cause = new TypeError("x is not a function");
  const foreign = toBelayError(cause);
  assert.equal(foreign.code, "internal");
  assert.equal(foreign.cause, cause);
  assert.equal(toBelayError("text").message, "text");
});

test("codes from the wire are recognised, others are not", () => {
  assert.ok(isErrorCode("no-key"));
  assert.equal(isErrorCode("toString"), false);
});
