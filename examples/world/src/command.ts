import type { Player, World } from "./world.ts";

/** What a client may ask for a player, however it asks. */
export type Command =
  | { readonly type: "look" }
  | { readonly type: "count" }
  | { readonly type: "move"; readonly dx: number; readonly dy: number };

export function apply(world: World, player: string, command: Command): Player {
  if (command.type === "count") return world.count(player);
  if (command.type === "move") return world.move(player, command.dx, command.dy);
  return world.player(player);
}

const isStep = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= 1000;

/** `{"dx": 1, "dy": -2}`; undefined if it is not that. */
export function parseMove(text: string): Command | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return undefined;
    const { dx = 0, dy = 0 } = value as { dx?: unknown; dy?: unknown };
    return isStep(dx) && isStep(dy) ? { type: "move", dx, dy } : undefined;
  } catch {
    return undefined;
  }
}
