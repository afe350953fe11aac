import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import { BadFrame, encodeFrame, type FrameBody, FrameDecoder, FRAME_BYTES_MAX } from "./frame.ts";

const ping = (nonce: number): Buffer => encodeFrame({ case: "ping", value: { nonce } });

function decodeAll(chunks: Iterable<Uint8Array>): FrameBody[] {
  const bodies: FrameBody[] = [];
  const decoder = new FrameDecoder((body) => bodies.push(body));
  for (const chunk of chunks) decoder.push(chunk);
  return bodies;
}

function cut(bytes: Buffer, sizes: number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let offset = 0;
  for (let at = 0; offset < bytes.length; at += 1) {
    const size = sizes[at % sizes.length] ?? 1;
    chunks.push(bytes.subarray(offset, offset + size));
    offset += size;
  }
  return chunks;
}

test("frames survive every way of cutting the stream", () => {
  const frame = fc.oneof(
    fc.nat().map((nonce) => ping(nonce)),
    fc
      .tuple(fc.string({ maxLength: 3000 }), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }))
      .map(([key, minRevision]) => encodeFrame({ case: "resolve", value: { key, minRevision } })),
    fc
      .uint8Array({ minLength: 16, maxLength: 64 })
      .map((secret) => encodeFrame({ case: "register", value: { secret, serverId: "a" } })),
  );
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 8 }),
      (frames, sizes) => {
        const bodies = decodeAll(cut(Buffer.concat(frames), sizes));
        assert.equal(bodies.length, frames.length);
        for (const [index, body] of bodies.entries()) {
          assert.deepEqual(encodeFrame(body), frames[index]);
        }
      },
    ),
  );
});

test("bytes that are no frames give BadFrame or frames, never another error, and hold little", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 20 }),
      fc.boolean(),
      (chunks, prefixed) => {
        const decoder = new FrameDecoder((body) => assert.ok(body.value));
        try {
          for (const chunk of chunks) {
            if (prefixed) {
              const wire = Buffer.alloc(4);
              wire.writeUInt32BE(chunk.length);
              decoder.push(wire);
            }
            decoder.push(chunk);
          }
        } catch (error) {
          assert.ok(error instanceof BadFrame, String(error));
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test("a length of 0 or beyond the limit is refused before its bytes are awaited", () => {
  for (const length of [0, FRAME_BYTES_MAX + 1, 0xffff_ffff]) {
    const wire = Buffer.alloc(4);
    wire.writeUInt32BE(length);
    assert.throws(() => decodeAll([wire]), BadFrame);
  }
});

test("a frame that this version does not know is refused", () => {
  const unknown = Buffer.from([0, 0, 0, 4, 0xfa, 0x3e, 1, 0]);
  assert.throws(() => decodeAll([unknown]), BadFrame);
});

test("frames before a broken one are delivered, nothing after it is", () => {
  const bodies: FrameBody[] = [];
  const decoder = new FrameDecoder((body) => bodies.push(body));
  assert.throws(() => decoder.push(Buffer.concat([ping(1), Buffer.alloc(4), ping(2)])), BadFrame);
  decoder.push(ping(3));
  assert.deepEqual(
    bodies.map((body) => body.case),
    ["ping"],
  );
});

test("a handler that stops the decoder gets nothing more of the chunk", () => {
  let delivered = 0;
  const decoder = new FrameDecoder(() => {
    delivered += 1;
    decoder.stop();
  });
  decoder.push(Buffer.concat([ping(1), ping(2)]));
  assert.equal(delivered, 1);
});

test("bytes of a delivered frame do not change when later bytes arrive", () => {
  const bodies: FrameBody[] = [];
  const decoder = new FrameDecoder((body) => bodies.push(body));
  const secret = new Uint8Array(32).fill(7);
  const wire = Buffer.concat([encodeFrame({ case: "register", value: { secret } }), ping(1)]);
  for (const chunk of cut(wire, [3])) decoder.push(chunk);
  const [first] = bodies;
  assert.ok(first?.case === "register");
  assert.deepEqual(Uint8Array.from(first.value.secret), secret);
});

test("a frame of exactly the limit passes, one byte more is refused by the sender", () => {
  const key = "k".repeat(FRAME_BYTES_MAX);
  assert.throws(() => encodeFrame({ case: "confirm", value: { key } }), BadFrame);
  let room = FRAME_BYTES_MAX;
  let wire: Buffer | undefined;
  while (wire === undefined && room > FRAME_BYTES_MAX - 16) {
    room -= 1;
    try {
      wire = encodeFrame({ case: "confirm", value: { key: key.slice(0, room) } });
    } catch (error) {
      assert.ok(error instanceof BadFrame);
    }
  }
  assert.ok(wire !== undefined);
  assert.equal(wire.readUInt32BE(0), FRAME_BYTES_MAX);
  assert.equal(decodeAll([wire]).length, 1);
});
