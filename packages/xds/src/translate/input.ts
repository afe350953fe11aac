import type { Ownership, Service } from "@belay/model";

/** What a translation reads of a service; a linked `Service` of @belay/model is one. */
export interface ServiceConfig extends Pick<
  Service,
  | "name"
  | "hosts"
  | "protocol"
  | "routes"
  | "replayBytes"
  | "envelopeBytes"
  | "closeCode"
  | "source"
> {
  readonly ownership: Pick<Ownership, "guard" | "parkMs" | "unknownKeyStatus">;
}

/**
 * Where proxies find libbelay.so: `name` as `lib<name>.so` in their
 * ENVOY_DYNAMIC_MODULES_SEARCH_PATH, or a file.
 */
export type ModuleLocation = { readonly name: string } | { readonly file: string };

/** What all proxies of a pool have in common. */
export interface EdgeOptions {
  /** Null: plain round robin without ownership, for tests of everything else. */
  readonly module: ModuleLocation | null;
  /** One JSON line per request on stdout; keys in it hashed, or plain where asked for. */
  readonly accessLog: "off" | "hash" | "plain";
}

/** Where a proxy listens for clients. */
export interface EdgeAddress {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
}

/** Names that bootstrap, listeners, routes and endpoints must agree on. */
export const names = {
  listener: "edge",
  routes: "edge",
  room: "belay_room",
} as const;
