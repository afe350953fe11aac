import type { Clock } from "@belay/model";
import type { Batch, Row, ServerSessionParts } from "@belay/ownership";
import type { FrameBody, FrameBodyInit } from "@belay/protocol";

/** Frames that pass between the coordinator and one peer. */
export interface Wire {
  readonly link: number;
  /** Server id, or name of the proxy. */
  readonly peer: string;
}

/** A rule broken on purpose: what stands between the real machines, or in place of a part of one. */
export interface Plant {
  serverParts?(clock: Clock): Partial<ServerSessionParts>;
  /** What the coordinator is given at a take-over. */
  loaded?(rows: Iterable<Row>): Iterable<Row>;
  down?(wire: Wire, frame: FrameBodyInit): readonly FrameBodyInit[];
  /** In place of the frame; what it adds is as if the peer had sent it. */
  up?(wire: Wire, frame: FrameBody): readonly FrameBody[];
  committed?(batch: Batch): void;
  /** Commits are believed before the store has them. */
  readonly believesEarly?: boolean;
  /** A crash of the coordinator loses the last commits of the store. */
  readonly losesTail?: boolean;
}
