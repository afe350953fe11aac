/** Longest path template, in bytes. */
const TEMPLATE_BYTES_MAX = 512;

/** What the placeholder names; `rest`: the key is the whole rest of the path. */
type PathNames = "key" | "rest" | "server";

/**
 * `/s/{key}/files`, taken apart. The rules are those of native/keys/src/path.rs: a template is a
 * prefix, a placeholder is one whole segment, literal segments compare byte by byte, undecoded.
 */
export interface PathTemplate {
  /** `/s/` */
  readonly before: string;
  readonly names: PathNames;
  /** `/files` */
  readonly after: string;
  /** Without the `/**` at its end, as the module is told it. */
  readonly text: string;
}

/** The template, or why it is none (a clause that follows «the template …»). */
export type PathTemplateResult =
  | { readonly ok: true; readonly template: PathTemplate }
  | { readonly ok: false; readonly why: string };

export interface PathMatch {
  /** As in the path, still percent-encoded. */
  readonly raw: string;
  /** The path with everything up to the end of the key taken away, with the query. */
  readonly stripped: string;
}

const placeholders: Readonly<Record<string, PathNames>> = {
  "{key}": "key",
  "{key...}": "rest",
  "{server}": "server",
};

function literalProblem(segment: string): string | undefined {
  if (segment === "") return "has an empty segment";
  if (/[{}]/.test(segment)) {
    return `has the segment "${segment}"; a placeholder is a whole segment: {key}, {key...} or {server}`;
  }
  if (segment.includes("*")) return "may have ** only at its end, and no other *";
  const bad = /[^\x21-\x7e]|[?#]/u.exec(segment);
  return bad === null ? undefined : `has the character "${bad[0]}", which never stands in a path`;
}

const no = (why: string): PathTemplateResult => ({ ok: false, why });

/** Takes a template apart; never throws. */
export function parsePathTemplate(text: string): PathTemplateResult {
  if (text.length > TEMPLATE_BYTES_MAX) return no(`is longer than ${TEMPLATE_BYTES_MAX} bytes`);
  if (!text.startsWith("/")) return no("must begin with /");
  const trimmed = text.endsWith("/**") ? text.slice(0, -3) : text;
  let before = "/";
  let names: PathNames | undefined;
  let after = "";
  for (const segment of trimmed.slice(1).split("/")) {
    const placeholder = placeholders[segment];
    if (placeholder !== undefined) {
      if (names !== undefined) return no("has more than one placeholder");
      names = placeholder;
      continue;
    }
    const problem = literalProblem(segment);
    if (problem !== undefined) return no(problem);
    if (names === undefined) before += `${segment}/`;
    else after += `/${segment}`;
  }
  if (names === undefined) return no("has neither a segment {key} nor {key...} nor {server}");
  if (names === "rest" && after !== "") {
    return no("has {key...}, which takes the rest of the path, before its last segment");
  }
  return { ok: true, template: { before, names, after, text: trimmed } };
}

/** Undefined: the path has another shape, or nothing stands where the key should. */
export function matchPath(template: PathTemplate, path: string): PathMatch | undefined {
  const end = /[?#]/.exec(path)?.index ?? path.length;
  const plain = path.slice(0, end);
  if (!plain.startsWith(template.before)) return undefined;
  const rest = plain.slice(template.before.length);
  const slash = template.names === "rest" ? -1 : rest.indexOf("/");
  const raw = slash < 0 ? rest : rest.slice(0, slash);
  const tail = rest.slice(raw.length);
  if (raw === "" || !tail.startsWith(template.after)) return undefined;
  const below = tail.slice(template.after.length);
  if (below !== "" && !below.startsWith("/")) return undefined;
  const left = path.slice(template.before.length + raw.length);
  return { raw, stripped: left.startsWith("/") ? left : `/${left}` };
}
