/** What npm and npx put before the PATH of the shell. */
const ADDED = /\/node_modules\/\.bin\/?$|\/node-gyp-bin\/?$/;

/**
 * PATH for a command: what npm put before the shell's folders comes after them. Otherwise `node` would be
 * the one that Belay's packages bring, not the user's; programs of packages are still found.
 */
export function toShellPath(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  if (env["npm_command"] === undefined && env["npm_lifecycle_event"] === undefined) return path;
  const folders = path.split(":");
  const first = folders.findIndex((folder) => !ADDED.test(folder));
  return first <= 0 ? path : [...folders.slice(first), ...folders.slice(0, first)].join(":");
}
