import type { z } from "zod";

/** What a handler gets, checked. */
interface Call<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

type RouteMethod = "GET" | "POST" | "PUT" | "DELETE";

/** One route: what it takes, what it answers, and the words for the API's description. */
export interface Route {
  readonly method: RouteMethod;
  /** As OpenAPI writes it: `/v1/services/{name}`. */
  readonly path: string;
  readonly summary: string;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** Of the good answer; undefined: text. */
  readonly answer?: z.ZodType;
  readonly status: 200 | 202;
  readonly contentType: string;
  /** Takes what came, answers what goes out. Throws a BelayError or a ZodError. */
  handle(call: Call<unknown, unknown, unknown>): Promise<unknown>;
}

interface RouteInit<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodObject> {
  readonly method: RouteMethod;
  readonly path: string;
  readonly summary: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly status?: 202;
}

interface JsonRouteInit<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodObject,
  A extends z.ZodType,
> extends RouteInit<P, Q, B> {
  readonly answer: A;
  handle(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<z.input<A>> | z.input<A>;
}

/** A route of the table, with its types tied to its schemas. */
export function jsonRoute<
  A extends z.ZodType,
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodObject = z.ZodObject,
>(init: JsonRouteInit<P, Q, B, A>): Route {
  const { params, query, body, answer } = init;
  return {
    ...init,
    status: init.status ?? 200,
    contentType: "application/json",
    async handle(call) {
      const checked = {
        params: parsePart(params, call.params, "the address"),
        query: parsePart(query, call.query, "the query"),
        body: parsePart(body, call.body, "the body"),
      };
      return answer.parse(await init.handle(checked));
    },
  };
}

/** A part of a call that is not as the route takes it. */
export class BadPart extends Error {
  override readonly name = "BadPart";
  readonly part: string;
  readonly issues: readonly z.core.$ZodIssue[];

  constructor(part: string, issues: readonly z.core.$ZodIssue[]) {
    super(`${part} is not as the route takes it`);
    this.part = part;
    this.issues = issues;
  }
}

function parsePart<S extends z.ZodObject>(
  schema: S | undefined,
  value: unknown,
  part: string,
): z.output<S>;
function parsePart(schema: z.ZodObject | undefined, value: unknown, part: string): unknown {
  if (schema === undefined) return {};
  const result = schema.safeParse(value);
  if (!result.success) throw new BadPart(part, result.error.issues);
  return result.data;
}

/** A route that answers text. */
export function textRoute(
  init: Pick<Route, "path" | "summary" | "contentType"> & { handle(): Promise<string> },
): Route {
  return { ...init, method: "GET", status: 200, handle: () => init.handle() };
}
