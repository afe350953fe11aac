import { status as grpcStatus, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Rejection } from "../subscription/rejection.ts";
import { StreamSubscription, type TypeStatus } from "../subscription/stream.ts";
import type { Change } from "../resources/snapshot.ts";
import type { Pool, ProxyView } from "./pool.ts";
import { encodeResponse, type ProxyNode, type WireRequest } from "./wire-request.ts";

export type DeltaCall = ServerDuplexStream<WireRequest, Buffer>;

/** Types and names that one stream may ask for by name. */
const subscriptionsMax = 100_000;

/** Where a connected proxy stands. */
export interface ProxyStatus {
  readonly id: string;
  readonly pool: string;
  readonly envoyVersion: string;
  /** Where its stream comes from, `IP:port`. */
  readonly peer: string;
  /** False: it has asked, and its pool has no configuration yet (rule 7). */
  readonly served: boolean;
  /** It has confirmed all that it should hold. */
  readonly inSync: boolean;
  readonly types: readonly TypeStatus[];
}

export interface ProxyStreamEvents {
  /** The first request names the proxy; answers its pool. */
  onNode(node: ProxyNode): Pool;
  onRejections(stream: ProxyStream, rejections: readonly Rejection[]): void;
  onSettled(stream: ProxyStream): void;
  onWritten(bytes: number): void;
}

/** One delta ADS stream: takes requests in, writes as much as the transport takes. */
export class ProxyStream {
  readonly #call: DeltaCall;
  readonly #events: ProxyStreamEvents;
  readonly #subscription = new StreamSubscription();
  #node: ProxyNode | undefined;
  #pool: Pool | undefined;
  #view: ProxyView | undefined;
  #writable = true;
  #settled = false;

  constructor(call: DeltaCall, events: ProxyStreamEvents) {
    this.#call = call;
    this.#events = events;
    call.on("data", (incoming: WireRequest) => this.#receive(incoming));
    call.on("drain", () => {
      this.#writable = true;
      this.pump();
    });
    call.on("end", () => call.end());
  }

  get node(): ProxyNode | undefined {
    return this.#node;
  }

  /** The pool's snapshot changed; so may have what this proxy alone gets. */
  changed(changes: readonly Change[]): void {
    if (this.#pool === undefined || this.#node === undefined) return;
    const before = this.#view?.own ?? [];
    this.#view = this.#pool.viewOf(this.#node);
    for (const { typeUrl, name } of [...changes, ...before, ...this.#view.own])
      this.#subscription.touch(typeUrl, [name]);
  }

  touch(typeUrl: string, name: string): void {
    this.#subscription.touch(typeUrl, [name]);
  }

  /** Writes what may go now. Never waits: a slow proxy gets the newest state when it reads again. */
  pump(): void {
    if (this.#pool?.ready !== true || this.#node === undefined) return;
    this.#view ??= this.#pool.viewOf(this.#node);
    while (this.#writable) {
      const response = this.#subscription.next(this.#view);
      if (response === undefined) break;
      this.#settled = false;
      const bytes = encodeResponse(response);
      this.#events.onWritten(bytes.length);
      this.#writable = this.#call.write(bytes);
    }
    if (this.#settled || !this.#subscription.inSync) return;
    this.#settled = true;
    this.#events.onSettled(this);
  }

  status(): ProxyStatus | undefined {
    if (this.#node === undefined) return undefined;
    const { id, pool, envoyVersion } = this.#node;
    const served = this.#pool?.ready === true;
    return {
      id,
      pool,
      envoyVersion,
      peer: this.#call.getPeer(),
      served,
      inSync: served && this.#subscription.inSync,
      types: this.#subscription.status(),
    };
  }

  /** Ends the stream with a reason that the proxy logs; it connects again. */
  fail(code: grpcStatus, details: string): void {
    this.#writable = false;
    this.#call.emit("error", { code, details });
  }

  #receive({ node, request }: WireRequest): void {
    if (this.#node === undefined) {
      if (node === undefined || node.id === "")
        return this.fail(grpcStatus.INVALID_ARGUMENT, "the first request names no node id");
      this.#node = node;
      this.#pool = this.#events.onNode(node);
    }
    const rejections = this.#subscription.receive(request);
    if (this.#subscription.subscriptionCount > subscriptionsMax)
      return this.fail(grpcStatus.RESOURCE_EXHAUSTED, `more than ${subscriptionsMax} names`);
    if (rejections.length > 0) this.#events.onRejections(this, rejections);
    this.pump();
  }
}
