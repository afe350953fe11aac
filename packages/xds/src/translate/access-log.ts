import { packAny } from "@belay/envoy-api";
import { StdoutAccessLogSchema } from "@belay/envoy-api/gen/extensions/access_loggers/stream/v3/stream";
import type { EdgeOptions } from "./input.ts";

const fields = {
  time: "%START_TIME%",
  request_id: "%REQ(X-REQUEST-ID)%",
  method: "%REQ(:METHOD)%",
  host: "%REQ(:AUTHORITY)%",
  route: "%ROUTE_NAME%",
  protocol: "%PROTOCOL%",
  status: "%RESPONSE_CODE%",
  details: "%RESPONSE_CODE_DETAILS%",
  flags: "%RESPONSE_FLAGS%",
  duration_ms: "%DURATION%",
  bytes_in: "%BYTES_RECEIVED%",
  bytes_out: "%BYTES_SENT%",
  client: "%DOWNSTREAM_REMOTE_ADDRESS%",
  upstream: "%UPSTREAM_HOST%",
  attempts: "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
  key: "%DYNAMIC_METADATA(belay:key)%",
  owner: "%DYNAMIC_METADATA(belay:owner)%",
  epoch: "%DYNAMIC_METADATA(belay:epoch)%",
  outcome: "%DYNAMIC_METADATA(belay:outcome)%",
};

/** One JSON line per request. A path often holds the key, so it stands there only when keys may. */
export const toAccessLogs = (mode: EdgeOptions["accessLog"]) => {
  if (mode === "off") return [];
  const path = mode === "plain" ? { path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%" } : {};
  const value = packAny(StdoutAccessLogSchema, {
    accessLogFormat: {
      case: "logFormat",
      value: {
        format: { case: "jsonFormat", value: { ...fields, ...path } },
        omitEmptyValues: true,
      },
    },
  });
  return [
    {
      name: "envoy.access_loggers.stdout",
      configType: { case: "typedConfig" as const, value },
    },
  ];
};
