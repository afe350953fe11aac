/** A protobuf message with the envelope { 1: "belay1", 2: 1, 5: player } in field 12, and a payload in field 1. */
export function envelopeOf(player: string, payloadBytes = 32): Buffer {
  const field = (number: number, value: Buffer): Buffer =>
    Buffer.concat([varint((number << 3) | 2), varint(value.length), value]);
  const envelope = Buffer.concat([
    field(1, Buffer.from("belay1")),
    varint(2 << 3),
    varint(1),
    field(5, Buffer.from(player)),
  ]);
  return Buffer.concat([field(12, envelope), field(1, Buffer.alloc(payloadBytes, 7))]);
}

export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
