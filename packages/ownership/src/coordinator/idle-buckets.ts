import type { Shard } from "./state.ts";

const BUCKET_MS = 1000;

/**
 * Puts the shard where it is looked at once, about when its idle time ends (A5): a touch costs one
 * assignment, and a tick looks only at what may be due. Returns the bucket if it is a new one.
 */
export function trackIdle(shard: Shard, at?: number): void {
  const { idleMs } = shard.service.row;
  if (idleMs === 0) return;
  const bucket = Math.ceil((at ?? shard.touchedAt + idleMs) / BUCKET_MS);
  const shards = shard.service.idleBuckets.get(bucket);
  if (shards === undefined) shard.service.idleBuckets.set(bucket, [shard]);
  else shards.push(shard);
}

/** The bucket whose time has come by `now`, taken out; buckets are few, one per second at most. */
export function takeIdle(
  buckets: Map<number, Shard[]>,
  now: number,
  countMax: number,
): readonly Shard[] {
  for (const [bucket, shards] of buckets) {
    if (bucket * BUCKET_MS > now) continue;
    if (shards.length <= countMax) {
      buckets.delete(bucket);
      return shards;
    }
    return shards.splice(shards.length - countMax);
  }
  return [];
}
