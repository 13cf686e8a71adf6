/** The API as typed functions over `fetch` alone, for browsers, too; only what is safe to do twice is tried again. */
import { sleep, systemClock } from "../platform/clock.ts";
import { ADDRESSES, type RouteId } from "./addresses.ts";
import type { Fault } from "./faults.ts";
import type { AnswerOf, InputOf } from "./table.ts";

export interface ClientOptions {
  /** Such as `http://127.0.0.1:4600`. */
  readonly url: string;
  readonly token?: string | undefined;
  /** Instead of the global one. */
  readonly fetch?: ((request: Request) => Response | Promise<Response>) | undefined;
  /** How often what is safe to repeat is tried at most; default 3. */
  readonly triesMax?: number | undefined;
  /** How long one try may take; default 30 s. */
  readonly timeoutMs?: number | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An answer as it came: a payload keeps its exact text in it. */
export type RawAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** A refusal: its code is one of the documented ones, `errors` says what is wrong with which field. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly errors: readonly (Fault & { readonly index?: number; readonly code?: string })[];
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(status: number, problem: Readonly<Record<string, unknown>>) {
    super(typeof problem.detail === "string" ? problem.detail : `the server answered ${status}`);
    this.status = status;
    this.code = typeof problem.code === "string" ? problem.code : "no_problem_json";
    this.errors = Array.isArray(problem.errors) ? (problem.errors as ApiError["errors"]) : [];
    this.problem = problem;
  }
}

type RawOptions = CallOptions & { readonly body?: string | undefined };

type Args<Id extends RouteId> =
  Record<never, never> extends InputOf<Id>
    ? [input?: InputOf<Id>, options?: CallOptions]
    : [input: InputOf<Id>, options?: CallOptions];

export type Client = { readonly [Id in RouteId]: (...args: Args<Id>) => Promise<AnswerOf<Id>> } & {
  /** The answer as text, whatever its status. `body`: JSON text that is sent as it is, for payloads that must keep their bytes. */
  raw(id: RouteId, input?: object, options?: RawOptions): Promise<RawAnswer>;
};

const WAIT_MS = 200;
const LATE = "the server did not answer in time";

export function createClient(options: ClientOptions): Client {
  const base = options.url.replace(/\/+$/, "");
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const { triesMax = 3, timeoutMs = 30_000, token } = options;

  async function raw(id: RouteId, input: object = {}, call: RawOptions = {}): Promise<RawAnswer> {
    const { method, path, body } = addressed(id, input);
    const sent = call.body ?? body;
    const headers = {
      ...(sent === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...call.headers,
    };
    const tries = isRepeatable(method, input) ? triesMax : 1;
    for (let tried = 1; ; tried++) {
      const limit = new AbortController();
      const timer = systemClock.after(timeoutMs, () => limit.abort(new DOMException(LATE, "TimeoutError")));
      const signal = call.signal ? AbortSignal.any([call.signal, limit.signal]) : limit.signal;
      const request = new Request(base + path, { method, headers, signal, redirect: "error", body: sent });
      try {
        const response = await send(request);
        const answer = { status: response.status, headers: response.headers, text: await response.text() };
        if (tried >= tries || !(answer.status === 503 || answer.status === 429)) return answer;
        await sleep(systemClock, afterMs(answer.headers.get("retry-after"), tried), call.signal);
      } catch (error) {
        if (tried >= tries || call.signal?.aborted) throw error;
        await sleep(systemClock, WAIT_MS * 2 ** tried, call.signal);
      } finally {
        timer.cancel();
      }
    }
  }

  const call = (id: RouteId) => async (input?: object, how?: CallOptions) => answeredBy(await raw(id, input, how));
  const calls = Object.keys(ADDRESSES).map((id) => [id, call(id as RouteId)]);
  return { ...Object.fromEntries(calls), raw } as unknown as Client;
}

export function answeredBy({ status, headers, text }: RawAnswer): unknown {
  const json = /json/.test(headers.get("content-type") ?? "");
  const value: unknown = json ? JSON.parse(text) : text;
  if (status >= 400) throw new ApiError(status, json ? (value as ApiError["problem"]) : { detail: text.slice(0, 500) });
  return value;
}

/** The parts of the path are taken out of the input; the rest is the query of a GET, and the body of anything else. */
function addressed(id: RouteId, input: object): { method: string; path: string; body: string | undefined } {
  const [method, template] = ADDRESSES[id];
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name);
    rest.delete(name);
    return encodeURIComponent(String(value ?? ""));
  });
  if (method !== "GET")
    return { method, path, body: rest.size === 0 && method === "DELETE" ? undefined : JSON.stringify(Object.fromEntries(rest)) };
  const query = new URLSearchParams([...rest].map(([name, value]): [string, string] => [name, String(value)]));
  return { method, path: rest.size === 0 ? path : `${path}?${query}`, body: undefined };
}

/** Whether doing it twice is doing it once: what only reads, what replaces a whole, and what has a key. */
function isRepeatable(method: string, input: object): boolean {
  if (method === "GET" || method === "PUT") return true;
  const { key, idempotency_key: named, messages } = input as Record<string, unknown>;
  if (typeof key === "string" || typeof named === "string") return true;
  return Array.isArray(messages) && messages.every((one) => typeof (one as { key?: unknown } | null)?.key === "string");
}

function afterMs(header: string | null, tried: number): number {
  const seconds = Number(header);
  return header !== null && seconds >= 0 ? Math.min(seconds * 1_000, 10_000) : WAIT_MS * 2 ** tried;
}
