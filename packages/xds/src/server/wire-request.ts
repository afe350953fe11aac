import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import {
  type DeltaDiscoveryRequest,
  DeltaDiscoveryRequestSchema,
} from "@belay/envoy-api/gen/service/discovery/v3/discovery";
import { field } from "../resources/wire.ts";
import type { Request, Response } from "../subscription/stream.ts";

/** Who is at the other end of a stream, as its bootstrap says. */
export interface ProxyNode {
  /** Its name. */
  readonly id: string;
  /** Node cluster: the pool. */
  readonly pool: string;
  readonly envoyVersion: string;
  readonly metadata: JsonObject;
}

export interface WireRequest {
  /** On the first request of a stream only. */
  readonly node: ProxyNode | undefined;
  readonly request: Request;
}

/** Kept of what a proxy says of a refusal. */
const errorLengthMax = 4096;

const toNode = ({ node }: DeltaDiscoveryRequest): ProxyNode | undefined => {
  if (node === undefined) return undefined;
  const build = node.userAgentVersionType;
  const version = build.case === "userAgentBuildVersion" ? build.value.version : undefined;
  const { majorNumber = 0, minorNumber = 0, patch = 0 } = version ?? {};
  return {
    id: node.id,
    pool: node.cluster,
    envoyVersion: `${majorNumber}.${minorNumber}.${patch}`,
    metadata: node.metadata ?? {},
  };
};

/** Throws when the bytes are no DeltaDiscoveryRequest. */
export const decodeRequest = (bytes: Uint8Array): WireRequest => {
  const message = fromBinary(DeltaDiscoveryRequestSchema, bytes);
  const request = {
    typeUrl: message.typeUrl,
    subscribe: message.resourceNamesSubscribe,
    unsubscribe: message.resourceNamesUnsubscribe,
    held: message.initialResourceVersions,
    nonce: message.responseNonce,
    error: message.errorDetail?.message.slice(0, errorLengthMax),
  };
  return { node: toNode(message), request };
};

/** A DeltaDiscoveryResponse around bytes that all streams share (rule 12). */
export const encodeResponse = ({ typeUrl, nonce, resources, removed }: Response): Buffer =>
  Buffer.concat([
    ...resources.map((resource) => resource.framed),
    field(4, typeUrl),
    field(5, nonce),
    ...removed.map((name) => field(6, name)),
  ]);
