import { type Draft, encodeResource, type Resource } from "./resource.ts";

/** Everything that the proxies of a pool should hold, but for endpoints that travel on their own. */
export interface Snapshot {
  /** By type URL, then by name, names sorted. */
  readonly types: ReadonlyMap<string, ReadonlyMap<string, Resource>>;
}

export interface Change {
  readonly typeUrl: string;
  readonly name: string;
  readonly kind: "added" | "changed" | "removed";
}

const byName = (a: Resource, b: Resource): number => (a.name < b.name ? -1 : 1);

/** Encodes the drafts into a snapshot. Throws when two have the same type and name. */
export const createSnapshot = (drafts: Iterable<Draft>): Snapshot => {
  const types = new Map<string, Map<string, Resource>>();
  for (const resource of [...drafts].map(encodeResource).toSorted(byName)) {
    const named = types.get(resource.typeUrl) ?? new Map<string, Resource>();
    if (named.has(resource.name))
      throw new RangeError(`two resources of ${resource.typeUrl} have the name ${resource.name}`);
    types.set(resource.typeUrl, named.set(resource.name, resource));
  }
  return { types };
};

/** What differs between two snapshots, sorted by type and name. Equal versions are no change. */
export const diffSnapshots = (before: Snapshot | undefined, after: Snapshot): Change[] => {
  const changes: Change[] = [];
  const typeUrls = new Set([...(before?.types.keys() ?? []), ...after.types.keys()]);
  for (const typeUrl of [...typeUrls].toSorted()) {
    const [old, fresh] = [before?.types.get(typeUrl), after.types.get(typeUrl)];
    const names = new Set([...(old?.keys() ?? []), ...(fresh?.keys() ?? [])]);
    for (const name of [...names].toSorted()) {
      const [was, is] = [old?.get(name)?.version, fresh?.get(name)?.version];
      if (was === is) continue;
      const kind = was === undefined ? "added" : is === undefined ? "removed" : "changed";
      changes.push({ typeUrl, name, kind });
    }
  }
  return changes;
};
