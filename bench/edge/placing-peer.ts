import {
  CoordinatorConnection,
  createBootClock,
  createSystemRandom,
  type FrameBody,
  ResolveOutcome,
  Role,
} from "@belay/protocol";
import { until } from "@belay/testkit";

const RENEW_MS = 1000;

const quiet = (): void => undefined;

/** An edge without traffic: keeps its feed lease, acknowledges at once, asks for new keys. */
export class PlacingPeer {
  readonly #connection: CoordinatorConnection;
  readonly #timer: NodeJS.Timeout;
  #applied = 0n;

  private constructor(port: number) {
    this.#connection = new CoordinatorConnection({
      address: { host: "127.0.0.1", port },
      role: Role.PROXY,
      name: "bench",
      software: "bench",
      pool: "default",
      clock: createBootClock(),
      random: createSystemRandom(),
      logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      onFrame: (frame) => {
        this.#take(frame);
      },
    });
    this.#timer = setInterval(() => {
      this.#renew();
    }, RENEW_MS);
  }

  /** Settles when the coordinator places for it. */
  static async connect(port: number): Promise<PlacingPeer> {
    const peer = new PlacingPeer(port);
    await until("the coordinator takes the bench's peer", () => peer.#connection.connected);
    peer.#renew();
    await until("the coordinator places", async () => peer.place("first"));
    return peer;
  }

  /** True: the key has an owner, durably. */
  async place(key: string): Promise<boolean> {
    const resolved = await this.#connection.request(
      (requestId) => ({ case: "resolve", value: { requestId, service: "bench", key } }),
      (body) => (body.case === "resolved" ? body.value : undefined),
    );
    return resolved.outcome === ResolveOutcome.OWNER;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#connection.send({ case: "goodbye", value: {} });
    this.#connection.close();
  }

  #renew(): void {
    this.#connection.send({
      case: "renewFeedLease",
      value: { nonce: 1, dropped: this.#applied },
    });
  }

  #take(frame: FrameBody): void {
    if (frame.case !== "feedBatch") return;
    this.#applied = frame.value.revision;
    this.#connection.send({ case: "dropped", value: { revision: this.#applied } });
  }
}
