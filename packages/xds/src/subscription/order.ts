import { typeUrls } from "@belay/envoy-api";

/** Rule 1: what is new or changed goes down in this order; a type not named here comes last. */
export const upsertOrder: readonly string[] = [
  typeUrls.cluster,
  typeUrls.endpoint,
  typeUrls.listener,
  typeUrls.route,
];

/** Rule 1: then removals, users before what they use. */
export const removalOrder: readonly string[] = [
  typeUrls.listener,
  typeUrls.route,
  typeUrls.cluster,
  typeUrls.endpoint,
];

/** What may refer to a type's resources: a refused user still refers to what it had before. */
export const usersOf: Readonly<Record<string, readonly string[]>> = {
  [typeUrls.route]: [typeUrls.listener],
  [typeUrls.cluster]: [typeUrls.listener, typeUrls.route],
  [typeUrls.endpoint]: [typeUrls.listener, typeUrls.route, typeUrls.cluster],
};

/** Types whose first request may mean «everything» by naming nothing. */
export const wildcardTypes: ReadonlySet<string> = new Set([typeUrls.cluster, typeUrls.listener]);
