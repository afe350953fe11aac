import type { Shard } from "./state.ts";

/**
 * Byte order of the keys' UTF-8, which is that of code points: UTF-16 order differs from it where
 * surrogates meet U+E000 and above.
 */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Surrogates, which stand for code points above all others, after U+FFFF. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);

/** The `count` shards whose keys follow `after`, in order: one look at each, whatever there is. */
export function smallestKeys(shards: Iterable<Shard>, after: string, count: number): Shard[] {
  const kept: Shard[] = [];
  let limit: string | undefined;
  for (const shard of shards) {
    if (after !== "" && compareKeys(shard.key, after) <= 0) continue;
    if (limit !== undefined && compareKeys(shard.key, limit) >= 0) continue;
    kept.push(shard);
    // Sorting only when twice as many are kept makes it linear in the shards.
    if (kept.length < count * 2) continue;
    limit = cut(kept, count);
  }
  cut(kept, count);
  return kept;
}

function cut(kept: Shard[], count: number): string | undefined {
  kept.sort((a, b) => compareKeys(a.key, b.key));
  kept.length = Math.min(kept.length, count);
  return kept.length === count ? kept.at(-1)?.key : undefined;
}
