interface Due {
  readonly at: number;
  readonly run: () => void;
}

/**
 * What is to be done later, earliest first: a binary heap, so that a tick costs what is due and not
 * what there is. Nothing is taken back: `run` looks whether it is still wanted.
 */
export class DueQueue {
  readonly #heap: Due[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** Infinity: nothing waits. */
  next(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  add(at: number, run: () => void): void {
    const heap = this.#heap;
    const due = { at, run };
    let index = heap.push(due) - 1;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || parent.at <= at) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = due;
  }

  /** The earliest that is due by `now`, taken out. */
  take(now: number): (() => void) | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.at > now) return undefined;
    const last = this.#heap.pop();
    if (last !== undefined && last !== first) this.#sink(last);
    return first.run;
  }

  #sink(due: Due): void {
    const heap = this.#heap;
    let index = 0;
    for (;;) {
      let childIndex = index * 2 + 1;
      const right = heap[childIndex + 1];
      let child = heap[childIndex];
      if (child !== undefined && right !== undefined && right.at < child.at) {
        child = right;
        childIndex += 1;
      }
      if (child === undefined || child.at >= due.at) break;
      heap[index] = child;
      index = childIndex;
    }
    heap[index] = due;
  }
}
