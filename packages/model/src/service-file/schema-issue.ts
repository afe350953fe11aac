import { z } from "zod";
import type { MemberPath } from "./outline.ts";
import { kindOf } from "./quantity.ts";
import { suggest } from "./suggest.ts";

/** What the text has at a path; undefined if nothing. */
export function valueAt(root: unknown, path: MemberPath): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

/** Names that the schema knows at a path. */
export function membersAt(schema: z.core.$ZodType, path: MemberPath): string[] {
  let here: z.core.$ZodType | undefined = unwrap(schema);
  for (const part of path) {
    if (here instanceof z.ZodArray) here = unwrap(here.element);
    else if (here instanceof z.ZodObject) here = unwrap(here.shape[String(part)]);
    else return [];
  }
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}

const unwrap = (schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined =>
  schema instanceof z.ZodOptional ? unwrap(schema.unwrap()) : schema;

interface IssueContext {
  /** The value, or the unknown member's name. */
  readonly written: unknown;
  readonly members: readonly string[];
}

const examples: Readonly<Record<string, string>> = {
  service: "write `service: NAME`",
  key: "write the place of the key, like `key: { header: x-player-id }`, or `key: none`",
  match: "write `match: { prefix: /rpc }` or `match: { path: /healthz }`",
  status: "write `status: 200`",
  use: "write the ids of the key, like `use: player`",
};

/** A schema's complaint in the words of the service file. */
export function describeIssue(
  issue: z.core.$ZodIssue,
  { written, members }: IssueContext,
): { what: string; fix: string } {
  if (issue.code === "unrecognized_keys") {
    const name = String(written);
    const near = suggest(name, members);
    const known = `members here are ${members.join(", ")}`;
    return {
      what: `unknown member "${name.slice(0, 80)}"`,
      fix: near === undefined ? `remove it; ${known}` : `did you mean \`${near}\`? ${known}`,
    };
  }
  if (issue.code === "custom") {
    const fix: unknown = issue.params?.["fix"];
    const missing = written === undefined;
    const member = String(issue.path.at(-1));
    if (missing) return { what: "is missing", fix: examples[member] ?? String(fix) };
    return { what: issue.message, fix: typeof fix === "string" ? fix : "" };
  }
  const member = String(issue.path.findLast((part) => typeof part === "string"));
  const expected =
    issue.code === "invalid_type"
      ? issue.expected === "array"
        ? "a list"
        : "a mapping"
      : "another value";
  return {
    what: written === undefined ? "is missing" : `expected ${expected}, found ${kindOf(written)}`,
    fix: examples[member] ?? `write ${expected}`,
  };
}
