/** One length-delimited protobuf field. */
export function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content as string);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

/** A protobuf message with the envelope of `player` in field 12, behind `before` bytes of another field. */
export function envelopeBody(
  player: string,
  sizes: { before?: number; after?: number } = {},
): Buffer {
  const envelope = Buffer.concat([field(1, "belay1"), field(5, player)]);
  return Buffer.concat([
    ...(sizes.before === undefined ? [] : [field(1, Buffer.alloc(sizes.before, 1))]),
    field(12, envelope),
    ...(sizes.after === undefined ? [] : [field(2, Buffer.alloc(sizes.after, 2))]),
  ]);
}

/** A gRPC message: no compression, its length, the bytes. */
export function grpcMessage(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest & 127) | 128);
    rest >>>= 7;
  }
  return Buffer.from([...bytes, rest]);
}
