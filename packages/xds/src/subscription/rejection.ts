import type { Source } from "../resources/resource.ts";

/** A version of a resource that a proxy refused. */
export interface Rejection {
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  /** Envoy's own words. */
  readonly message: string;
  /** The source lines that the message points at, best guess first; empty when nothing is known. */
  readonly sources: readonly Source[];
}

const mentions = (message: string, name: string): boolean => {
  const escaped = name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(String.raw`(?<![\w.-])${escaped}(?![\w-]|\.\w)`).test(message);
};

/**
 * Names, among `candidates`, that a refused cluster or listener update complains of: «Error
 * adding/updating listener(s) a: reason b: reason». Empty when the message has another form.
 */
export const rejectedNames = (message: string, candidates: readonly string[]): string[] => {
  const [, list] = /^Error adding\/updating (?:cluster|listener)\(s\) ([^]*)$/.exec(message) ?? [];
  if (list === undefined) return [];
  return candidates.filter(
    (name) =>
      list.startsWith(`${name}: `) || list.includes(` ${name}: `) || list.includes(`\n${name}: `),
  );
};

/** The sources that the message mentions by name, longest name first; the only one in any case. */
export const blamedSources = (message: string, sources: readonly Source[]): readonly Source[] => {
  if (sources.length === 1) return sources;
  return sources
    .filter((source) => mentions(message, source.name))
    .toSorted((one, other) => other.name.length - one.name.length);
};
