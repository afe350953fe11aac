const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Weight of `serverId` for `key` in rendezvous hashing: 32 bits, evenly spread. */
export function rendezvousWeight(serverId: string, key: string): number {
  let hash = FNV_OFFSET;
  for (const text of [serverId, "\u0000", key]) {
    for (let index = 0; index < text.length; index += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME);
    }
  }
  // FNV alone leaves the last characters in the low bits; the finaliser of MurmurHash3 spreads them.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
