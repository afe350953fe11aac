import { type CoordinatorConnection, Role } from "@belay/protocol";
import { until } from "@belay/testkit";
import type { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";

const renewMs = 500;

interface RegisteredServer {
  readonly connection: CoordinatorConnection;
  readonly incarnation: bigint;
}

/** A server of a guarded service, as the coordinator sees one: registers, renews, lets go at once. */
export async function registerServer(
  coordinator: CoordinatorUnderTest,
  service: string,
  { id, address }: { readonly id: string; readonly address: string },
): Promise<RegisteredServer> {
  const connection: CoordinatorConnection = coordinator.connect(Role.SERVER, id, {
    onFrame: (body) => {
      if (body.case !== "revoke") return;
      const { incarnation: mine, shards } = body.value;
      connection.send({ case: "release", value: { incarnation: mine, shards } });
    },
  });
  await until("the server is connected", () => connection.connected);
  const { incarnation } = await connection.request(
    (requestId) => ({
      case: "register",
      value: {
        requestId,
        service,
        serverId: id,
        address,
        guarded: true,
        secret: Buffer.alloc(16, 1),
      },
    }),
    (body) => (body.case === "registered" ? body.value : undefined),
  );
  const renew = setInterval(() => {
    connection.send({ case: "renewServerLease", value: { nonce: 1, incarnation } });
  }, renewMs);
  coordinator.onClose(() => clearInterval(renew));
  return { connection, incarnation };
}
