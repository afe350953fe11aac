import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import test from "node:test";
import { freePorts } from "@belay/testkit";
import { belay } from "./belay-program.ts";

test("an unknown verb is exit code 2, and the nearest one is named", async () => {
  const { code, output } = await belay(["statsu"]);
  assert.equal(code, 2);
  assert.match(output, /unknown command 'statsu'\n\(Did you mean status\?\)/);
});

test("an unknown flag is exit code 2, and the nearest one is named", async () => {
  const { code, output } = await belay(["move", "world", "ann", "--tp", "world-2"]);
  assert.equal(code, 2);
  assert.match(output, /unknown option '--tp'\n\(Did you mean --to\?\)/);
});

test("a bad value is exit code 2 and says what is wanted", async () => {
  const bad = [
    [["up", "--edge-port", "99999"], /A port is a number from 1 to 65535/],
    [["core", "--roles", "cook"], /Roles are coordinator and control-plane/],
    [["run", "--service", "a", "--port", "1", "--health", "ftp", "--", "x"], /A health check is/],
    [["move", "a", "b", "--timeout", "soon"], /A time is a number with ms, s, m or h/],
    [["explain", "GET", "/", "-H", "nonsense"], /A header looks like/],
    [["get", "services", "-o", "yaml"], /Allowed choices are table, json/],
    [["completion", "tcsh"], /Allowed choices are bash, zsh, fish/],
    [["status", "--api", "over there"], /is no address/],
    [["check", "/nowhere.yaml"], /cannot read \/nowhere\.yaml/],
    [["run", "--service", "a", "--port", "1"], /missing required argument 'command'/],
    [["run", "--port", "1", "--", "x"], /required option '--service <name>'/],
  ] as const;
  const ended = await Promise.all(bad.map(async ([args]) => belay(args)));
  for (const [index, { code, output }] of ended.entries()) {
    assert.equal(code, 2, output);
    assert.match(output, bad[index]?.[1] ?? /^$/);
  }
});

test("a bad port in the environment is named with its variable", async () => {
  const { code, output } = await belay(["up"], { BELAY_EDGE_PORT: "http" });
  assert.equal(code, 2);
  assert.match(output, /BELAY_EDGE_PORT/);
});

test("an API that is away is exit code 6, with what to do", async () => {
  const [port] = await freePorts(1);
  const api = `http://127.0.0.1:${port}`;
  const verbs = [["status"], ["get", "services"], ["owner", "a", "b"], ["drain", "a"]];
  const ended = await Promise.all(verbs.map(async (verb) => belay(verb, { BELAY_API: api })));
  for (const { code, output } of ended) {
    assert.equal(code, 6, output);
    assert.match(output, new RegExp(`the admin API at ${api} cannot be reached`));
    assert.match(output, /belay up/);
    assert.match(output, /BELAY_API/);
  }
});

test("something else on the API's port is said to be that", async () => {
  const server = createServer((_, response) => response.end("<html>hello</html>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const { code, output } = await belay(["status", "--api", `http://127.0.0.1:${address.port}`]);
  server.close();
  assert.equal(code, 6);
  assert.match(output, /not as Belay's admin API does/);
});

test("a listener beyond loopback needs a token file", async () => {
  const verbs = [["up"], ["core"], ["core", "--roles", "coordinator"]];
  const ended = await Promise.all(verbs.map(async (verb) => belay([...verb, "--bind", "0.0.0.0"])));
  for (const { code, output } of ended) {
    assert.equal(code, 7, output);
    assert.match(output, /token-needed/);
    assert.match(output, /--token-file/);
  }
});

test("a data folder that cannot be made or written is one clear error", async () => {
  const folders = ["/proc/nope", "/proc/nope/deep", "/proc/self", "/dev/null/x"];
  const ended = await Promise.all(folders.map(async (it) => belay(["core", "--data", it])));
  for (const [index, { code, output }] of ended.entries()) {
    assert.equal(code, 7, output);
    assert.ok(output.includes(`the data folder ${folders[index]} cannot be used: `), output);
    assert.match(output, /--data names another/);
  }
});

test("a launcher's pipe is not looked for by who is not its child", async () => {
  const { code } = await belay(["--version"], { BELAY_LAUNCHER: "1:3" });
  assert.equal(code, 0);
});
