import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { BelayUnderTest, type Child, until } from "@belay/testkit";

const plainServer = join(import.meta.dirname, "plain-server.mjs");
const SERVED = /plain server (\d+) on (\d+)/;

interface Server {
  readonly id: string;
  readonly state: string;
  readonly address: string;
  readonly connected: boolean;
}

let belay: BelayUnderTest;

const command = (...words: string[]): string[] => ["--", process.execPath, plainServer, ...words];

/** `belay run` for the service that a test is about. */
function run(service: string, id: string, ...rest: readonly string[]): Child {
  return belay.belay(id, ["run", "--service", service, "--id", id, "--port", "auto", ...rest]);
}

async function servers(service: string): Promise<readonly Server[]> {
  const answer = await belay.api(`/v1/servers?service=${service}`);
  return (answer as { servers: Server[] }).servers;
}

/** Waits until the server is registered and active. */
async function registered(service: string, id: string): Promise<Server> {
  return until(`${id} is registered`, async () =>
    (await servers(service)).find((it) => it.id === id && it.state === "active"),
  );
}

async function gone(service: string, id: string, deadlineMs = 20_000): Promise<void> {
  const isGone = async (): Promise<boolean> => !(await servers(service)).some((it) => it.id === id);
  await until(`${id} is gone`, isGone, deadlineMs);
}

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}/cmdline`);

describe("belay run", () => {
  before(async () => {
    const yaml = (name: string, lease: string): string =>
      `service: ${name}\nhosts: [${name}.test]\nkey: [{ path: "/{key}/**" }]\nownership: { lease: ${lease} }\n`;
    belay = await BelayUnderTest.create({
      // Ten minutes: what ends sooner was proven, not waited for.
      patient: yaml("patient", "10m"),
      hasty: yaml("hasty", "3s"),
    });
    belay.startCoordinator();
    belay.startControlPlane();
    await until(
      "the admin API answers",
      async () => {
        const { coordinator } = (await belay.api("/v1/status")) as {
          coordinator: { services?: number };
        };
        return coordinator.services === 2;
      },
      60_000,
    ).catch((error: unknown) => {
      throw new Error(belay.controlPlane?.output, { cause: error });
    });
  });
  after(async () => belay.stop());

  test("the exit code of the command is its own", async () => {
    const cases = [
      [["sh", "-c", "exit 0"], 0],
      [["sh", "-c", "exit 7"], 7],
      [["sh", "-c", "kill -KILL $$"], 137],
      [["/no/such/command"], 127],
      [["/etc/passwd"], 126],
    ] as const;
    const codes = await Promise.all(
      cases.map(async ([words], index) => run("patient", `exit-${index}`, "--", ...words).exited()),
    );
    assert.deepEqual(
      codes,
      cases.map(([, code]) => code),
    );
  });

  test("a command that a signal ended is said to be that, one that was stopped is not", async () => {
    const killed = run("patient", "killed-1", "--", "sh", "-c", "kill -SEGV $$");
    assert.equal(await killed.exited(), 139);
    assert.match(killed.output, /the command was ended by SIGSEGV exitCode=139/);
    const stopped = run("patient", "stopped-1", ...command());
    await stopped.printed(SERVED);
    stopped.signal("SIGTERM");
    await stopped.exited();
    assert.ok(!stopped.output.includes("was ended by"), stopped.output);
  });

  test("started by npm, the command finds the shell's programs before those of packages", async () => {
    const packages = join(belay.data, "node_modules/.bin");
    const env = { npm_command: "exec", PATH: `${packages}:/usr/bin:/bin` };
    const words = ["run", "--service", "patient", "--id", "path-1", "--port", "auto"];
    const child = belay.belay("path-1", [...words, "--", "sh", "-c", 'echo "PATH=$PATH"'], { env });
    assert.equal(await child.exited(), 0, child.output);
    assert.ok(child.output.includes(`PATH=/usr/bin:/bin:${packages}\n`), child.output);
  });

  test("the command gets its environment, and no Node options of ours", async () => {
    const words =
      'echo "$BELAY_SERVICE $BELAY_SERVER_ID $HOST $BELAY_EDGE_URL [$NODE_OPTIONS] $PORT"';
    const child = run("patient", "env-1", "--", "sh", "-c", words);
    assert.equal(await child.exited(), 0);
    const edge = `http://127\\.0\\.0\\.1:${belay.ports.edge}`;
    assert.match(
      child.output,
      new RegExp(`^patient env-1 127\\.0\\.0\\.1 ${edge} \\[\\] \\d+$`, "m"),
    );
  });

  test("a healthy command is registered; SIGTERM drains, stops it last and leaves", async () => {
    const child = run("patient", "good-1", ...command("exit=3"));
    const server = await registered("patient", "good-1");
    const [, , port] = await child.printed(SERVED);
    assert.equal(server.address, `127.0.0.1:${port}`);
    child.signal("SIGTERM");
    assert.equal(await child.exited(), 3, child.output);
    assert.match(child.output, /draining good-1: 0 left\n[^]*plain server: SIGTERM/);
    assert.deepEqual(
      (await servers("patient")).filter((it) => it.id === "good-1"),
      [],
    );
  });

  test("an unknown service is an error that shows the file to write", async () => {
    const child = run("nobody-wrote-it", "lost-1", ...command());
    assert.equal(await child.exited(), 4);
    assert.match(child.output, /no service is called nobody-wrote-it/);
    assert.match(child.output, /service: nobody-wrote-it\n[^]*path: \/\{key\}\/\*\*/);
    assert.match(child.output, /belay apply nobody-wrote-it\.yaml/);
  });

  test("S8: the death of the command ends its incarnation at once", async () => {
    const child = run("patient", "dead-1", ...command());
    await registered("patient", "dead-1");
    const [, pid] = await child.printed(SERVED);
    process.kill(Number(pid), "SIGKILL");
    assert.equal(await child.exited(), 137);
    await gone("patient", "dead-1");
  });

  test("S8: a daemon that left its parent is the server, and its death is proven too", async () => {
    const child = run("patient", "daemon-1", ...command("daemon"));
    await registered("patient", "daemon-1");
    const [, pid] = await child.printed(SERVED);
    assert.ok(child.running);
    process.kill(Number(pid), "SIGKILL");
    assert.equal(await child.exited(), 0);
    await gone("patient", "daemon-1");
  });

  test("S8: belay run killed: its command dies, and is said to be dead", async () => {
    const child = run("patient", "orphan-1", ...command("daemon"));
    const [, pid] = await child.printed(SERVED);
    // From here on belay-exec knows whom to speak for; before, the lease would have to run out (S3).
    await child.printed(/registered .*id=orphan-1/);
    child.signal("SIGKILL");
    await gone("patient", "orphan-1");
    assert.ok(!isAlive(Number(pid)));
  });

  test("an unhealthy command is not registered; a listener beyond loopback is warned of", async () => {
    const child = run(
      "patient",
      "ill-1",
      "--health",
      "http:/healthz",
      ...command("ill", "everywhere"),
    );
    const [, pid] = await child.printed(SERVED);
    assert.ok(!(await servers("patient")).some((it) => it.id === "ill-1"));
    process.kill(Number(pid), "SIGUSR1");
    await registered("patient", "ill-1");
    assert.match(child.output, /listens beyond loopback[^]*--advertise/);
    child.signal("SIGTERM");
    assert.equal(await child.exited(), 0);
  });

  test("a command that never listens is stopped, and told why", async () => {
    const child = run("patient", "mute-1", "--start-timeout", "500ms", "--", "sleep", "60");
    assert.equal(await child.exited(), 1);
    assert.match(child.output, /not healthy on 127\.0\.0\.1:\d+ after 0\.5 s[^]*PORT/);
  });

  test("S8: told that its lease is lost, it stops the command: exit code 75", async () => {
    const child = run("hasty", "late-1", ...command());
    await registered("hasty", "late-1");
    const [, pid] = await child.printed(SERVED);
    child.signal("SIGSTOP");
    await gone("hasty", "late-1");
    assert.ok(isAlive(Number(pid)));
    child.signal("SIGCONT");
    assert.equal(await child.exited(), 75, child.output);
    assert.ok(!isAlive(Number(pid)));
  });

  test("S8: with --restart it starts the command anew, under the same id", async () => {
    const child = run("hasty", "again-1", "--restart", ...command());
    await registered("hasty", "again-1");
    const [, first] = await child.printed(SERVED);
    child.signal("SIGSTOP");
    await gone("hasty", "again-1");
    child.signal("SIGCONT");
    await registered("hasty", "again-1");
    assert.ok(!isAlive(Number(first)));
    child.signal("SIGTERM");
    assert.equal(await child.exited(), 0, child.output);
  });

  test("S8: while the coordinator is silent the command runs on, and resumes its lease", async () => {
    const child = run("patient", "calm-1", ...command());
    await registered("patient", "calm-1");
    const [, pid] = await child.printed(SERVED);
    await belay.coordinator?.kill();
    await child.printed(/no connection to the coordinator/);
    assert.ok(isAlive(Number(pid)));
    belay.startCoordinator();
    await child.printed(/connected to the coordinator again/);
    const again = await until("calm-1 is connected", async () =>
      (await servers("patient")).find((it) => it.id === "calm-1" && it.connected),
    );
    assert.equal(again.state, "active");
    child.signal("SIGTERM");
    assert.equal(await child.exited(), 0, child.output);
  });

  test("--on-lost-lease stop: a lease without an answer stops the command", async () => {
    const child = run("hasty", "strict-1", "--on-lost-lease", "stop", ...command());
    await registered("hasty", "strict-1");
    await belay.coordinator?.kill();
    assert.equal(await child.exited(), 75, child.output);
    assert.match(child.output, /plain server: SIGTERM/);
    belay.startCoordinator();
  });

  test("M6: a drain ends when the coordinator goes and has been away for a whole lease", async () => {
    const child = run("hasty", "alone-1", ...command("exit=3"));
    await registered("hasty", "alone-1");
    // It hears of the drain and can do nothing about it.
    belay.coordinator?.signal("SIGSTOP");
    child.signal("SIGTERM");
    await belay.coordinator?.kill();
    await until("belay run has ended", () => !child.running, 15_000);
    assert.equal(await child.exited(), 3, child.output);
    assert.match(child.output, /away for a whole lease[^]*plain server: SIGTERM/);
    belay.startCoordinator();
  });

  test("M6: told to stop while the coordinator is away, the command serves until no edge asks", async () => {
    const child = run("hasty", "alone-2", ...command());
    const { address } = await registered("hasty", "alone-2");
    await belay.coordinator?.kill();
    await child.printed(/no connection to the coordinator/);
    child.signal("SIGTERM");
    await child.printed(/the command goes on until no edge sends to it/);
    assert.equal((await fetch(`http://${address}/`)).status, 200);
    assert.equal(await child.exited(), 0, child.output);
    assert.match(child.output, /away for a whole lease[^]*plain server: SIGTERM/);
    belay.startCoordinator();
  });

  test("M6: a drain goes on with a coordinator that is back in time", async () => {
    const child = run("patient", "alone-3", ...command());
    await registered("patient", "alone-3");
    await belay.coordinator?.kill();
    await child.printed(/no connection to the coordinator/);
    child.signal("SIGTERM");
    await child.printed(/the command goes on until no edge sends to it/);
    belay.startCoordinator();
    assert.equal(await child.exited(), 0, child.output);
    assert.match(child.output, /draining alone-3: 0 left\n[^]*plain server: SIGTERM/);
  });
});
