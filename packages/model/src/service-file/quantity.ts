/** A number with a unit, or why the text is none and how to write it. */
export type QuantityResult =
  | { readonly ok: true; readonly value: number }
  | { readonly ok: false; readonly what: string; readonly fix: string };

interface Units {
  readonly name: string;
  readonly example: string;
  readonly factors: Readonly<Record<string, number>>;
}

const durations: Units = {
  name: "duration",
  example: "500ms, 2s, 30m, 12h",
  factors: { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 },
};

const sizes: Units = {
  name: "size",
  example: "512B, 64KiB, 1MiB",
  factors: { B: 1, KB: 1000, KiB: 1024, MB: 1_000_000, MiB: 1_048_576 },
};

function parseQuantity(raw: unknown, units: Units): QuantityResult {
  if (raw === 0 || raw === "0") return { ok: true, value: 0 };
  const first = Object.keys(units.factors);
  if (typeof raw === "number") {
    const unit = units === durations ? "s" : "B";
    return {
      ok: false,
      what: `${raw} has no unit`,
      fix: `write ${raw}${unit} if you mean that; units: ${first.join(", ")}`,
    };
  }
  if (typeof raw === "string") {
    const [, digits, unit] = /^(\d{1,12}(?:\.\d{1,6})?) ?([A-Za-z]+)$/.exec(raw.trim()) ?? [];
    const factor = unit === undefined ? undefined : units.factors[unit];
    if (digits !== undefined && factor !== undefined) {
      return { ok: true, value: Math.round(Number(digits) * factor) };
    }
  }
  const shown = typeof raw === "string" ? `"${raw.slice(0, 40)}"` : kindOf(raw);
  return {
    ok: false,
    what: `${shown} is no ${units.name}`,
    fix: `write a number and a unit, like ${units.example}`,
  };
}

/** What a YAML value is, in words. */
export function kindOf(raw: unknown): string {
  if (raw === null || raw === undefined) return "nothing";
  if (Array.isArray(raw)) return "a list";
  if (typeof raw === "object") return "a mapping";
  return `a ${typeof raw}`;
}

/** Milliseconds of `500ms`, `2s`, `30m`, `12h`, `7d`. */
export const parseDuration = (raw: unknown): QuantityResult => parseQuantity(raw, durations);

/** Bytes of `512B`, `64KiB`, `1MiB`. */
export const parseSize = (raw: unknown): QuantityResult => parseQuantity(raw, sizes);

/** Milliseconds as a person would write them: 90000 → `90s`, 1800000 → `30m`. */
export function formatDuration(ms: number): string {
  const { factors } = durations;
  for (const unit of ["d", "h", "m", "s"]) {
    const factor = factors[unit] ?? 1;
    if (ms >= factor && ms % factor === 0) return `${ms / factor}${unit}`;
  }
  return `${ms}ms`;
}

/** Bytes as a person would write them: 1048576 → `1MiB`. */
export function formatSize(bytes: number): string {
  for (const unit of ["MiB", "KiB"]) {
    const factor = sizes.factors[unit] ?? 1;
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`;
  }
  return `${bytes}B`;
}
