/** Exit codes of `belay`. `belay run` returns its command's own instead. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  invalidFile: 3,
  notFound: 4,
  refused: 5,
  unreachable: 6,
  environment: 7,
} as const;
