/**
 * What a handler sees of a request and how it answers: plain values, so that no handler knows what carries them and the
 * CLI can call the same handlers without a socket.
 */
import type { Reply } from "./problem.ts";

export interface ApiRequest {
  readonly method: string;
  /** The path with its escapes, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  header(name: string): string | null;
  /** The body, read once; null: it is longer than `bytesMax`. Rejects when it ends before it is whole. */
  bytes(bytesMax: number): Promise<Uint8Array | null>;
  /** Where it came through fetch. */
  readonly raw?: Request | undefined;
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

/** A page of a list; without `nextCursor` it is the whole. */
export function page<T>(found: { readonly data: readonly T[]; readonly nextCursor?: string | null }, each: (one: T) => unknown) {
  return json(200, { data: found.data.map((one) => each(one)), next_cursor: found.nextCursor ?? null });
}

export const DONE: Reply = { status: 204, headers: {}, body: "" };
