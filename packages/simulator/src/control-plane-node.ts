import { type FrameBody, Placement, Role } from "@belay/protocol";
import type { Connection, ConnectionEnd, Environment } from "./environment.ts";
import { Node } from "./node.ts";

const RETRY_MS = 40;

/** Defines the one service, and gives an operator's orders. */
export class ControlPlaneNode extends Node implements ConnectionEnd {
  #link: Connection | undefined;
  #requestId = 0;

  constructor(world: Environment) {
    super(world, "control-plane");
  }

  begin(): void {
    this.#connectLater();
  }

  move(key: string, toServerId: string): void {
    this.run(() => {
      this.#link?.send("up", {
        case: "ask",
        value: {
          requestId: (this.#requestId += 1),
          question: { case: "move", value: { service: "world", key, toServerId } },
        },
      });
    });
  }

  received(_link: Connection, frame: FrameBody): void {
    if (frame.case === "welcome") this.#define();
  }

  closed(link: Connection): void {
    if (link !== this.#link) return;
    this.#link = undefined;
    this.#connectLater();
  }

  protected settle(): void {}

  protected wakeAt(): number {
    return Number.POSITIVE_INFINITY;
  }

  protected tick(): void {}

  protected started(): void {
    this.#connectLater();
  }

  protected stopped(): void {
    this.#link?.abandon("down");
    this.#link = undefined;
  }

  #connectLater(): void {
    this.runAfter(RETRY_MS, () => {
      if (this.#link !== undefined) return;
      this.#link = this.world.connect(this, this.name);
      if (this.#link === undefined) {
        this.#connectLater();
        return;
      }
      this.#link.send("up", {
        case: "hello",
        value: { protocolVersion: 1, role: Role.CONTROL_PLANE, name: this.name },
      });
    });
  }

  #define(): void {
    const { leaseMs, feedLeaseMs, idleMs, drainMs, guarded } = this.world.options;
    this.#link?.send("up", {
      case: "defineServices",
      value: {
        requestId: (this.#requestId += 1),
        services: [
          {
            name: "world",
            leaseMs,
            feedLeaseMs,
            idleMs,
            drainMs,
            parkMs: drainMs * 3,
            guarded,
            placement: Placement.LEAST_LOADED,
            movesPerSecond: 100,
          },
        ],
      },
    });
  }
}
