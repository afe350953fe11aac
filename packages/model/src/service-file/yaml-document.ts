import { LineCounter, parseDocument, type YAMLParseError, type YAMLWarning } from "yaml";
import { Outline } from "./outline.ts";
import type { Position } from "./service.ts";
import { findExcess } from "./yaml-bounds.ts";

/** Largest service file. Larger ones are not even parsed. */
export const FILE_BYTES_MAX = 262_144;
/** Aliases that one file may expand to: `&a` and `*a` are allowed, bombs of them are not. */
const ALIASES_MAX = 100;
/** Members that stand there twice, of which each is told. */
const DOUBLES_MAX = 100;

interface YamlProblem {
  readonly position: Position;
  readonly what: string;
  readonly fix: string;
}

/** The text as plain values; `value` is undefined if its problems leave nothing to judge. */
export interface YamlDocument {
  readonly value: unknown;
  readonly outline: Outline;
  readonly problems: readonly YamlProblem[];
}

const fixes: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: "keep one of the two",
  TAB_AS_INDENT: "indent with spaces",
  BAD_INDENT: "align it with the members beside it",
  MULTIPLE_DOCS: "write one service per file",
  NON_STRING_KEY: "use a plain word as the name of the member",
  TAG_RESOLVE_FAILED: "remove the tag",
  MISSING_CHAR: "add the character that is missing",
  UNEXPECTED_TOKEN: "put texts with special characters in quotes",
  BLOCK_AS_IMPLICIT_KEY: "put texts that contain `: ` in quotes",
};

/** Parses YAML 1.2; never throws. Duplicate keys are problems that leave the rest judged. */
export function readYaml(text: string): YamlDocument {
  const lines = new LineCounter();
  const nothing = new Outline(null, lines);
  const first = { line: 1, column: 1 };
  if (text.length > FILE_BYTES_MAX || new TextEncoder().encode(text).length > FILE_BYTES_MAX) {
    const what = `the file is larger than ${FILE_BYTES_MAX / 1024} KiB`;
    const fix = "write one service per file and leave data out of it";
    return { value: undefined, outline: nothing, problems: [{ position: first, what, fix }] };
  }
  const excess = findExcess(text);
  if (excess !== undefined) {
    const { offset, what, fix } = excess;
    const position = positionIn(text, offset);
    return { value: undefined, outline: nothing, problems: [{ position, what, fix }] };
  }
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      // "silent" would also keep back that there are several documents.
      logLevel: "error",
      prettyErrors: false,
      stringKeys: true,
    });
    const outline = new Outline(document.contents, lines);
    const faults = [...document.errors, ...document.warnings];
    const doubles = faults.filter(({ code }) => code === "DUPLICATE_KEY").slice(0, DOUBLES_MAX);
    // One slip makes the parser stumble over all that follows: only the first is worth reading.
    const slip = faults.find(({ code }) => code !== "DUPLICATE_KEY");
    const told = slip === undefined ? doubles : [...doubles, slip];
    const problems = told.map((fault) => describe(fault, text, outline));
    const value: unknown =
      slip === undefined ? document.toJS({ maxAliasCount: ALIASES_MAX }) : undefined;
    return { value, outline, problems };
  } catch (thrown) {
    // Too many aliases are a ReferenceError.
    const bomb = thrown instanceof ReferenceError;
    const what = bomb ? "the aliases (*name) cannot be expanded" : "the file cannot be read";
    const fix = bomb
      ? `use at most ${ALIASES_MAX} aliases, none of them inside its own anchor`
      : "write it more simply";
    return { value: undefined, outline: nothing, problems: [{ position: first, what, fix }] };
  }
}

function positionIn(text: string, offset: number): Position {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

function describe(
  fault: YAMLParseError | YAMLWarning,
  text: string,
  outline: Outline,
): YamlProblem {
  const position = outline.positionAt(fault.pos[0]);
  // `key: { path: /s/{key} }`: in a flow mapping the braces of a template are YAML's own.
  if (/\{(key|key\.\.\.|server)\}/.test(text.split("\n", position.line)[position.line - 1] ?? "")) {
    const what = "a template with braces stands inside { } without quotes";
    return { position, what, fix: 'put it in quotes, like { path: "/s/{key}" }' };
  }
  const fix =
    fixes[fault.code] ?? "correct the YAML: see whether quotes, brackets and indents match";
  return { position, what: whatIsWrong(fault), fix };
}

function whatIsWrong({ code, message }: YAMLParseError | YAMLWarning): string {
  if (code === "DUPLICATE_KEY") return "this member stands there twice";
  if (code === "MULTIPLE_DOCS") return "the file has several documents (---)";
  return message.replace(/\.?\s*$/, "").slice(0, 200);
}
