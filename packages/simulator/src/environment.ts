import type { Batch } from "@belay/ownership";
import type { FrameBody, FrameBodyInit } from "@belay/protocol";
import type { WorldOptions } from "./options.ts";
import type { Plant } from "./plant.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { Timeline } from "./timeline.ts";
import type { Arrival, ClientRequest, OpenAttempt, Outcome } from "./traffic.ts";

/** Up is towards the coordinator. */
export type Direction = "up" | "down";

/** A connection, as its ends see it. */
export interface Connection {
  readonly id: number;
  send(to: Direction, frame: FrameBodyInit): void;
  close(): void;
  /** The process at that end is gone. */
  abandon(end: Direction): void;
}

/** What one end of a connection hears, in the turn of its process. */
export interface ConnectionEnd {
  run(act: () => void): void;
  received(connection: Connection, frame: FrameBody): void;
  closed(connection: Connection): void;
}

export interface Restartable {
  restart(): void;
}

interface ShardEpoch {
  readonly incarnation: bigint;
  readonly key: string;
  readonly epoch: bigint;
}

/** What happens, for those who check it. */
interface Watchers {
  committed(batch: Batch): void;
  granted(shards: readonly { readonly key?: string; readonly epoch?: bigint }[]): void;
  released(shard: ShardEpoch): void;
  handlerBegan(arrival: Arrival): void;
  handlerRefused(arrival: Arrival): void;
  handlerAnswered(arrival: Arrival, epoch: bigint): void;
  served(request: ClientRequest): void;
}

/** What a process finds around it. */
export interface Environment extends Watchers {
  readonly options: WorldOptions;
  readonly plant: Plant;
  readonly random: SeededRandom;
  readonly timeline: Timeline;
  note(text: string): void;
  afterStep(): void;
  restartLater(process: Restartable): void;
  /** Undefined: the coordinator does not listen. */
  connect(end: ConnectionEnd, name: string): Connection | undefined;
  nextAttempt(): number;
  /** Carries an attempt to the process at its address, and its outcome back. */
  dial(open: OpenAttempt, answered: (outcome: Outcome) => void): void;
  abort(open: OpenAttempt): void;
  /** The server owns nothing any more and stops. */
  drained(server: Restartable & { readonly name: string; crash(): void }): void;
}
