import { z } from "zod";
import { parseHostTemplate } from "../key/host-template.ts";
import { parsePathTemplate } from "../key/path-template.ts";
import { choice, flag, integer, leaf, matching, text, wrong } from "./leaf.ts";
import { kindOf } from "./quantity.ts";

const FIELD_NUMBER_MAX = 536_870_911;
/** Places of one route, the envelope included. */
export const PLACES_MAX = 8;
const PATTERN_LENGTH_MAX = 256;

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;

/** Headers that carry no key: Belay's and Envoy's own are stripped, others have a place of their own. */
const reservedHeader = /^(x-belay-|x-envoy-)|^(host|cookie|set-cookie|connection|upgrade|te)$/;

const headerName = text("x-player-id", (value) => {
  const name = value.toLowerCase();
  if (!token.test(name)) {
    return wrong(`"${value.slice(0, 80)}" is no header name`, "write a name like x-player-id");
  }
  const instead = name === "host" || name === "cookie" ? `write \`${name}:\` as the place` : "";
  return reservedHeader.test(name)
    ? wrong(`the header ${name} cannot carry a key`, instead || "use a header of your own")
    : { ok: true, value: name };
});

const cookieName = matching({ pattern: token, says: "a cookie name", example: "sid" });

const queryName = matching({
  pattern: /^[!"$\x27-*,-<>-~]{1,128}$/,
  says: "a query parameter's name in ASCII, undecoded",
  example: "room",
});

const pathTemplate = text("/s/{key}/**", (value) => {
  const result = parsePathTemplate(value);
  return result.ok
    ? { ok: true, value: result.template.text }
    : wrong(`the template ${result.why}`, "write a template like /s/{key}/**");
});

const hostTemplate = text("{key}.play.example.com", (value) => {
  const result = parseHostTemplate(value);
  return result.ok
    ? { ok: true, value: value.toLowerCase() }
    : wrong(`the template ${result.why}`, "write a template like {key}.play.example.com");
});

const jsonPath = matching({
  pattern: /^\$(\.[A-Za-z_][A-Za-z0-9_-]{0,63}|\[\d{1,6}\]){1,16}$/,
  says: "a JSON path of names and indices",
  example: "$.session.id",
});

const re2Pattern = text("id=([a-z0-9]+)", (value) => {
  const fix = "write a pattern in RE2 syntax whose first group is the key, like id=([a-z0-9]+)";
  if (value.length > PATTERN_LENGTH_MAX) {
    return wrong(`the pattern is longer than ${PATTERN_LENGTH_MAX}`, fix);
  }
  if (/\(\?(?:[=!]|<[=!])/.test(value) || /\\[1-9]/.test(value)) {
    return wrong("the pattern looks around or back, which RE2 cannot", fix);
  }
  try {
    // Only what the two syntaxes share is judged here; flags and named groups are written otherwise.
    const groups = new RegExp(`${value.replaceAll(/\(\?[a-z]+\)|\?P(?=<)/g, "?")}|`, "u").exec("");
    return (groups?.length ?? 0) > 1 ? { ok: true, value } : wrong("the pattern has no group", fix);
  } catch {
    return wrong("the pattern cannot be read", fix);
  }
});

const fieldNumber = integer({ min: 1, max: FIELD_NUMBER_MAX });
const anyField = leaf<number>((raw) => {
  if (raw === "any") return { ok: true, value: 0 };
  return typeof raw === "number" && Number.isInteger(raw) && raw >= 1 && raw <= FIELD_NUMBER_MAX
    ? { ok: true, value: raw }
    : wrong(
        `${typeof raw === "number" ? raw : kindOf(raw)} is no field number`,
        "write 1 to 536870911, or any",
      );
});

const envelopeId = choice("app", "server", "player", "envelope");

const envelopeSchema = z.strictObject({
  field: anyField.optional(),
  marker: matching({
    pattern: /^[\x21-\x7e]{1,64}$/,
    says: "1-64 visible ASCII characters",
    example: "belay1",
  }).optional(),
  use: z.array(envelopeId),
  numbers: z
    .strictObject({
      marker: fieldNumber.optional(),
      version: fieldNumber.optional(),
      app: fieldNumber.optional(),
      server: fieldNumber.optional(),
      player: fieldNumber.optional(),
      envelope: fieldNumber.optional(),
    })
    .optional(),
});

const mintedSchema = z.strictObject({
  header: headerName.optional(),
  cookie: cookieName.optional(),
  json: jsonPath.optional(),
  body: re2Pattern.optional(),
});

/** One entry of `key`; that it names exactly one place is checked by `buildKeyRule`. */
export const keyEntrySchema = z.strictObject({
  path: pathTemplate.optional(),
  strip: flag().optional(),
  header: headerName.optional(),
  cookie: cookieName.optional(),
  query: queryName.optional(),
  host: hostTemplate.optional(),
  envelope: envelopeSchema.optional(),
  minted: mintedSchema.optional(),
});

export type RawEnvelope = z.infer<typeof envelopeSchema>;
export type RawMinted = z.infer<typeof mintedSchema>;
export type RawKeyEntry = z.infer<typeof keyEntrySchema>;
