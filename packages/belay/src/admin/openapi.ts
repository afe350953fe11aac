import { z } from "zod";
import type { Route } from "./route.ts";
import { errorSchema } from "./schemas.ts";

type Json = Record<string, unknown>;

/** JSON Schema as OpenAPI 3.1 embeds it (draft 2020-12, without the dialect's name). */
function toSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

function parametersOf(schema: z.ZodObject | undefined, place: "path" | "query"): Json[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return Object.entries(properties).map(([name, member]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: member,
  }));
}

function operationOf(route: Route): Json {
  const { answer, body, contentType, method, path, status, summary } = route;
  const schema = answer === undefined ? { type: "string" } : toSchema(answer, "output");
  const parameters = [...parametersOf(route.params, "path"), ...parametersOf(route.query, "query")];
  return {
    summary,
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9]+(.)?/g, (_, next: string | undefined) => next?.toUpperCase() ?? "")}`,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: toSchema(body, "input") } },
          },
        }),
    responses: {
      [status]: { description: "done", content: { [contentType]: { schema } } },
      default: {
        description: "an error of docs/reference/errors.md",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    },
  };
}

/** OpenAPI 3.1 of these routes, from the schemas that check their calls. */
export function toOpenApi(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Belay admin API", version },
    paths,
    components: {
      schemas: { Error: toSchema(errorSchema, "output") },
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
    security: [{}, { token: [] }],
  };
}
