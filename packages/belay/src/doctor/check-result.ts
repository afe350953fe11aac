type CheckState = "ok" | "warning" | "failed";

/** One line of `belay doctor`. */
export interface CheckResult {
  readonly name: string;
  readonly state: CheckState;
  readonly found: string;
  /** What to do; empty if nothing is wrong. */
  readonly advice: string;
}

export const ok = (name: string, found: string): CheckResult => ({
  name,
  state: "ok",
  found,
  advice: "",
});

export const warning = (name: string, found: string, advice: string): CheckResult => ({
  name,
  state: "warning",
  found,
  advice,
});

export const failed = (name: string, found: string, advice: string): CheckResult => ({
  name,
  state: "failed",
  found,
  advice,
});
