/**
 * Every refusal of the API as RFC 9457 problem+json: a stable code, what happened, and to which request.
 */
import { FAULTS_NAMED_MAX, type Fault } from "../contract/faults.ts";
import { type ProblemCode, statusOf, titleOf } from "../contract/problem-codes.ts";
import { isMakegoodError } from "../message/errors.ts";
import { wireName } from "./json/wire.ts";

/** One of several reasons: which element, which field, what is wrong with it. */
export interface ProblemItem {
  readonly index?: number | undefined;
  readonly field?: string | undefined;
  readonly code: ProblemCode;
  readonly detail: string;
  /** The message that holds the key already. */
  readonly id?: string | undefined;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Members beside the standard ones: `errors`, the id of the message in the way, and the like. */
export interface ProblemExtra {
  /** C1: the first twenty are named. */
  readonly errors?: readonly ProblemItem[] | undefined;
  /** How many faults there are besides those in `errors`. */
  readonly more?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  /** Where the same code means another status, as a version does that came as If-Match. */
  readonly status?: number | undefined;
}

export const PROBLEM_TYPE = "application/problem+json";
const DETAIL_CHARS_MAX = 8_000;
/** How long a client should wait before it asks a store again that did not answer. */
const RETRY_AFTER_SECONDS = "2";

export function problem(code: ProblemCode, detail: string, extra: ProblemExtra = {}): Reply {
  const { errors = [], more = 0, members } = extra;
  const status = extra.status ?? statusOf(code);
  const unnamed = more + Math.max(0, errors.length - FAULTS_NAMED_MAX);
  const body = {
    ...{ type: `urn:makegood:error:${code}`, title: titleOf(code), status, code, detail: detail.slice(0, DETAIL_CHARS_MAX) },
    ...members,
    ...(errors.length > 0 ? { errors: errors.slice(0, FAULTS_NAMED_MAX) } : {}),
    ...(unnamed > 0 ? { errors_more: unnamed } : {}),
  };
  const headers: Record<string, string> = { "content-type": PROBLEM_TYPE, ...extra.headers };
  if (status === 503 || status === 507) headers["retry-after"] ??= RETRY_AFTER_SECONDS;
  return { status, headers, body: JSON.stringify(body) };
}

/** A refusal on its way through the handlers. */
export class Refusal extends Error {
  readonly reply: Reply;
  constructor(reply: Reply) {
    super("refused");
    this.reply = reply;
  }
}

export const refused = (...how: Parameters<typeof problem>): Refusal => new Refusal(problem(...how));

/** Facts of an error that a caller may see; a status is that of the message. */
const SHOWN = ["id", "index", "limit", "issues", "revision", "resolution", "version", "seen", "status", "carrierId", "redriveId"];

/** What a thrown error becomes; undefined when it is none of ours and must be logged, not shown. */
export function problemOf(thrown: unknown, status?: number): Reply | undefined {
  if (thrown instanceof Refusal) return thrown.reply;
  if (!isMakegoodError(thrown)) return undefined;
  const { code, message, detail } = thrown;
  const known = SHOWN.filter((name) => detail[name] !== undefined && !(name === "redriveId" && detail[name] === null));
  const members = known.map((name) => [name === "status" ? "message_status" : wireName(name), detail[name]]);
  const faults = Array.isArray(detail.errors) ? (detail.errors as Fault[]) : [];
  const errors = faults.map((one) => ({ field: one.field, code, detail: one.detail }));
  return problem(code, message, { members: Object.fromEntries(members), errors, status });
}

/** An id in a path that names nothing. */
export const notFound = (what: "message" | "topic" | "group" | "candidate" | "rule" | "action" | "redrive", id: string) =>
  refused(`${what}_not_found`, `there is no ${what} ${id.slice(0, 250)}`);

/** Adds which request it was about; the path only, because a query may carry what should not be repeated. */
export function withInstance(reply: Reply, instance: string): Reply {
  if (reply.headers["content-type"] !== PROBLEM_TYPE) return reply;
  return { ...reply, body: `${reply.body.slice(0, -1)},"instance":${JSON.stringify(instance)}}` };
}
