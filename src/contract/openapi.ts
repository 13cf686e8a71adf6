/**
 * The contract as OpenAPI 3.1, made from the table of routes: what stands here is what the server reads and answers by.
 */
import { z } from "zod";
import { ERROR_CODES } from "../message/errors.ts";
import { ADDRESSES, type RouteId } from "./addresses.ts";
import { exampleOf } from "./example.ts";
import { type ProblemCode, problemShape, statusOf, titleOf } from "./problem-codes.ts";
import { type AnswerBody, errorsOf, type RequestHeader, type Route } from "./route.ts";
import { ROUTES, routeIds } from "./table.ts";

type Json = Record<string, unknown>;

const HEADERS: Readonly<Record<RequestHeader, string>> = {
  "if-match": "The version that was read, as in the ETag; refused with 412 when it has moved on.",
  "idempotency-key": "Sent twice under one key it is done once.",
  "x-actor-type": "human (the default) or agent.",
};

/** RFC 9110: a condition of the caller's that does not hold; a member `version` is ours, and that is 409. */
export const CONDITION_FAILED = 412;

let made: Json | undefined;

/** Made once. */
export function openApiDocument(version: string): Json {
  made ??= documentOf(version);
  return made;
}

function documentOf(version: string): Json {
  const components = new Map<string, Json>();
  const paths: Record<string, Json> = {};
  for (const id of routeIds) {
    const [method, path] = ADDRESSES[id];
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(id, ROUTES[id], components) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Makegood",
      version,
      description: "Keeps the promises that services make to other systems: accepted means durable, delivery is at least once.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    tags: TAGS.map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

const TAGS = [
  ["messages", "Promises to deliver a payload"],
  ["topics", "Where messages go, and how"],
  ["recovery", "Failures, what would help, and putting it right"],
  ["redrives", "Many dead letters put back as one operation"],
  ["audit", "Audit records"],
  ["server", "Health and metrics"],
] as const;

function tagOf(path: string): string {
  const [, , , room = ""] = path.split("/");
  return TAGS.some(([name]) => name === room) ? room : "server";
}

function operation(id: RouteId, route: Route, components: Map<string, Json>): Json {
  const [, path] = ADDRESSES[id];
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: "path", required: true, schema: { type: "string" } })),
    ...queryParameters(route, components),
    ...(route.headers ?? []).map((name) => ({ name, in: "header", description: HEADERS[name], schema: { type: "string" } })),
  ];
  return {
    operationId: id,
    tags: [tagOf(path)],
    summary: route.summary,
    "x-permission": route.permission,
    ...(route.permission === "open" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body
      ? {
          requestBody: {
            required: route.body.optional !== true,
            content: { "application/json": jsonOf(route.body.schema, "input", components) },
          },
        }
      : {}),
    responses: responses(route, components),
  };
}

function queryParameters(route: Route, components: Map<string, Json>): Json[] {
  if (route.query === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(route.query, "input", components) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: "query", required: required.includes(name), schema }));
}

function responses(route: Route, components: Map<string, Json>): Json {
  const answers = Object.entries(route.answers).map(([status, body]) => [status, answer(body, components)]);
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of errorsOf(route)) byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  if (route.headers?.includes("if-match")) byStatus.set(CONDITION_FAILED, ["version_conflict"]);
  const refusals = [...byStatus].map(([status, codes]) => [
    String(status),
    {
      description: `Refused: ${codes.join(", ")}`,
      content: {
        "application/problem+json": {
          schema: schemaOf(problemShape, "output", components),
          examples: Object.fromEntries(codes.map((code) => [code, { value: example(code, status) }])),
        },
      },
    },
  ]);
  // One status may be both: an unhealthy server says how it stands.
  const merged: Record<string, Json> = {};
  for (const [status, one] of [...refusals, ...answers] as [string, Json][]) {
    const content = { ...(merged[status]?.content as Json), ...(one.content as Json) };
    merged[status] = { ...one, ...(Object.keys(content).length > 0 ? { content } : {}) };
  }
  return merged;
}

function example(code: ProblemCode, status: number): Json {
  const words = code.replaceAll("_", " ");
  const retryable = code in ERROR_CODES && ERROR_CODES[code as keyof typeof ERROR_CODES].retryable;
  const detail = retryable ? `${words}; the same call may succeed later` : words;
  return { type: `urn:makegood:error:${code}`, title: titleOf(code), status, code, detail };
}

function answer(body: AnswerBody, components: Map<string, Json>): Json {
  if (body === null) return { description: "Done" };
  if (!("_zod" in body)) return { description: "As text", content: { [body.type]: { schema: { type: "string" } } } };
  return { description: "Done", content: { "application/json": jsonOf(body, "output", components) } };
}

/** A schema, and one value that fits it. */
function jsonOf(body: z.ZodType, io: "input" | "output", components: Map<string, Json>): Json {
  const schema = schemaOf(body, io, components);
  return { schema, example: exampleOf(schema, components) };
}

/** Schemas with a name become components, each once. */
function schemaOf(schema: z.ZodType, io: "input" | "output", components: Map<string, Json>): Json {
  const {
    $schema: _,
    $defs = {},
    ...json
  } = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" }) as Json & {
    $defs?: Record<string, Json>;
  };
  for (const [name, one] of Object.entries($defs)) components.set(name, referring(one) as Json);
  return referring(json) as Json;
}

/** `#/$defs/X` → `#/components/schemas/X`. */
function referring(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referring);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      if (name === "id" && typeof member === "string") return [];
      if (name === "$ref" && typeof member === "string") return [[name, member.replace("#/$defs/", "#/components/schemas/")]];
      return [[name, referring(member)]];
    }),
  );
}
