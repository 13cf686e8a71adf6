/**
 * What a handler sees of a request and how it answers: plain values, so that no handler knows what carries them and the
 * CLI can call the same handlers without a socket.
 */
import { isUuid } from "../platform/ids.ts";
import { notFound, type Reply } from "./problem.ts";

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

interface Named {
  readonly params: { readonly id: string };
}

/** The number in a path; what is none is as good as unknown. */
export function numbered(what: "group" | "candidate", { params: { id } }: Named): number {
  if (!/^[1-9][0-9]{0,14}$/.test(id)) throw notFound(what, id);
  return Number(id);
}

/** Likewise for those that have a UUID. */
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

/** With the version that a later change may insist on. */
export const tagged = (status: number, value: unknown, version: number, headers?: Headers): Reply =>
  json(status, value, { etag: `"${version}"`, ...headers });

/** I8: the text is spliced in as it is; parsing and printing it again would change numbers and escapes. Undefined: without it. */
export const spliced = (object: object, name: string, text: string | undefined): string =>
  text === undefined ? JSON.stringify(object) : `${JSON.stringify(object).slice(0, -1)},"${name}":${text}}`;

interface Page<T> {
  readonly data: readonly T[];
  /** Absent: it is the whole. */
  readonly nextCursor?: string | null;
}

export const page = <T>(found: Page<T>, each: (one: T) => unknown): Reply => pageText(found, (one) => JSON.stringify(each(one)));

/** The same where each is JSON text already. */
export const pageText = <T>({ data, nextCursor = null }: Page<T>, each: (one: T) => string): Reply =>
  jsonText(200, `{"data":[${data.map((one) => each(one)).join(",")}],"next_cursor":${JSON.stringify(nextCursor)}}`);

export const DONE: Reply = { status: 204, headers: {}, body: "" };
