import type { Belay } from "@belay/server-sdk";
import type { World } from "./world.ts";

/** What every way in needs: who this server is, and its players. */
export interface Site {
  readonly belay: Belay;
  readonly world: World;
}
