import { create } from "@bufbuild/protobuf";
import { type FrameBody, type FrameBodyInit, FrameSchema } from "@belay/protocol";
import type { Connection, ConnectionEnd, Direction, Environment } from "./environment.ts";

/** The frame as a decoder gives it. */
function decoded(body: FrameBodyInit): FrameBody {
  const frame = create(FrameSchema, { body }).body;
  if (frame.case === undefined) throw new TypeError("a frame without a body");
  return frame;
}

/** Silence after which an end gives a connection up. */
const SILENCE_MS = 900;

/**
 * A connection from a peer (down) to the coordinator (up): frames of one direction keep their order,
 * those of different connections do not. One direction may be cut without either end noticing at once.
 */
export class Link implements Connection {
  readonly id: number;
  readonly #world: Environment;
  readonly #ends: Readonly<Record<Direction, ConnectionEnd>>;
  readonly #lastAt: Record<Direction, number> = { up: 0, down: 0 };
  readonly #cut = new Set<Direction>();
  readonly #open = new Set<Direction>(["up", "down"]);

  constructor(world: Environment, id: number, ends: Readonly<Record<Direction, ConnectionEnd>>) {
    this.#world = world;
    this.id = id;
    this.#ends = ends;
  }

  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  send(to: Direction, frame: FrameBodyInit): void {
    const body = decoded(frame);
    this.#plan(to, () => this.#ends[to].received(this, body));
  }

  /** Ends it, as a closed socket does: the other end hears of it after all that was sent before. */
  close(): void {
    for (const direction of ["up", "down"] as const) {
      this.#plan(direction, () => this.#end(direction));
    }
  }

  /** The process at that end is gone: the other end hears of it. */
  abandon(end: Direction): void {
    this.#open.delete(end);
    const other = end === "up" ? "down" : "up";
    this.#plan(other, () => this.#end(other));
  }

  /** From now on nothing gets through in these directions; the ends notice the silence later. */
  cut(directions: readonly Direction[]): void {
    for (const direction of directions) this.#cut.add(direction);
    const { timeline, random } = this.#world;
    for (const direction of ["up", "down"] as const) {
      timeline.plan(timeline.now + SILENCE_MS * random.between(0.8, 1.2), () => {
        this.#ends[direction].run(() => this.#end(direction));
      });
    }
  }

  #plan(to: Direction, act: () => void): void {
    if (this.#cut.has(to)) return;
    const { timeline, random, options } = this.#world;
    const delayMs = random.chance(0.05)
      ? random.between(0, options.delayMsMax)
      : random.between(0.05, options.delayMsMax / 20);
    const at = Math.max(timeline.now + delayMs, this.#lastAt[to]);
    this.#lastAt[to] = at;
    timeline.plan(at, () => {
      // What was on its way when the cut came is lost as well.
      if (this.#cut.has(to)) return;
      this.#ends[to].run(() => {
        if (this.#open.has(to)) act();
      });
    });
  }

  #end(direction: Direction): void {
    if (!this.#open.delete(direction)) return;
    this.#ends[direction].closed(this);
    this.close();
  }
}
