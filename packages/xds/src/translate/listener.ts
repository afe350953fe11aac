import { packAny } from "@belay/envoy-api";
import { SocketAddress_Protocol } from "@belay/envoy-api/gen/config/core/v3/address";
import { ListenerSchema } from "@belay/envoy-api/gen/config/listener/v3/listener";
import { RouterSchema } from "@belay/envoy-api/gen/extensions/filters/http/router/v3/router";
import {
  HttpConnectionManager_CodecType,
  HttpConnectionManager_PathWithEscapedSlashesAction,
  HttpConnectionManager_ServerHeaderTransformation,
  HttpConnectionManagerSchema,
} from "@belay/envoy-api/gen/extensions/filters/network/http_connection_manager/v3/http_connection_manager";
import type { Draft } from "../resources/resource.ts";
import { toAccessLogs } from "./access-log.ts";
import { adsSource, duration, toDraft } from "./draft.ts";
import { type EdgeAddress, type EdgeOptions, names } from "./input.ts";
import { toEdgeFilter } from "./module.ts";

/** What a connection may keep in memory for a peer that does not read or whose request is held. */
const connectionBufferBytes = 256 * 1024;
/** Bounds what an answer held for its minted key costs (envoy.md 1b.13), and a slow reader's stream. */
const streamWindowBytes = 64 * 1024;
const connectionWindowBytes = 1024 * 1024;
const streamsPerConnectionMax = 1024;
/**
 * Time to send the headers of a request: a stream begins with their first byte, and none of them counts as a sign of
 * life. Each route has its own limit after that. (Envoy's `request_headers_timeout` says the same with a second timer.)
 */
const streamIdleMs = 10_000;
/** Time for a client to take the rest of an answer that has ended. */
const streamFlushMs = 60_000;
const connectionIdleMs = 300_000;

const httpFilters = ({ module, accessLog }: EdgeOptions) => {
  const router = {
    name: "envoy.filters.http.router",
    // What Envoy would tell servers and clients of itself: nobody asked, and each header costs.
    configType: {
      case: "typedConfig" as const,
      value: packAny(RouterSchema, { suppressEnvoyHeaders: true }),
    },
  };
  if (module === null) return [router];
  const keyInLogs = accessLog === "plain" ? "plain" : "hash";
  const edge = toEdgeFilter(module, { access_log: accessLog !== "off", key_in_logs: keyInLogs });
  return [edge, router];
};

const connectionManager = (options: EdgeOptions) =>
  packAny(HttpConnectionManagerSchema, {
    statPrefix: names.listener,
    codecType: HttpConnectionManager_CodecType.AUTO,
    routeSpecifier: {
      case: "rds",
      // 0: the port opens with routes or not at all.
      value: { routeConfigName: names.routes, configSource: adsSource(duration(0)) },
    },
    httpFilters: httpFilters(options),
    accessLog: toAccessLogs(options.accessLog),
    // Also where no route allows it: else stock Envoy answers 403 in place of our reason.
    upgradeConfigs: [{ upgradeType: "websocket" }],
    commonHttpProtocolOptions: { idleTimeout: duration(connectionIdleMs) },
    http2ProtocolOptions: {
      allowConnect: true,
      maxConcurrentStreams: streamsPerConnectionMax,
      initialStreamWindowSize: streamWindowBytes,
      initialConnectionWindowSize: connectionWindowBytes,
    },
    streamIdleTimeout: duration(streamIdleMs),
    streamFlushTimeout: duration(streamFlushMs),
    useRemoteAddress: true,
    // `play.example.com.` is the same host to DNS; the server sees it without its dot too.
    stripTrailingHostDot: true,
    serverHeaderTransformation: HttpConnectionManager_ServerHeaderTransformation.PASS_THROUGH,
    // `..` is resolved before a route is chosen; the bytes of a key are left as they came.
    normalizePath: true,
    mergeSlashes: false,
    pathWithEscapedSlashesAction: HttpConnectionManager_PathWithEscapedSlashesAction.KEEP_UNCHANGED,
  });

/**
 * The edge's one listener, for HTTP/1.1, h2c and WebSockets. It depends on nothing that services say,
 * as a change of it would cut every socket (rule 6).
 */
export const toListener = ({ address, port }: EdgeAddress, options: EdgeOptions): Draft =>
  toDraft(ListenerSchema, {
    name: names.listener,
    sources: [],
    message: {
      name: names.listener,
      address: {
        address: {
          case: "socketAddress",
          value: {
            protocol: SocketAddress_Protocol.TCP,
            address,
            portSpecifier: { case: "portValue", value: port },
          },
        },
      },
      perConnectionBufferLimitBytes: connectionBufferBytes,
      filterChains: [
        {
          filters: [
            {
              name: "envoy.filters.network.http_connection_manager",
              configType: { case: "typedConfig", value: connectionManager(options) },
            },
          ],
        },
      ],
    },
  });
