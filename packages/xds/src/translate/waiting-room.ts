import { create, toBinary } from "@bufbuild/protobuf";
import { HealthStatus } from "@belay/envoy-api/gen/config/core/v3/health_check";
import { LbEndpointSchema } from "@belay/envoy-api/gen/config/endpoint/v3/endpoint_components";
import { names } from "./input.ts";

/**
 * The endpoint that leads back into the proxy, where requests wait for an owner that can be sent to:
 * an encoded LbEndpoint, the last of every service (native/filter/README.md).
 */
export const waitingRoomEndpoint = (): Uint8Array => {
  const addressNameSpecifier = { case: "serverListenerName", value: names.room } as const;
  const value = { addressNameSpecifier, endpointId: "room" };
  return toBinary(
    LbEndpointSchema,
    create(LbEndpointSchema, {
      hostIdentifier: {
        case: "endpoint",
        value: { address: { address: { case: "envoyInternalAddress", value } } },
      },
      healthStatus: HealthStatus.HEALTHY,
    }),
  );
};
