import type { FrameBody } from "./frame.ts";

/** Why a request has no answer. `refused`: the coordinator said so, `problemCode` names it. */
export type RequestFailureCode = "not-connected" | "lost" | "timeout" | "refused" | "too-many";

/** A request without an answer. After `lost` and `timeout` it may have taken effect. */
export class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  readonly code: RequestFailureCode;
  readonly problemCode: string | undefined;

  constructor(code: RequestFailureCode, message: string, problemCode?: string) {
    super(message);
    this.code = code;
    this.problemCode = problemCode;
  }
}

interface Waiting {
  resolve(body: FrameBody): void;
  reject(error: RequestFailed): void;
  readonly timer: NodeJS.Timeout;
}

/** Requests that wait for an answer on one connection. */
export class PendingRequests {
  readonly #waiting = new Map<number, Waiting>();
  readonly #requestsMax: number;
  #lastId = 0;

  constructor(requestsMax: number) {
    this.#requestsMax = requestsMax;
  }

  /** A request id and the promise of its answer; rejects with RequestFailed. */
  open(timeoutMs: number): { requestId: number; answer: Promise<FrameBody> } {
    if (this.#waiting.size >= this.#requestsMax) {
      const error = new RequestFailed("too-many", `${this.#requestsMax} requests wait already`);
      return { requestId: 0, answer: Promise.reject(error) };
    }
    const requestId = this.#freeId();
    const answer = new Promise<FrameBody>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(requestId);
        reject(new RequestFailed("timeout", `no answer within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#waiting.set(requestId, { resolve, reject, timer });
    });
    return { requestId, answer };
  }

  /** True if the frame was the answer to a waiting request. */
  settle(body: FrameBody): boolean {
    const requestId = "requestId" in body.value ? body.value.requestId : 0;
    const waiting = this.#waiting.get(requestId);
    if (waiting === undefined) return false;
    this.#waiting.delete(requestId);
    clearTimeout(waiting.timer);
    if (body.case === "problem") {
      waiting.reject(new RequestFailed("refused", body.value.message, body.value.code));
    } else {
      waiting.resolve(body);
    }
    return true;
  }

  failAll(code: RequestFailureCode, message: string): void {
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new RequestFailed(code, message));
    }
    this.#waiting.clear();
  }

  #freeId(): number {
    do {
      this.#lastId = this.#lastId >= 0x7fff_ffff ? 1 : this.#lastId + 1;
    } while (this.#waiting.has(this.#lastId));
    return this.#lastId;
  }
}
