/**
 * What a handler sees of a request and how it answers: plain values, so that no handler knows the web framework and the
 * CLI can call the same handlers without a socket.
 */
import type { Reply } from "./problem.ts";

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly params: ReadonlyMap<string, string>;
  readonly query: URLSearchParams;
  /** Who asks: the token's name, or `local` where none is needed. */
  readonly actor: string;
  /** Whether that is the name of a token, and not one that everybody shares. */
  readonly named: boolean;
  header(name: string): string | null;
  /** The raw body stream; null when there is none. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** All of the body at once, where its length was declared. */
  bytes(): Promise<Uint8Array>;
}

/** Either what was asked for, or the refusal to send instead. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reply: Reply };

export function parsed<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

export function refused<T>(reply: Reply): Parsed<T> {
  return { ok: false, reply };
}

/** `body` is JSON text already: payloads go out as they came in, never through JSON.stringify. */
export function jsonText(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { "content-type": "application/json", ...headers }, body };
}

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return jsonText(status, JSON.stringify(value), headers);
}
