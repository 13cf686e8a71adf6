/** What a handler sees of a request and how it answers: plain values. A refusal is RFC 9457 problem+json with a stable code. */
import { FAULTS_NAMED_MAX, type Fault } from "../contract/faults.ts";
import { type ProblemCode, type ProblemItem, statusOf, titleOf } from "../contract/route.ts";
import { isMakegoodError } from "../message/errors.ts";
import { isUuid } from "../platform/ids.ts";
import { wireName } from "./json/wire.ts";

export interface ApiRequest {
  readonly method: string;
  /** The path with its escapes, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  header(name: string): string | null;
  /** The body, read once; null: it is longer than `bytesMax`. Rejects when it ends before it is whole. */
  bytes(bytesMax: number): Promise<Uint8Array | null>;
  /** What it came as: a Request of fetch, or an IncomingMessage of Node. For programs that mount the API. */
  readonly carrier?: unknown;
}

type Named = { readonly params: { readonly id: string } };

/** The number in a path; what is none is as good as unknown. */
export function numbered(what: "group" | "candidate", { params: { id } }: Named): number {
  if (!/^[1-9][0-9]{0,14}$/.test(id)) throw notFound(what, id);
  return Number(id);
}

export function identified(what: "message" | "redrive", { params: { id } }: Named): string {
  if (!isUuid(id)) throw notFound(what, id);
  return id;
}

type Headers = Readonly<Record<string, string>>;

/** `body` is JSON text already: payloads go out as they came in, never through JSON.stringify. */
export function jsonText(status: number, body: string, headers: Headers = {}): Reply {
  return { status, headers: { "content-type": "application/json", ...headers }, body };
}

export const json = (status: number, value: unknown, headers?: Headers): Reply =>
  jsonText(status, JSON.stringify(value), headers);

export const tagged = (status: number, value: unknown, version: number, headers?: Headers): Reply =>
  json(status, value, { etag: `"${version}"`, ...headers });

/** I8: the text is spliced in as it is; parsing and printing it again would change numbers and escapes. Undefined: without it. */
export const spliced = (object: object, name: string, text: string | undefined): string =>
  text === undefined ? JSON.stringify(object) : `${JSON.stringify(object).slice(0, -1)},"${name}":${text}}`;

type Page<T> = { readonly data: readonly T[]; readonly nextCursor?: string | null };

export const page = <T>(found: Page<T>, each: (one: T) => unknown): Reply => pageText(found, (one) => JSON.stringify(each(one)));

export const pageText = <T>({ data, nextCursor = null }: Page<T>, each: (one: T) => string): Reply =>
  jsonText(200, `{"data":[${data.map((one) => each(one)).join(",")}],"next_cursor":${JSON.stringify(nextCursor)}}`);

export const DONE: Reply = { status: 204, headers: {}, body: "" };

export type Reply = { readonly status: number; readonly headers: Headers; readonly body: string };

export interface ProblemExtra {
  /** C1: the first twenty are named. */
  readonly errors?: readonly ProblemItem[] | undefined;
  readonly more?: number | undefined;
  readonly headers?: Headers | undefined;
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  /** Where the same code means another status, as a version does that came as If-Match. */
  readonly status?: number | undefined;
}

export const PROBLEM_TYPE = "application/problem+json";
const DETAIL_CHARS_MAX = 8_000;
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

type Missing = ProblemCode extends infer Code ? (Code extends `${infer What}_not_found` ? What : never) : never;
export const notFound = (what: Missing, id: string) => refused(`${what}_not_found`, `there is no ${what} ${id.slice(0, 250)}`);
