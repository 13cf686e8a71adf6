/**
 * What an address is: what it takes, what it answers, how it refuses, who may use it. Handlers get what was read by it, OpenAPI and the
 * client are made from it; nothing of it is written a second time.
 */
import type { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { ADDRESSES, type RouteId } from "./addresses.ts";
import type { ProblemCode } from "./problem-codes.ts";
import * as v from "./values.ts";

/**
 * Who may use an address: `open` anyone, also without a token; `read` looks; `accept` brings messages and records in; `operate` steers what
 * is there; `decide` approves and executes; `configure` changes what topics, rules and actions are.
 */
export type Permission = "open" | "read" | "accept" | "operate" | "decide" | "configure";

/**
 * What a call does, so that a program can be let in without fear: `reads` leaves everything as it is; `changes` can be followed by another
 * change; `destroys` ends or deletes what no other call brings back.
 */
export type Effect = "reads" | "changes" | "destroys";

export type RequestHeader = "if-match" | "idempotency-key" | "x-actor-type";

export interface Body<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  /** A number, or what follows from how large a payload may be; a body beyond it is refused before it is read. */
  readonly bytesMax: number | ((payloadBytesMax: number) => number);
  /** Nothing at all is the empty object. */
  readonly optional?: boolean;
  /** The handler gets the text, because a payload in it keeps its exact bytes; the schema says what it takes. */
  readonly exact?: boolean;
  /** The code of a body that does not fit. */
  readonly invalid: ProblemCode;
}

/** What stands around a payload where a body is one payload and little else. */
const MEMBERS_BYTES = 65_536;
/**
 * A text of one mebibyte fits however it is escaped (a character of one byte is six as \u000a); how much of it counts is decided by the
 * fingerprint.
 */
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
  /** Another payload for a message; how large a payload may be is a setting. */
  edit: { bytesMax: (payloadBytesMax: number) => payloadBytesMax + MEMBERS_BYTES, invalid: "invalid_request" },
  /** An audit record is the payload itself. */
  audit: { bytesMax: (payloadBytesMax: number) => payloadBytesMax, invalid: "invalid_payload" },
} satisfies Record<string, Omit<Body, "schema">>;
type Kind = keyof typeof KINDS;

export const body = <S extends z.ZodType>(kind: Kind, schema: S): Body<S> => ({ schema, ...KINDS[kind] });
export const optionalBody: typeof body = (kind, schema) => ({ ...body(kind, schema), optional: true });
export const exactBody = <S extends z.ZodType>(kind: Kind, schema: S) => ({ ...body(kind, schema), exact: true }) as const;

/** A JSON body by its schema, another media type, or no body at all. */
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

/** One answer is 200, none is 204, others are by status. */
export function route<const A extends AnswerBody | Answers, const R extends Rest>(
  permission: Permission,
  summary: string,
  answer: A,
  rest: R = {} as R,
) {
  const byStatus = answer === null ? { 204: answer } : "type" in answer ? { 200: answer } : answer;
  return { permission, summary, answers: byStatus as AnswersOf<A>, ...rest };
}

export const created = <A extends AnswerBody>(answer: A) => ({ 201: answer }) as const;
export const okOrCreated = <A extends AnswerBody>(answer: A) => ({ 200: answer, 201: answer }) as const;

/** An address that shows one thing. */
export const shows = <A extends z.ZodType, const R extends Rest = object>(summary: string, answer: A, rest?: R) =>
  route("read", summary, answer, rest);

/** An address that shows a list by pages; every parameter may be absent. */
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

/** A list that is always whole. */
export const listsAll = <A extends z.ZodType>(summary: string, one: A) =>
  route("read", summary, v.pageOf(one), { query: v.object({}) });

/** Some of the routes, each with what follows from its address and body; TypeScript keeps each one's own schemas. */
export const routes = <const R extends Partial<Record<RouteId, Described>>>(some: R) =>
  Object.fromEntries(Object.entries<Described>(some).map(([id, one]) => [id, whole(id as RouteId, one)])) as unknown as {
    readonly [Id in keyof R]: R[Id] & Pick<Route, "effect">;
  };

/** A route as it is written down. */
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

/** The refusals of any address. */
const EVERYWHERE: readonly ProblemCode[] = [
  "unauthorized",
  "misdirected_request",
  "internal_error",
  "store_unavailable",
  "outcome_unknown",
  "retry_transaction",
  "schema_outdated",
  "not_initialised",
  "closed",
];

/** Every code that an address may refuse with. */
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
