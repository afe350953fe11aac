import assert from "node:assert/strict";
import { test } from "node:test";
import { checkServiceFiles, linkServices, positionOf } from "./link.ts";
import { parseServiceFile } from "./parse.ts";
import { formatProblem } from "./problem.ts";

const file = (name: string, more = "") => ({
  file: `${name}.yaml`,
  text: `service: ${name}\nkey: none\n${more}`,
});

test("services with hosts of their own go together", () => {
  const result = checkServiceFiles([file("a", "hosts: [a.example]"), file("b", 'hosts: ["*"]')]);
  assert.deepEqual(result.problems, []);
  assert.deepEqual(
    result.services.map(({ name }) => name),
    ["a", "b"],
  );
});

test("a host belongs to one service, the earlier one", () => {
  const { services, problems } = checkServiceFiles([
    file("a", "hosts: [x.example, y.example]"),
    file("b", "hosts: [z.example, y.example]"),
  ]);
  assert.deepEqual(
    services.map(({ name }) => name),
    ["a"],
  );
  assert.equal(
    problems.map(formatProblem).join(),
    "b.yaml:3:20: hosts[1]: the host y.example belongs to a (a.yaml:3)\n" +
      "    fix: a host belongs to one service: remove it from one",
  );
});

test("two services without hosts both want every host", () => {
  const { problems } = checkServiceFiles([file("a"), file("b")]);
  assert.equal(problems.length, 1);
  assert.match(problems[0]?.what ?? "", /takes every host .* and so does a \(a\.yaml:1\)/);
});

test("a name is given once", () => {
  const { services, problems } = checkServiceFiles([
    file("a"),
    { file: "z.yaml", text: "service: a\nkey: none\nhosts: [z.example]" },
  ]);
  assert.deepEqual(
    services.map(({ source }) => source.file),
    ["a.yaml"],
  );
  assert.match(problems[0]?.what ?? "", /a\.yaml:1 has a service a too/);
});

test("problems of all files come in reading order", () => {
  const { problems } = checkServiceFiles([
    { file: "z.yaml", text: "service: z\nkey: 1" },
    { file: "a.yaml", text: "service: A\nkey: 1" },
  ]);
  assert.deepEqual(
    problems.map(({ file: name, line }) => `${name}:${line}`),
    ["a.yaml:1", "a.yaml:2", "z.yaml:2"],
  );
});

test("what is implicit stands where the nearest written member stands", () => {
  const parsed = parseServiceFile(file("a", "ownership:\n  lease: 3s").text, "a.yaml");
  assert.ok(parsed.ok);
  assert.equal(positionOf(parsed.service, "ownership.lease").line, 4);
  assert.equal(positionOf(parsed.service, "ownership.drain").line, 3);
  assert.equal(positionOf(parsed.service, "routes[0].match").line, 1);
  assert.equal(linkServices([parsed.service]).services[0], parsed.service);
});
