/** 1-based place in a service file. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export type EnvelopeId = "app" | "server" | "player" | "envelope";

/** Field numbers of the envelope's own members. */
export interface EnvelopeNumbers {
  readonly marker: number;
  readonly version: number;
  readonly app: number;
  readonly server: number;
  readonly player: number;
  readonly envelope: number;
}

/** Path place. `template` has no trailing slash or `**`: `/s/{key}` or `/s/{server}`. */
export interface PathPlace {
  readonly from: "path";
  readonly template: string;
  readonly strip: boolean;
}

export interface NamedPlace {
  /** Header and cookie names: headers in lower case. */
  readonly from: "header" | "cookie" | "query";
  readonly name: string;
}

/** `{key}.play.example.com`: one whole label is the key; lower case. */
export interface HostPlace {
  readonly from: "host";
  readonly template: string;
}

export interface EnvelopePlace {
  readonly from: "envelope";
  /** Top-level field of the request message; 0: any. */
  readonly field: number;
  readonly marker: string;
  /** The ids that make the key, joined by `/`. */
  readonly use: readonly EnvelopeId[];
  readonly numbers: EnvelopeNumbers;
}

export type KeyPlace = PathPlace | NamedPlace | HostPlace | EnvelopePlace;

/** Where the server's first answer carries the key that it made (A7). */
export type MintedPlace =
  | { readonly from: "header" | "cookie"; readonly name: string }
  | { readonly from: "json"; readonly path: string }
  | { readonly from: "body"; readonly pattern: string };

/** What a route does about keys. No places: balanced over active servers. */
export interface KeyRule {
  readonly places: readonly KeyPlace[];
  readonly minted?: MintedPlace;
  /** A request without a key: 400 `no-key`, or balanced (minted services, server ids, `key: none`). */
  readonly noKey: "refuse" | "balance";
}

export type PlacementPolicy = "least-loaded" | "spread" | "pack" | "rendezvous";

/** The ownership facts of protocol.md, all times in milliseconds. */
export interface Ownership {
  readonly guard: "none" | "sdk";
  readonly placement: PlacementPolicy;
  readonly idleMs: number;
  /** L: how long a server may act after its last renewal. */
  readonly leaseMs: number;
  /** F ≤ L: how long a proxy may believe an answer. */
  readonly believeMs: number;
  readonly drainMs: number;
  /** Longer than `drainMs`, so that no request is lost in a move (M5). */
  readonly parkMs: number;
  readonly movesPerSecond: number;
  readonly unknownKeyStatus: number;
}

/** `path`: the whole path. `prefix`: ends at a segment border, so `/rpc` is not `/rpcs`. */
export interface RouteMatch {
  readonly kind: "path" | "prefix";
  readonly value: string;
}

/** Answered by the edge itself. */
export interface DirectResponse {
  readonly status: number;
  readonly body: string;
  readonly contentType: string;
}

export interface Route {
  readonly match: RouteMatch;
  /** Present: the edge answers, nothing is forwarded. */
  readonly respond?: DirectResponse;
  readonly key: KeyRule;
  /** Of the whole answer; 0: no limit. WebSockets do not count. */
  readonly timeoutMs: number;
  /** False: upgrades are refused on this route. */
  readonly websocket: boolean;
  readonly websocketIdleMs: number;
  /** Where the route stands in the file; the implicit last route `/` has the service's place. */
  readonly path: string;
}

/** One service file, checked, with every default filled in. Plain JSON: it survives a round trip. */
export interface Service {
  readonly name: string;
  readonly team?: string;
  /** Lower case, without port: names, `*.suffix`, or `*`. Each belongs to one service only. */
  readonly hosts: readonly string[];
  readonly protocol: "http1" | "h2";
  readonly key: KeyRule;
  readonly ownership: Ownership;
  /** First match wins. The last is always prefix `/`: implicit unless the file has one. */
  readonly routes: readonly Route[];
  /** Largest body that can be sent again after a refusal, in bytes. */
  readonly replayBytes: number;
  /** Scan limit of the envelope, in bytes. */
  readonly envelopeBytes: number;
  /** Of sockets whose key moves, closed by the edge (unguarded services). */
  readonly closeCode: number;
  readonly source: ServiceSource;
}

/** Where each member stands: `positions["routes[0].timeout"]`; `""` is the document. */
export interface ServiceSource {
  readonly file: string;
  readonly positions: Readonly<Record<string, Position>>;
}
