/** One thing that is wrong with a service file, complete enough to correct it unseen. */
export interface Problem {
  readonly severity: "error" | "warning";
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  readonly column: number;
  /** Member, `routes[0].timeout` for example; empty: the whole file. */
  readonly path: string;
  readonly what: string;
  readonly fix: string;
}

/** `file:line:column: message` and the fix, as editors and `belay check` show it. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, path, what, fix } = problem;
  const kind = problem.severity === "warning" ? "warning: " : "";
  const at = path === "" ? "" : `${path}: `;
  return `${file}:${line}:${column}: ${kind}${at}${what}${fix === "" ? "" : `\n    fix: ${fix}`}`;
}

/** In reading order: file, line, column. */
export function compareProblems(a: Problem, b: Problem): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}
