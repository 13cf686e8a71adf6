/** The contract as OpenAPI 3.1, made from the table of routes: what stands here is what the server reads and answers by. */
import { z } from "zod";
import { ERROR_CODES } from "../message/errors.ts";
import { ADDRESSES, type RouteId } from "./addresses.ts";
import { errorsOf, type ProblemCode, problemShape, type RequestHeader, type Route, statusOf, titleOf } from "./route.ts";
import { ROUTES, routeIds } from "./table.ts";
import { innermost } from "./values.ts";

type Json = Record<string, unknown>;

const TEXT = { type: "string" };

const HEADERS: Readonly<Record<RequestHeader, string>> = {
  "if-match": "The version that was read, as in the ETag; refused with 412 when it has moved on.",
  "idempotency-key": "Sent twice under one key it is done once.",
  "x-actor-type": "human (the default) or agent.",
};

/** RFC 9110: a condition of the caller's that does not hold; a member `version` is ours, and that is 409. */
export const CONDITION_FAILED = 412;

const components = new Map<string, Json>();
let made: ReturnType<typeof documentOf> | undefined;

export const openApiDocument = (version: string) => (made ??= documentOf(version));

function documentOf(version: string) {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const id of routeIds) {
    const [method, path] = ADDRESSES[id];
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(id, path, ROUTES[id]) };
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
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

const TAGS = {
  messages: "Promises to deliver a payload",
  topics: "Where messages go, and how",
  recovery: "Failures, what would help, and putting it right",
  redrives: "Many dead letters put back as one operation",
  audit: "Audit records",
  server: "Health and metrics",
};

type Content = { description?: string; content?: Record<string, { schema: object; example?: unknown }> };
type Parameter = { name: string; in: string; required?: boolean; description?: string; schema: object };
export type Operation = ReturnType<typeof operation>;

function operation(id: RouteId, path: string, route: Route) {
  const { permission, effect, summary, headers = [], query, body } = route;
  const [, , , room = ""] = path.split("/");
  const { properties = {}, required = [] } = query
    ? (schemaOf(query, "input") as { properties?: Record<string, object>; required?: string[] })
    : {};
  const parameters: Parameter[] = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({ name, in: "path", required: true, schema: TEXT })),
    ...Object.entries(properties).map(([name, schema]) => ({ name, in: "query", required: required.includes(name), schema })),
    ...headers.map((name) => ({ name, in: "header", description: HEADERS[name], schema: TEXT })),
  ];
  return {
    operationId: id,
    tags: [Object.hasOwn(TAGS, room) ? room : "server"],
    summary,
    "x-permission": permission,
    "x-makegood-effect": effect,
    ...(permission === "open" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body ? { requestBody: { required: body.optional !== true, ...contentOf(body.schema, "input") } } : {}),
    responses: responses(route),
  };
}

function responses(route: Route) {
  const merged: Record<string, Content> = {};
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of errorsOf(route)) byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  if (route.headers?.includes("if-match")) byStatus.set(CONDITION_FAILED, ["version_conflict"]);
  for (const [status, codes] of byStatus) {
    const examples = Object.fromEntries(codes.map((code) => [code, { value: refusal(code, status) }]));
    const content = { "application/problem+json": { schema: schemaOf(problemShape, "output"), examples } };
    merged[status] = { description: `Refused: ${codes.join(", ")}`, content };
  }
  for (const [status, body] of Object.entries(route.answers)) {
    const isJson = body !== null && "_zod" in body;
    const content = isJson ? contentOf(body, "output").content : body && { [body.type]: { schema: TEXT } };
    const description = body === null || isJson ? "Done" : "As text";
    // One status may be both: an unhealthy server says how it stands.
    merged[status] = content ? { description, content: { ...merged[status]?.content, ...content } } : { description };
  }
  return merged;
}

function refusal(code: ProblemCode, status: number): Json {
  const words = code.replaceAll("_", " ");
  const retryable = code in ERROR_CODES && ERROR_CODES[code as keyof typeof ERROR_CODES].retryable;
  const detail = retryable ? `${words}; the same call may succeed later` : words;
  return { type: `urn:makegood:error:${code}`, title: titleOf(code), status, code, detail };
}

function contentOf(body: z.ZodType, io: "input" | "output") {
  return { content: { "application/json": { schema: schemaOf(body, io), example: exampleOf(body) } } };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" }));
  // The id that a schema has besides its place among the components is none that the document knows.
  const known = (name: string, member: unknown) => (name === "id" && typeof member === "string" ? undefined : member);
  const { $schema: _, $defs, ...json } = JSON.parse(text.replaceAll("#/$defs/", "#/components/schemas/"), known) as Json;
  for (const [name, one] of Object.entries($defs ?? {})) components.set(name, one as Json);
  return json;
}

const UUID = "0190d5c8-6f2a-7c31-9b1e-2f4a6c8e0b1d";
const TYPICAL: Readonly<Record<string, unknown>> = {
  ...{ topic: "billing/finalize", payload: { invoice: "in_41" }, key: "in_41", tenant_id: "acme", status: "pending" },
  ...{ reason: "the receiver is mended", note: "looked at it", kind: "http", url: "https://billing.example/settle" },
  ...{ error_type: "timeout", error_code: "timeout", raw: "connect timed out", words: ["timed out"] },
  ...{ id: UUID, message_id: UUID, redrive_id: UUID, execution_id: UUID },
  ...{ group_id: 7, from: [8], candidate_id: 12, version: 3, next_cursor: null, last_error: null },
};
const PLAIN = [null, "text", "2026-01-02T03:04:05.678Z", 0, 1, true, {}];

/** A value that fits a schema: what is typical of a field is known by its name, else the least that the schema allows. */
function exampleOf(schema: z.ZodType, name = ""): unknown {
  // What takes anything is shown as what it reads.
  if (schema.type === "catch") return exampleOf((schema as z.ZodCatch<z.ZodType>).def.innerType, name);
  const fits = (value: unknown): boolean => value !== undefined && schema.safeParse(value).success;
  if (fits(TYPICAL[name])) return TYPICAL[name];
  const inner = innermost(schema);
  if (inner.type === "array") return [exampleOf((inner as z.ZodArray<z.ZodType>).element, name)];
  if (inner.type === "enum") return Object.values((inner as z.ZodEnum).enum)[0];
  if (inner.type !== "object") return PLAIN.find((value) => inner.safeParse(value).success);
  const members = Object.entries((inner as z.ZodObject).shape) as [string, z.ZodType][];
  const shown = members.filter(([one, member]) => one in TYPICAL || member._zod.optin === undefined);
  return Object.fromEntries(shown.map(([one, member]) => [one, exampleOf(member, one)]));
}
