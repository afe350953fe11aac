import { z } from "zod";
import { suggest } from "./suggest.ts";
import {
  formatDuration,
  formatSize,
  kindOf,
  parseDuration,
  parseSize,
  type QuantityResult,
} from "./quantity.ts";

/** What is wrong with a value and how to correct it. */
export interface Wrong {
  readonly ok: false;
  readonly what: string;
  readonly fix: string;
}

/** A value read from one scalar, or what is wrong with it. */
export type LeafResult<T> = { readonly ok: true; readonly value: T } | Wrong;

/** A scalar of the file, checked by `read`; its complaint becomes the problem's text. */
export const leaf = <T>(read: (raw: unknown) => LeafResult<T>) =>
  z.unknown().transform((raw, context): T => {
    const result = read(raw);
    if (result.ok) return result.value;
    context.addIssue({ code: "custom", message: result.what, params: { fix: result.fix } });
    return z.NEVER;
  });

export const wrong = (what: string, fix: string): Wrong => ({ ok: false, what, fix });

/** A text that `read` takes; numbers and booleans are told that they want quotes. */
export const text = <T>(example: string, read: (text: string) => LeafResult<T>) =>
  leaf((raw) => {
    if (typeof raw === "string") return read(raw);
    if (typeof raw === "number" || typeof raw === "boolean") {
      return wrong(`${raw} is ${kindOf(raw)}, not a text`, `write it in quotes: "${raw}"`);
    }
    return wrong(`expected a text, found ${kindOf(raw)}`, `write a text, like ${example}`);
  });

interface Pattern {
  readonly pattern: RegExp;
  /** What it is, with the limits: «1-63 of a-z, 0-9 and -». */
  readonly says: string;
  readonly example: string;
}

/** A text that matches a pattern. */
export const matching = ({ pattern, says, example }: Pattern) =>
  text<string>(example, (value) =>
    pattern.test(value)
      ? { ok: true, value }
      : wrong(`"${value.slice(0, 80)}" is not ${says}`, `write ${says}, like ${example}`),
  );

/** One of a few words. */
export const choice = <const W extends string>(...words: readonly W[]) =>
  leaf<W>((raw) => {
    const found = words.find((word) => word === raw);
    if (found !== undefined) return { ok: true, value: found };
    const shown = typeof raw === "string" ? `"${raw.slice(0, 40)}"` : kindOf(raw);
    const near = typeof raw === "string" ? suggest(raw, words) : undefined;
    return wrong(
      `${shown} is not one of ${words.join(", ")}`,
      near === undefined ? `write one of ${words.join(", ")}` : `did you mean ${near}?`,
    );
  });

interface Range {
  readonly min: number;
  readonly max: number;
}

const inRange = (range: Range, show: (value: number) => string) => (result: QuantityResult) => {
  if (!result.ok || (result.value >= range.min && result.value <= range.max)) return result;
  return wrong(
    `${show(result.value)} is out of range`,
    `write ${show(range.min)} to ${show(range.max)}`,
  );
};

/** A time in milliseconds, both bounds inclusive. */
export const duration = (range: Range) =>
  leaf((raw) => inRange(range, formatDuration)(parseDuration(raw)));

/** A size in bytes, both bounds inclusive. */
export const size = (range: Range) => leaf((raw) => inRange(range, formatSize)(parseSize(raw)));

/** A whole number, both bounds inclusive. */
export const integer = (range: Range) =>
  leaf((raw) => {
    const fix = `write a whole number from ${range.min} to ${range.max}`;
    if (typeof raw !== "number" || !Number.isInteger(raw)) {
      const shown = typeof raw === "string" ? `"${raw.slice(0, 40)}"` : kindOf(raw);
      return wrong(`${typeof raw === "number" ? raw : shown} is no whole number`, fix);
    }
    return inRange(range, String)({ ok: true, value: raw });
  });

export const flag = () =>
  leaf<boolean>((raw) =>
    typeof raw === "boolean"
      ? { ok: true, value: raw }
      : wrong(`expected true or false, found ${kindOf(raw)}`, "write true or false"),
  );
