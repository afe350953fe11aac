/** Longest key, in bytes of UTF-8. */
export const KEY_BYTES_MAX = 256;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
// C0, DEL and C1: none of them can be told apart in a log line or a header.
const control = /\p{Cc}/u;

/** The key that these bytes spell; undefined unless 1-256 bytes of UTF-8 without control characters. */
export function parseKey(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0 || bytes.length > KEY_BYTES_MAX) return undefined;
  try {
    const text = decoder.decode(bytes);
    return control.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** True for a text that is a key; false also for one with lone surrogates, which no bytes spell. */
export const isKey = (text: string): boolean =>
  text.isWellFormed() && parseKey(encoder.encode(text)) === text;

const hexDigit = (code: number): number => {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
};

/** Bytes of a percent-encoded text, decoded once; `+` stays a plus. Undefined if a `%` is broken. */
export function percentDecode(text: string): Uint8Array | undefined {
  const raw = encoder.encode(text);
  const out = new Uint8Array(raw.length);
  let length = 0;
  for (let at = 0; at < raw.length; at += 1) {
    let byte = raw[at] ?? 0;
    if (byte === 0x25) {
      const high = hexDigit(raw[at + 1] ?? 0);
      const low = hexDigit(raw[at + 2] ?? 0);
      if (high < 0 || low < 0) return undefined;
      byte = high * 16 + low;
      at += 2;
    }
    out[length] = byte;
    length += 1;
  }
  return out.subarray(0, length);
}

/** The key of a percent-encoded path segment or query value; undefined: `bad-key`. */
export function decodeKey(text: string): string | undefined {
  const bytes = percentDecode(text);
  return bytes === undefined ? undefined : parseKey(bytes);
}

const unreserved = /[A-Za-z0-9\-._~]/;

/** The key as `x-belay-key` carries it: RFC 3986 unreserved characters, all else %XX in upper case. */
export function encodeKey(key: string): string {
  let text = "";
  for (const byte of encoder.encode(key)) {
    const char = String.fromCodePoint(byte);
    text += unreserved.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}
