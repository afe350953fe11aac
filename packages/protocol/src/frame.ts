import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Frame, FrameSchema } from "./gen/belay/v1/frame_pb.ts";

/** Longest encoded `Frame`, length prefix not counted. */
export const FRAME_BYTES_MAX = 1024 * 1024;
const PREFIX_BYTES = 4;
const HELD_BYTES_START = 1024;

/** What `encodeFrame` takes: `{ case: "ping", value: { nonce: 1 } }`. */
export type FrameBodyInit = Extract<
  NonNullable<MessageInitShape<typeof FrameSchema>["body"]>,
  { case: string }
>;

/** A decoded frame's body, never absent. */
export type FrameBody = Extract<Frame["body"], { case: string }>;

/** The names of all frames. */
export type FrameCase = FrameBody["case"];

/** A peer broke the framing: the connection ends, because nothing after it can be trusted. */
export class BadFrame extends Error {
  override readonly name = "BadFrame";
  readonly code = "bad-frame";
}

/**
 * One frame as it goes on the wire: u32 big-endian length, then the message. The buffer may be
 * written to any number of peers (encode once, broadcast). Throws BadFrame beyond FRAME_BYTES_MAX.
 */
export function encodeFrame(body: FrameBodyInit): Buffer {
  const message = toBinary(FrameSchema, create(FrameSchema, { body }));
  if (message.length > FRAME_BYTES_MAX) {
    throw new BadFrame(
      `frame ${body.case} has ${message.length} bytes, more than ${FRAME_BYTES_MAX}: split it`,
    );
  }
  const wire = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  wire.writeUInt32BE(message.length, 0);
  wire.set(message, PREFIX_BYTES);
  return wire;
}

/** Cuts a byte stream into frames; holds at most one frame's bytes. */
export class FrameDecoder {
  readonly #onFrame: (body: FrameBody) => void;
  #held = Buffer.alloc(0);
  #heldLength = 0;
  #stopped = false;

  constructor(onFrame: (body: FrameBody) => void) {
    this.#onFrame = onFrame;
  }

  /**
   * Takes the next bytes, cut anywhere, and calls back once per complete frame, in order. Throws
   * BadFrame, after which the decoder takes nothing more.
   */
  push(chunk: Uint8Array): void {
    if (this.#stopped) return;
    const bytes = this.#join(chunk);
    let offset = 0;
    while (bytes.length - offset >= PREFIX_BYTES && !this.#stopped) {
      const length = this.#lengthAt(bytes, offset);
      const end = offset + PREFIX_BYTES + length;
      if (bytes.length < end) break;
      this.#deliver(bytes.subarray(offset + PREFIX_BYTES, end));
      offset = end;
    }
    this.#hold(bytes, offset);
  }

  /** Delivers nothing more, not even frames already received: the connection is being closed. */
  stop(): void {
    this.#stopped = true;
    this.#held = Buffer.alloc(0);
    this.#heldLength = 0;
  }

  /** The held bytes and `chunk` as one view; no copy in the usual case that nothing is held. */
  #join(chunk: Uint8Array): Buffer {
    if (this.#heldLength === 0) {
      return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    }
    const total = this.#heldLength + chunk.length;
    if (this.#held.length < total) {
      // Doubling keeps a frame that arrives byte by byte linear.
      const grown = Buffer.allocUnsafe(Math.max(total, this.#held.length * 2, HELD_BYTES_START));
      grown.set(this.#held.subarray(0, this.#heldLength));
      this.#held = grown;
    }
    this.#held.set(chunk, this.#heldLength);
    this.#heldLength = total;
    return this.#held.subarray(0, total);
  }

  #hold(bytes: Buffer, offset: number): void {
    if (this.#stopped) return;
    const rest = bytes.subarray(offset);
    if (offset === 0 && this.#heldLength > 0) return;
    // A copy: views given out by earlier frames, and the caller's chunk, are not ours to keep.
    this.#held = Buffer.from(rest);
    this.#heldLength = rest.length;
  }

  #lengthAt(bytes: Buffer, offset: number): number {
    const length = bytes.readUInt32BE(offset);
    if (length === 0 || length > FRAME_BYTES_MAX) {
      this.stop();
      throw new BadFrame(`frame length ${length} is outside 1..${FRAME_BYTES_MAX}`);
    }
    return length;
  }

  #deliver(message: Uint8Array): void {
    let frame: Frame;
    try {
      frame = fromBinary(FrameSchema, message);
    } catch (cause) {
      this.stop();
      throw new BadFrame("frame is not a belay.v1.Frame", { cause });
    }
    if (frame.body.case === undefined) {
      this.stop();
      throw new BadFrame("frame has no body known to this version");
    }
    this.#onFrame(frame.body);
  }
}
