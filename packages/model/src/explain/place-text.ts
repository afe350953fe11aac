import type { KeyPlace, KeyRule, MintedPlace } from "../service-file/service.ts";

/** A place in the words of the service file: `path /s/{key} (stripped)`, `header x-player-id`. */
export function formatPlace(place: KeyPlace): string {
  if (place.from === "path") return `path ${place.template}${place.strip ? " (stripped)" : ""}`;
  if (place.from === "host") return `host ${place.template}`;
  if (place.from !== "envelope") return `${place.from} ${place.name}`;
  const field = place.field === 0 ? "any field" : `field ${place.field}`;
  return `envelope ${place.marker} in ${field} (${place.use.join("/")})`;
}

function formatMinted(minted: MintedPlace): string {
  if (minted.from === "json") return `minted at ${minted.path} of the answer`;
  if (minted.from === "body") return `minted where ${minted.pattern} matches the answer`;
  return `minted in the ${minted.from} ${minted.name} of the answer`;
}

/** All places of a rule, in order; `none` if requests are balanced. */
export function formatKeyRule(rule: KeyRule): string[] {
  const texts = rule.places.map(formatPlace);
  if (rule.minted !== undefined) texts.push(formatMinted(rule.minted));
  return texts.length === 0 ? ["none"] : texts;
}
