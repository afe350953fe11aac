// An external processor that does what Belay's path key does: key out of the path, owner out of a map,
// path without the key and the owner's address back as header mutations.
// Arguments: port, number of keys, owners' addresses. Reads and writes only the fields it needs, by hand:
// a generated codec would cost it more.
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type ServerDuplexStream, Server, ServerCredentials } from "@grpc/grpc-js";

const [port = "", keys = "", ...owners] = process.argv.slice(2);
const APPEND_OVERWRITE = 2;
const ownerOf = new Map<string, string>();
for (let key = 0; key < Number(keys); key += 1) {
  ownerOf.set(`key-${String(key).padStart(12, "0")}`, owners[key % owners.length] ?? "");
}

/** The bytes of each field `number` of a message. */
function* fieldsOf(bytes: Uint8Array, wanted: number): Generator<Uint8Array> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === wanted && type === WireType.LengthDelimited) yield reader.bytes();
    else reader.skip(type, number);
  }
}

const textOf = (bytes: Uint8Array, field: number): string =>
  Buffer.from(fieldsOf(bytes, field).next().value ?? []).toString();

/** ProcessingRequest.request_headers.headers.headers[":path"], as value or raw_value. */
function readPath(message: Uint8Array): string {
  for (const httpHeaders of fieldsOf(message, 2)) {
    for (const map of fieldsOf(httpHeaders, 1)) {
      for (const header of fieldsOf(map, 1)) {
        if (textOf(header, 1) === ":path") return textOf(header, 3) || textOf(header, 2);
      }
    }
  }
  return "";
}

/** ProcessingResponse.request_headers.response.header_mutation.set_headers */
function writeAnswer(headers: readonly (readonly [string, string])[]): Buffer {
  const writer = new BinaryWriter();
  const open = (field: number): BinaryWriter => writer.tag(field, WireType.LengthDelimited).fork();
  open(1);
  open(1);
  open(2);
  for (const [name, value] of headers) {
    open(1);
    open(1);
    writer.tag(1, WireType.LengthDelimited).string(name);
    writer.tag(3, WireType.LengthDelimited).bytes(Buffer.from(value));
    writer.join();
    writer.tag(3, WireType.Varint).int32(APPEND_OVERWRITE);
    writer.join();
  }
  return Buffer.from(writer.join().join().join().finish());
}

function answer(path: string): Buffer {
  const end = path.indexOf("/", "/s/".length);
  const key = path.slice("/s/".length, end);
  return writeAnswer([
    [":path", path.slice(end)],
    ["x-destination", ownerOf.get(key) ?? ""],
  ]);
}

const server = new Server();
const method = {
  path: "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
  requestStream: true,
  responseStream: true,
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: readPath,
  responseSerialize: answer,
  responseDeserialize: String,
};
server.addService(
  { process: method },
  {
    process: (call: ServerDuplexStream<string, string>) => {
      // It ends the stream first: Envoy would reset it, and Node takes many resets for an attack.
      call.on("data", (path: string) => {
        call.write(path);
        call.end();
      });
      call.on("error", () => undefined);
    },
  },
);
server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  process.stdout.write("ready\n");
});
