import { readFileSync } from "node:fs";
import { errorTable, isErrorCode } from "@belay/model";
import type { z } from "zod";
import type { AdminError } from "../admin/schemas.ts";
import { describeSystemError } from "../machine/system-error.ts";
import { CliFailure } from "./cli-failure.ts";
import { EXIT } from "./exit-code.ts";
import { formatProblem } from "./printer.ts";

const REQUEST_MS = 15_000;

/** The schemas of the API, loaded only when it is called: help must be fast. */
type Schemas = typeof import("../admin/schemas.ts");
/** Chooses the schema of an answer. */
type Pick<T> = (schemas: Schemas) => z.ZodType<T>;

/** What the verbs of operators know about the API: `--api`, `--token-file`. */
export interface ApiOptions {
  readonly api: string;
  readonly tokenFile?: string;
}

/** Thrown for an answer that is an error of the API; carries its body. */
class ApiRefusal extends CliFailure {
  readonly body: AdminError;

  constructor(body: AdminError) {
    const problems = body.problems.map(
      (it) => `${formatProblem(it)}${it.fix === "" ? "" : ` (${it.fix})`}`,
    );
    const hint = body.hint === "" ? [] : [body.hint];
    super(
      `${body.message} [${body.code}]`,
      [...problems, ...hint],
      isErrorCode(body.code) ? errorTable[body.code].exit : EXIT.failed,
    );
    this.body = body;
  }
}

/** Speaks with the admin API; every failure is a CliFailure that says what to do. */
export class ApiClient {
  readonly #base: string;
  readonly #headers: Record<string, string> = {};

  constructor(options: ApiOptions) {
    if (!URL.canParse(options.api) || !/^https?:/.test(options.api)) {
      throw new CliFailure(
        `BELAY_API or --api is no address: ${JSON.stringify(options.api)}`,
        ["It looks like http://127.0.0.1:8800."],
        EXIT.usage,
      );
    }
    this.#base = options.api.replace(/\/+$/, "");
    if (options.tokenFile !== undefined) {
      this.#headers["authorization"] = `Bearer ${readToken(options.tokenFile)}`;
    }
  }

  /** The JSON answer to a GET; parameters without a value are left out. */
  async get<T>(
    path: string,
    pick: Pick<T>,
    query: Readonly<Record<string, string | undefined>> = {},
  ): Promise<T> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) search.set(name, value);
    }
    const target = search.size === 0 ? path : `${path}?${search.toString()}`;
    return this.#answer(pick, await this.#call("GET", target, undefined));
  }

  async post<T>(path: string, pick: Pick<T>, body: unknown): Promise<T> {
    return this.#answer(pick, await this.#call("POST", path, body));
  }

  async put<T>(path: string, pick: Pick<T>, body: unknown): Promise<T> {
    return this.#answer(pick, await this.#call("PUT", path, body));
  }

  async #answer<T>(pick: Pick<T>, body: unknown): Promise<T> {
    const parsed = pick(await import("../admin/schemas.ts")).safeParse(body);
    if (parsed.success) return parsed.data;
    throw new CliFailure(
      `the admin API at ${this.#base} answers in a way that this version does not know: ${parsed.error.message}`,
      [
        "Use the `belay` of the version that runs there: `belay --version`, `belay status -o json`.",
      ],
    );
  }

  async #call(method: string, path: string, body: unknown): Promise<unknown> {
    let status: number;
    let text: string;
    try {
      const response = await fetch(`${this.#base}${path}`, {
        method,
        headers:
          body === undefined
            ? this.#headers
            : { ...this.#headers, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      status = response.status;
      text = await response.text();
    } catch (cause) {
      throw unreachable(this.#base, cause);
    }
    const parsed = parseJson(text);
    if (status >= 200 && status < 300 && parsed !== undefined) return parsed;
    const { errorSchema } = await import("../admin/schemas.ts");
    const refusal = errorSchema.safeParse(parsed);
    if (refusal.success) throw new ApiRefusal(refusal.data);
    throw new CliFailure(
      `${this.#base} answers ${status}, but not as Belay's admin API does.`,
      ["Another program may listen there: set BELAY_API (or --api) to the admin API's address."],
      EXIT.unreachable,
    );
  }
}

function readToken(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new CliFailure(
      `cannot read the token file ${path}: ${describeSystemError(cause)}`,
      ["--token-file (or BELAY_TOKEN_FILE) names the file that the core was started with."],
      EXIT.usage,
    );
  }
}

function unreachable(base: string, cause: unknown): CliFailure {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const why = inner instanceof Error ? inner.message || inner.name : String(inner);
  return new CliFailure(
    `the admin API at ${base} cannot be reached: ${why}`,
    [
      "Is Belay running? Start it with `npm start` or `belay up`.",
      "If it runs elsewhere, set BELAY_API (or --api) to its address.",
    ],
    EXIT.unreachable,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
