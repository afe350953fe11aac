import type { Logger } from "@belay/model";
import type { CoreSettings } from "./core-settings.ts";

/** A part of core that runs. */
export interface RunningRole {
  close(): Promise<void>;
}

/** What the roles share. */
export interface RoleContext {
  readonly settings: CoreSettings;
  /** Full path of the data folder. */
  readonly data: string;
  readonly token: string | undefined;
  readonly logger: Logger;
  /** Ends the process with this exit code. */
  fail(code: number): void;
}
