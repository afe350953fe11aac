import type { Refusal, ServerSession } from "@belay/ownership";

/** What an adapter does as its request goes through admission. */
export interface Visitor {
  /** Hand over to the handler in this very turn (G1). */
  admitted(visit: Visit): void;
  /** No handler ran and none will. */
  refused(refusal: Refusal): void;
  /** The handler runs, and what it has not yet answered may not go out any more (S5, G6). */
  lost(): void;
  /** The shard is about to move: end soon. Sockets close with 4421 after the message in hand (W2). */
  leaving?(): void;
}

/** One request or socket, from admission to its end. */
export class Visit {
  readonly id: number;
  readonly key: string | undefined;
  /** The life of this server that the request means. */
  readonly incarnation: bigint | undefined;
  readonly visitor: Visitor;
  /** 0n: keyless. */
  epoch = 0n;
  stage: "waiting" | "inside" | "ended" = "waiting";
  readonly #session: Pick<ServerSession, "mayAnswer">;
  readonly #onEnd: (visit: Visit) => void;

  constructor(options: {
    id: number;
    key: string | undefined;
    incarnation: bigint | undefined;
    visitor: Visitor;
    session: Pick<ServerSession, "mayAnswer">;
    onEnd: (visit: Visit) => void;
  }) {
    this.id = options.id;
    this.key = options.key;
    this.incarnation = options.incarnation;
    this.visitor = options.visitor;
    this.#session = options.session;
    this.#onEnd = options.onEnd;
  }

  /** G6: before the first byte of an answer and before each message. Reads the clock. */
  mayAnswer(): boolean {
    return this.stage === "inside" && this.#session.mayAnswer(this.id);
  }

  /** The request is over, in whatever way. Safe to call again. */
  end(): void {
    if (this.stage === "ended") return;
    this.stage = "ended";
    this.#onEnd(this);
  }
}
