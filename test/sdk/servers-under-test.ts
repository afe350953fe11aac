import { join } from "node:path";
import { Child, freePorts, runTypeScript } from "@belay/testkit";
import type { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";

export const recordOf = (coordinator: CoordinatorUnderTest): string =>
  join(coordinator.dataDir, "runs.tsv");

/** Starts an SDK server and waits until it is registered. */
export async function startServer(coordinator: CoordinatorUnderTest, id: string): Promise<Child> {
  const [port = 0] = await freePorts(1);
  const child = new Child(id, [...runTypeScript, join(import.meta.dirname, "sdk-server.ts")], {
    env: {
      PORT: String(port),
      BELAY_SERVER_ID: id,
      BELAY_COORDINATOR: coordinator.address,
      RECORD: recordOf(coordinator),
    },
  });
  coordinator.onClose(async () => {
    child.signal("SIGCONT");
    await child.kill();
  });
  await child.printed(/ready \d+/);
  return child;
}
