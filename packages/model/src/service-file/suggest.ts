/** Longest word that is compared; longer ones are no typing slips. */
const WORD_LENGTH_MAX = 64;

/** Levenshtein distance with swaps of neighbours counted as one. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      }
      next.push(best);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

const plain = (word: string): string => word.toLowerCase().replaceAll("_", "-");

/** The word that was probably meant; undefined if none is near. */
export function suggest(written: string, words: readonly string[]): string | undefined {
  if (written.length > WORD_LENGTH_MAX) return undefined;
  let best: string | undefined;
  let least = Math.max(1, Math.floor(written.length / 3)) + 1;
  for (const word of words) {
    const steps = distance(plain(written), plain(word));
    if (steps < least) {
      best = word;
      least = steps;
    }
  }
  return best;
}
