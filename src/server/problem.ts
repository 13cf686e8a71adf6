/**
 * Every refusal of the API as RFC 9457 problem+json: a stable code, what happened, and to which request.
 */
import { type Fault, namedOf } from "../contract/faults.ts";
import { type ProblemCode, statusOf } from "../contract/problem-codes.ts";
import { isMakegoodError } from "../message/errors.ts";

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
  /** How many faults there are besides those in `errors`. */
  readonly more?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  /** Where the same code means another status, as payload_too_large does inside a batch. */
  readonly status?: number | undefined;
}

export const PROBLEM_TYPE = "application/problem+json";

/** How long a client should wait before it asks a store again that did not answer. */
const RETRY_AFTER_SECONDS = "2";

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
    ...(extra.more ? { errors_more: extra.more } : {}),
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
export function problemOf(thrown: unknown, status?: number): Reply | undefined {
  if (thrown instanceof Refusal) return thrown.reply;
  if (!isMakegoodError(thrown)) return undefined;
  const shown = SHOWN.flatMap(([name, shownAs]): [string, unknown][] => {
    const value = thrown.detail[name];
    return value === undefined || (name === "redriveId" && value === null) ? [] : [[shownAs, value]];
  });
  const members = Object.fromEntries(shown);
  const faults = thrown.detail.errors;
  const { named, more } = namedOf(Array.isArray(faults) ? (faults as Fault[]) : []);
  const errors = named.length === 0 ? undefined : named.map(({ field, detail }) => ({ field, code: thrown.code, detail }));
  return problem(thrown.code, thrown.message, { members, errors, more, status });
}

/** Adds which request it was about; the path only, because a query may carry what should not be repeated. */
export function withInstance(reply: Reply, instance: string): Reply {
  if (reply.headers["content-type"] !== PROBLEM_TYPE) return reply;
  return { ...reply, body: `${reply.body.slice(0, -1)},"instance":${JSON.stringify(instance)}}` };
}
