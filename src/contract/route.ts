/** What an address is: what it takes, what it answers, how it refuses (RFC 9457), who may use it; OpenAPI comes from it. */
import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { ADDRESSES, type RouteId } from "./addresses.ts";
import { FAULTS_NAMED_MAX } from "./faults.ts";
import * as v from "./values.ts";

/** What only HTTP can refuse; the kernel's codes have their own table. */
export const HTTP_CODES = {
  unauthorized: 401,
  cross_origin_refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  misdirected_request: 421,
  invalid_query: 400,
  batch_refused: 422,
  headers_too_large: 431,
  internal_error: 500,
  not_ready: 503,
} as const;

export type ProblemCode = ErrorCode | keyof typeof HTTP_CODES;

export function statusOf(code: ProblemCode): number {
  return code in ERROR_CODES ? ERROR_CODES[code as ErrorCode].status : HTTP_CODES[code as keyof typeof HTTP_CODES];
}

export function titleOf(code: ProblemCode): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Which element or field is wrong, or which message holds the key already. */
const place = z.object({ index: z.int(), ...v.texts("field", "id") }).partial();
export type ProblemItem = Readonly<z.output<typeof place>> & { readonly code: ProblemCode; readonly detail: string };
export const problemShape = z
  .looseObject({
    ...v.texts("type", "title", "code", "detail"),
    status: z.int(),
    instance: z.string().optional(),
    errors: z
      .array(place.extend(v.texts("code", "detail")))
      .max(FAULTS_NAMED_MAX)
      .optional(),
    errors_more: z.int().optional().describe("how many faults there are besides those in errors"),
  })
  .meta({ id: "Problem" });

/** `open`: anyone, without a token. `accept` brings in, `operate` steers what is there, `decide` executes, `configure` sets up. */
export type Permission = "open" | "read" | "accept" | "operate" | "decide" | "configure";

/** What a call does, so that a program can be let in without fear: `destroys` ends or deletes what no other call brings back. */
export type Effect = "reads" | "changes" | "destroys";

export type RequestHeader = "if-match" | "idempotency-key" | "x-actor-type";

export interface Body<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  /** A body beyond it is refused before it is read. */
  readonly bytesMax: number | ((payloadBytesMax: number) => number);
  /** Nothing at all is the empty object. */
  readonly optional: boolean;
  readonly exact?: boolean;
  readonly invalid: ProblemCode;
}

/** What stands around a payload where a body is one payload and little else. */
const MEMBERS_BYTES = 65_536;
/** A text of one mebibyte fits however it is escaped: a character of one byte is six as \u000a. */
export const FAILURE_PAYLOAD_BYTES = 6 * 1_048_576 + MEMBERS_BYTES;

const KINDS = {
  /** A batch of a thousand messages fits. */
  messages: { bytesMax: 16 * 1_048_576, invalid: "invalid_message" },
  topic: { bytesMax: 262_144, invalid: "invalid_topic" },
  /** A reason, and little else. */
  intervention: { bytesMax: 65_536, invalid: "invalid_message" },
  /** Enough for a redrive of ten thousand ids. */
  recovery: { bytesMax: 1_048_576, invalid: "invalid_request" },
  rule: { bytesMax: 262_144, invalid: "invalid_request" },
  failure: { bytesMax: FAILURE_PAYLOAD_BYTES + MEMBERS_BYTES, invalid: "invalid_request" },
  edit: { bytesMax: (payloadBytesMax: number) => payloadBytesMax + MEMBERS_BYTES, invalid: "invalid_request" },
  audit: { bytesMax: (payloadBytesMax: number) => payloadBytesMax, invalid: "invalid_payload" },
} satisfies Record<string, Pick<Body, "bytesMax" | "invalid">>;

/** Where every field may be absent, the body may be, too. */
export const body = <S extends z.ZodType>(kind: keyof typeof KINDS, schema: S): Body<S> => ({
  ...{ schema, optional: schema.safeParse({}).success },
  ...KINDS[kind],
});
/** One that must be there, and whose text the handler gets, because a payload in it keeps its exact bytes. */
export const exactBody = <S extends z.ZodType>(kind: keyof typeof KINDS, schema: S) =>
  ({ ...body(kind, schema), optional: false, exact: true }) as const;

export type AnswerBody = z.ZodType | { readonly type: string } | null;
type Answers = Readonly<Record<number, AnswerBody>>;

export interface Rest {
  readonly query?: z.ZodObject;
  readonly body?: Body;
  readonly headers?: readonly RequestHeader[];
  /** Beside those that follow from what it takes, and those that every address has. */
  readonly errors?: readonly ProblemCode[];
  /** Said where it does not follow: who may read reads, a DELETE destroys, anything else changes. */
  readonly effect?: Effect;
}

export interface Route extends Rest {
  readonly effect: Effect;
  readonly summary: string;
  readonly permission: Permission;
  readonly answers: Answers;
}

type AnswersOf<A> = A extends null ? { 204: A } : A extends AnswerBody ? { 200: A } : A;

type Answer = AnswerBody | Answers;

/** One answer is 200, none is 204, others are by status. */
export function route<const A extends Answer, const R extends Rest>(who: Permission, summary: string, answer: A, rest = {} as R) {
  const byStatus = answer === null ? { 204: answer } : "type" in answer ? { 200: answer } : answer;
  return { permission: who, summary, answers: byStatus as AnswersOf<A>, ...rest };
}

export const takes = <const A extends Answer, S extends z.ZodType>(
  permission: Permission,
  summary: string,
  answer: A,
  body: Body<S>,
  ...errors: readonly ProblemCode[]
) => route(permission, summary, answer, { body, errors });

export const created = <A extends AnswerBody>(answer: A) => ({ 201: answer }) as const;
export const okOrCreated = <A extends AnswerBody>(answer: A) => ({ 200: answer, 201: answer }) as const;

export const shows = <A extends z.ZodType, const R extends Rest = object>(summary: string, answer: A, rest?: R) =>
  route("read", summary, answer, rest);

export const lists = <A extends z.ZodType, const Q extends Readonly<Record<string, z.ZodType>>>(
  summary: string,
  one: A,
  parameters: Q,
  errors: readonly ProblemCode[] = [],
) => {
  const limit = v.integer(1, LIMITS.pageMax).describe("how many at most");
  const page = v.optionals({ limit, cursor: v.text().describe("where the page before ended") });
  return route("read", summary, v.pageOf(one), { query: v.object({ ...page, ...v.optionals(parameters) }), errors });
};

export const listsAll = <A extends z.ZodType>(summary: string, one: A) =>
  route("read", summary, v.pageOf(one), { query: v.object({}) });

/** Some of the routes, each with what follows from its address and body; TypeScript keeps each one's own schemas. */
export const routes = <const R extends Partial<Record<RouteId, Described>>>(some: R) =>
  Object.fromEntries(Object.entries<Described>(some).map(([id, one]) => [id, whole(id as RouteId, one)])) as unknown as {
    readonly [Id in keyof R]: R[Id] & Pick<Route, "effect">;
  };

type Described = Omit<Route, "effect"> & Rest;

/** The recovery engine's addresses: each answers 501 where there is none, and takes who acts from a header. */
export const isOfEngine = (id: RouteId): boolean => /^\/api\/v1\/re(covery|drives)\b/.test(ADDRESSES[id][1]);

function whole(id: RouteId, { headers = [], errors = [], ...one }: Described): Route {
  const [method, path] = ADDRESSES[id];
  // What is named in the path may not be there; what a PUT names is made.
  const [, thing] = method === "PUT" ? [] : (/([a-z]+)s\/\{/.exec(path) ?? []);
  const missing = thing === undefined ? [] : [`${thing}_not_found` as ProblemCode];
  const versioned = "version" in ((one.body?.schema as z.ZodObject | undefined)?.shape ?? {});
  const acts = isOfEngine(id);
  const reads = one.permission === "open" || one.permission === "read";
  return {
    effect: reads ? "reads" : method === "DELETE" ? "destroys" : "changes",
    ...one,
    headers: [...headers, ...(versioned ? ["if-match" as const] : []), ...(acts ? ["x-actor-type" as const] : [])],
    errors: [...missing, ...errors, ...(acts ? ["needs_postgres" as const] : [])],
  };
}

const EVERYWHERE: readonly ProblemCode[] = [
  ...(["unauthorized", "misdirected_request", "internal_error"] as const),
  ...(["store_unavailable", "outcome_unknown", "retry_transaction", "schema_outdated", "not_initialised", "closed"] as const),
];

export function errorsOf({ permission, query, body, headers, errors = [] }: Route): ReadonlySet<ProblemCode> {
  const of = (takes: unknown, ...codes: ProblemCode[]): ProblemCode[] => (takes ? codes : []);
  return new Set([
    ...errors,
    ...of(query, "invalid_query"),
    ...of(body, body?.invalid ?? "invalid_request", "invalid_request", "invalid_payload"),
    ...of(body, "unsupported_media_type", "body_too_large", "request_timeout"),
    ...of(headers?.length, "invalid_request"),
    ...of(headers?.includes("if-match"), "version_conflict"),
    ...of(headers?.includes("idempotency-key"), "invalid_message", "key_too_long"),
    ...of(permission !== "open" && permission !== "read", "cross_origin_refused"),
    ...EVERYWHERE,
  ]);
}
