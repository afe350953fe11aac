import type { FrameBody, FrameBodyInit, FrameCase } from "@belay/protocol";

type Values = { readonly [Case in FrameCase]: Extract<FrameBody, { case: Case }>["value"] };

/** A received frame of that name. */
export type FrameOf<Case extends FrameCase> = Values[Case];

type Inits = { readonly [Case in FrameCase]: Extract<FrameBodyInit, { case: Case }>["value"] };

/** What a sent frame of that name is made of. */
export type InitOf<Case extends FrameCase> = Inits[Case];

/** An element of `FeedBatch.entries`. */
export type FeedEntryInit = NonNullable<InitOf<"feedBatch">["entries"]>[number];

/** An element of `Grant.shards`, `Revoke.shards` … */
export interface ShardEpochInit {
  readonly key: string;
  readonly epoch: bigint;
}
