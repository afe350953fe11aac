import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { typeUrls } from "@belay/envoy-api";
import { ClusterLoadAssignmentSchema } from "@belay/envoy-api/gen/config/endpoint/v3/endpoint";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from "@belay/envoy-api/gen/service/discovery/v3/discovery";

interface Held {
  readonly version: string;
  readonly value: Uint8Array;
}

type RequestInit = Exclude<
  MessageInitShape<typeof DeltaDiscoveryRequestSchema>,
  { $typeName: string }
>;

const path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
/** A proxy as the xDS server sees one: subscribes as Envoy does, acknowledges, or refuses by name. */
export class DeltaClient {
  readonly held = new Map<string, Map<string, Held>>();
  /** Names that it refuses, with the words that it says. */
  readonly refuses = new Map<string, string>();
  /** `Type name` of everything that came, in order. */
  readonly received: string[] = [];
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;
  readonly #name: string;
  #first = true;
  #unread = Buffer.alloc(0);

  constructor(port: number, name: string) {
    this.#name = name;
    this.#session = connect(`http://127.0.0.1:${port}`);
    this.#session.on("error", () => undefined);
    this.#stream = this.#session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    this.#stream.on("data", (bytes: Buffer) => this.#read(bytes));
    this.#stream.on("error", () => undefined);
    this.#send(typeUrls.cluster, {});
    this.#send(typeUrls.listener, {});
    this.#send(typeUrls.route, { resourceNamesSubscribe: ["edge"] });
  }

  names(typeUrl: string): string[] {
    return [...(this.held.get(typeUrl)?.keys() ?? [])].toSorted();
  }

  /** `IP:port` of a service's endpoints; undefined: nothing was said of them. */
  addresses(service: string): string[] | undefined {
    const held = this.held.get(typeUrls.endpoint)?.get(service);
    if (held === undefined) return undefined;
    const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, held.value);
    return endpoints.flatMap(({ lbEndpoints }) =>
      lbEndpoints.flatMap(({ hostIdentifier }) => {
        const address =
          hostIdentifier.case === "endpoint" ? hostIdentifier.value.address?.address : undefined;
        if (address?.case !== "socketAddress") return [];
        const { address: host, portSpecifier } = address.value;
        return [`${host}:${String(portSpecifier.value)}`];
      }),
    );
  }

  close(): void {
    this.#stream.destroy();
    this.#session.destroy();
  }

  /** gRPC's framing: a byte of flags, the length, the message. */
  #read(bytes: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, bytes]);
    while (this.#unread.length >= 5) {
      const end = 5 + this.#unread.readUInt32BE(1);
      if (this.#unread.length < end) break;
      this.#take(this.#unread.subarray(5, end));
      this.#unread = this.#unread.subarray(end);
    }
  }

  #take(bytes: Buffer): void {
    const response = fromBinary(DeltaDiscoveryResponseSchema, bytes);
    const { typeUrl, nonce } = response;
    const held = this.held.get(typeUrl) ?? new Map<string, Held>();
    this.held.set(typeUrl, held);
    const refused: string[] = [];
    const fresh: string[] = [];
    for (const { name, version, resource } of response.resources) {
      this.received.push(`${typeUrl.slice(typeUrl.lastIndexOf(".") + 1)} ${name}`);
      const words = this.refuses.get(name);
      if (words !== undefined) {
        refused.push(words);
        continue;
      }
      if (!held.has(name)) fresh.push(name);
      held.set(name, { version, value: resource?.value ?? new Uint8Array() });
    }
    for (const name of response.removedResources) held.delete(name);
    const errorDetail =
      refused.length === 0 ? {} : { errorDetail: { code: 13, message: refused.join("\n") } };
    this.#send(typeUrl, { responseNonce: nonce, ...errorDetail });
    if (typeUrl === typeUrls.cluster && fresh.length > 0) {
      this.#send(typeUrls.endpoint, { resourceNamesSubscribe: fresh });
    }
  }

  #send(typeUrl: string, init: RequestInit): void {
    const node = {
      id: this.#name,
      cluster: "edge",
      userAgentVersionType: {
        case: "userAgentBuildVersion" as const,
        value: { version: { majorNumber: 1, minorNumber: 40, patch: 0 } },
      },
    };
    const request = create(DeltaDiscoveryRequestSchema, {
      ...init,
      typeUrl,
      ...(this.#first ? { node } : {}),
    });
    this.#first = false;
    const message = toBinary(DeltaDiscoveryRequestSchema, request);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    this.#stream.write(Buffer.concat([head, message]));
  }
}
