// The few lines of protobuf encoding that the hot paths need: joining bytes that are encoded already.

const varint = (value: number): number[] => {
  const out: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    out.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  out.push(rest);
  return out;
};

/** Tag and length of a length-delimited field whose content is `length` bytes. */
export const fieldHead = (number: number, length: number): Buffer =>
  Buffer.from([...varint((number << 3) | 2), ...varint(length)]);

/** One length-delimited field: bytes, a string or a sub-message. */
export const field = (number: number, content: Uint8Array | string): Buffer => {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return Buffer.concat([fieldHead(number, bytes.length), bytes]);
};
