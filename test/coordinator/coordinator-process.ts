// A coordinator with SQLite as a process of its own: DATA_DIR PORT [LEASE_MARGIN_MS]
import { startCoordinator } from "@belay/coordinator";
import { createBootClock, createSystemRandom } from "@belay/protocol";
import { openSqliteStore } from "@belay/store-sqlite";

const [dataDir = "", port = "0"] = process.argv.slice(2);
const log = (level: string) => (fields: object, message: string) => {
  const text = JSON.stringify({ level, ...fields, message }, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  process.stdout.write(`${text}\n`);
};
const quiet = (): void => undefined;
const random = createSystemRandom();
const store = openSqliteStore({ directory: dataDir, random });
const coordinator = await startCoordinator({
  store,
  clock: createBootClock(),
  random,
  logger: { debug: quiet, info: log("info"), warn: log("warn"), error: log("error") },
  listen: { host: "127.0.0.1", port: Number(port) },
  onExit: ({ code }) => {
    process.stdout.write(`exit ${code}\n`);
    process.exitCode = 1;
  },
});
process.on("SIGTERM", () => {
  void coordinator.close().then(async () => store.close());
});
process.on("SIGUSR2", () => {
  void coordinator.metrics().then((text) => process.stdout.write(text));
});
process.stdout.write(`ready on ${coordinator.address.port}\n`);
