/**
 * Every refusal of the API as RFC 9457 problem+json: a stable code, what happened, and to which request. The kernel's
 * codes come from message/errors; the few that only HTTP knows stand here.
 */
import { ERROR_CODES, type ErrorCode, isMakegoodError } from "../../message/errors.ts";

const HTTP_CODES = {
  unauthorized: 401,
  cross_origin_refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected_request: 421,
  invalid_query: 400,
  batch_refused: 422,
  headers_too_large: 431,
  internal_error: 500,
  not_ready: 503,
} as const;

export type ProblemCode = ErrorCode | keyof typeof HTTP_CODES;

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
  readonly errors?: readonly ProblemItem[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  /** Where the same code means another status, as payload_too_large does inside a batch. */
  readonly status?: number | undefined;
}

export const PROBLEM_TYPE = "application/problem+json";

/** How long a client should wait before it asks a store again that did not answer. */
const RETRY_AFTER_SECONDS = "2";

export function statusOf(code: ProblemCode): number {
  return code in ERROR_CODES ? ERROR_CODES[code as ErrorCode].status : HTTP_CODES[code as keyof typeof HTTP_CODES];
}

export function problem(code: ProblemCode, detail: string, extra: ProblemExtra = {}): Reply {
  const status = extra.status ?? statusOf(code);
  const words = code.replaceAll("_", " ");
  const body = {
    type: `urn:makegood:error:${code}`,
    title: words.charAt(0).toUpperCase() + words.slice(1),
    status,
    code,
    detail,
    ...extra.members,
    ...(extra.errors ? { errors: extra.errors } : {}),
  };
  const headers: Record<string, string> = { "content-type": PROBLEM_TYPE, ...extra.headers };
  if (status === 503 || status === 507) headers["retry-after"] ??= RETRY_AFTER_SECONDS;
  return { status, headers, body: JSON.stringify(body) };
}

/** Facts of an error that a caller may see, and the member they become. */
const SHOWN = [
  ["id", "id"],
  ["index", "index"],
  ["limit", "limit"],
  ["issues", "issues"],
  ["revision", "revision"],
  ["status", "message_status"],
  ["resolution", "resolution"],
  ["version", "version"],
  ["carrierId", "carrier_id"],
  ["redriveId", "redrive_id"],
  ["seen", "seen"],
] as const;

/** What a thrown error becomes; undefined when it is none of ours and must be logged, not shown. */
export function problemOf(thrown: unknown): Reply | undefined {
  if (!isMakegoodError(thrown)) return undefined;
  const shown = SHOWN.flatMap(([name, shownAs]): [string, unknown][] => {
    const value = thrown.detail[name];
    return value === undefined || (name === "redriveId" && value === null) ? [] : [[shownAs, value]];
  });
  const members = Object.fromEntries(shown);
  return problem(thrown.code, thrown.message, { members, errors: faultsIn(thrown.detail.errors, thrown.code) });
}

/** The single faults of a refusal: `{ field, detail }`, or `{ path, text }` as the rules say it. */
function faultsIn(errors: unknown, code: ProblemCode): ProblemItem[] | undefined {
  if (!Array.isArray(errors)) return undefined;
  return errors.map((one: Readonly<Record<string, unknown>>) => ({
    field: String(one.field ?? one.path ?? ""),
    code,
    detail: String(one.detail ?? one.text ?? one.message ?? ""),
  }));
}

/** Adds which request it was about; the path only, because a query may carry what should not be repeated. */
export function withInstance(reply: Reply, instance: string): Reply {
  if (reply.headers["content-type"] !== PROBLEM_TYPE) return reply;
  return { ...reply, body: `${reply.body.slice(0, -1)},"instance":${JSON.stringify(instance)}}` };
}
