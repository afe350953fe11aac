import { isMap, isPair, isScalar, isSeq, type LineCounter, type Node } from "yaml";
import type { Position } from "./service.ts";

export type MemberPath = readonly (string | number)[];

/** `routes[0].match.prefix` */
export function memberText(path: MemberPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? part : `.${part}`;
  }
  return text;
}

const start: Position = { line: 1, column: 1 };

/** Where each member of a document stands: the key of a mapping's member, the item of a list. */
export class Outline {
  readonly #lines: LineCounter;
  readonly #positions = new Map<string, Position>();

  constructor(root: Node | null, lines: LineCounter) {
    this.#lines = lines;
    if (root !== null) this.#walk(root, []);
  }

  /** Of the member, or of the nearest one around it that the text has. */
  positionOf(path: MemberPath): Position {
    for (let length = path.length; length >= 0; length -= 1) {
      const found = this.#positions.get(memberText(path.slice(0, length)));
      if (found !== undefined) return found;
    }
    return start;
  }

  /** True if the text has the member itself. */
  has(path: MemberPath): boolean {
    return this.#positions.has(memberText(path));
  }

  /** Of a character, counted from 0. */
  positionAt(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  toJSON(): Record<string, Position> {
    return Object.fromEntries(this.#positions);
  }

  #walk(node: Node, path: MemberPath): void {
    if (!this.has(path)) this.#place(node, path);
    if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        if (isNode(item)) this.#walk(item, [...path, index]);
      }
    }
    if (!isMap(node)) return;
    for (const pair of node.items) {
      if (!isPair(pair) || !isScalar(pair.key)) continue;
      const member = [...path, String(pair.key.value)];
      this.#place(pair.key, member);
      if (isNode(pair.value)) this.#walk(pair.value, member);
    }
  }

  #place(node: Node, path: MemberPath): void {
    const offset = node.range?.[0];
    if (offset === undefined) return;
    const text = memberText(path);
    if (!this.#positions.has(text)) this.#positions.set(text, this.positionAt(offset));
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "range" in value;
