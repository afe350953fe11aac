import { Lexer, Parser } from "yaml";

/** How deep lists and mappings may stand in each other; the schema needs six levels. */
const DEPTH_MAX = 20;
/** Entries of one list or mapping; what the schema allows is less everywhere. */
const ENTRIES_MAX = 1000;

/** Words, signs and line ends of one file; one with as many routes as there may be has a fifth. */
const LEXEMES_MAX = 50_000;

/** Where a text goes beyond what is worth reading on. */
export interface Excess {
  /** Characters before it. */
  readonly offset: number;
  readonly what: string;
  readonly fix: string;
}

/**
 * The first place that is nested too deeply or has too much; nothing after it is read. To be called
 * before a text is composed: that takes time by the square of depth and of entries.
 */
export function findExcess(text: string): Excess | undefined {
  const parser = new Parser();
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const { offset } = parser;
    // A generator that does its work as it is read; what it yields is whole documents.
    Array.from(parser.next(lexeme));
    lexemes += 1;
    if (lexemes > LEXEMES_MAX) {
      const what = `the file has more than ${LEXEMES_MAX} words, signs and line ends`;
      return { offset, what, fix: "leave out what is no part of a service file" };
    }
    const top = parser.stack.at(-1);
    if (top === undefined || !("items" in top)) continue;
    // The document itself is on the stack too.
    if (parser.stack.length - 1 > DEPTH_MAX) {
      const what = `the file is nested too deeply: more than ${DEPTH_MAX} levels`;
      return { offset, what, fix: "nest less deeply: no member of a service file needs it" };
    }
    if (top.items.length > ENTRIES_MAX) {
      const what = `a list or mapping has more than ${ENTRIES_MAX} entries`;
      return { offset, what, fix: "leave out what is no part of a service file" };
    }
  }
  return undefined;
}
