interface Planned {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Virtual time: what is planned runs in the order of time, then of planning. */
export class Timeline {
  readonly #heap: Planned[] = [];
  #order = 0;
  #now = 0;

  get now(): number {
    return this.#now;
  }

  plan(at: number, run: () => void): void {
    const heap = this.#heap;
    const planned = { at: Math.max(at, this.#now), order: (this.#order += 1), run };
    let index = heap.push(planned) - 1;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || isBefore(parent, planned)) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = planned;
  }

  /** Runs what is planned up to `until`; false: nothing is left before it. */
  step(until: number): boolean {
    const first = this.#heap[0];
    if (first === undefined || first.at > until) {
      this.#now = Math.max(this.#now, until);
      return false;
    }
    const last = this.#heap.pop();
    if (last !== undefined && last !== first) this.#sink(last);
    this.#now = first.at;
    first.run();
    return true;
  }

  #sink(planned: Planned): void {
    const heap = this.#heap;
    let index = 0;
    for (;;) {
      let childIndex = index * 2 + 1;
      let child = heap[childIndex];
      const right = heap[childIndex + 1];
      if (child !== undefined && right !== undefined && isBefore(right, child)) {
        child = right;
        childIndex += 1;
      }
      if (child === undefined || isBefore(planned, child)) break;
      heap[index] = child;
      index = childIndex;
    }
    heap[index] = planned;
  }
}

const isBefore = (a: Planned, b: Planned): boolean =>
  a.at < b.at || (a.at === b.at && a.order < b.order);
