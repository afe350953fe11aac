/** Percent-encoded by Envoy where they stand in a path; left alone in a query. */
const encodedInPaths = /["<>^`{|}]/g;
/** Never decoded away by RFC 3986, section 6.2.2.2. */
const unreserved = /[A-Za-z0-9\-._~]/;
/** What no request line carries: clients percent-encode it before they send. */
const neverSent = /[^\x21-\x7e]+/gu;

/** In place of a `%` without two digits, while a path is rewritten; no path has it then. */
const BROKEN = "\n";
const newlyFormed = /\n(?=[0-9a-f]{2})/gi;

const encoder = new TextEncoder();

const percent = (text: string): string =>
  Array.from(
    encoder.encode(text),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join("");

/**
 * A path with its query as Envoy's connection manager leaves it before any route is chosen, with the
 * settings of xds/translate/listener.ts (`normalize_path`; slashes are neither merged nor decoded).
 * Undefined: Envoy cannot read it and answers 400. test/control-plane/paths.test.ts compares it with a real one.
 */
export function normalizePath(sent: string): string | undefined {
  const path = sent.replace(neverSent, percent);
  const end = path.indexOf("?");
  const plain = end < 0 ? path : path.slice(0, end);
  const query = end < 0 ? "" : path.slice(end);
  // `..;x` is what some servers behind a proxy take for `..`, so Envoy does too.
  const bare = plain.replace(/\/(\.\.?);[^/]*/g, "/$1");
  if (bare.includes("%00")) return undefined;
  const written = bare
    .replaceAll("\\", "/")
    .replace(/%([0-9a-f]{2})?/gi, (whole, hex: string | undefined) => {
      if (hex === undefined) return BROKEN;
      const char = String.fromCodePoint(Number.parseInt(hex, 16));
      return unreserved.test(char) ? char : whole;
    })
    // `%%34%31` must not become an escape that was not there; elsewhere a broken one stays.
    .replace(newlyFormed, "%25")
    .replaceAll(BROKEN, "%")
    .replace(encodedInPaths, percent);
  return resolveDots(written) + query;
}

/** RFC 3986, section 5.2.4; an empty segment is a segment like others. */
function resolveDots(path: string): string {
  const segments = path.split("/").slice(1);
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  const last = segments.at(-1);
  // `/a/..` is the folder `/`, not nothing.
  if (last === "." || last === "..") kept.push("");
  return `/${kept.join("/")}`;
}
