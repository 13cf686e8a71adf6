/**
 * POSTs bodies to one url: the part that the http, webhook and notify sinks share. It keeps connections alive, bounds
 * how many there are, dials only what the guard lets through, and follows no redirect.
 */
import type { ConnectionOptions } from "node:tls";
import { oneLine } from "../message/one-line.ts";
import type { Outcome } from "../message/outcome.ts";
import type { SinkConfig } from "../message/topic.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { type AddressGuard, createAddressGuard } from "./address-guard.ts";
import { checkUrl } from "./check-target.ts";
import { type Answer, exchange, type Request } from "./exchange.ts";
import { joinPool } from "./pools.ts";
import { type FlatHeaders, fixedHeaders } from "./request-headers.ts";
import type { DeliverContext } from "./sink.ts";

export interface PosterOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Total for one attempt; the context's own limit holds as well. */
  readonly timeoutMs?: number | undefined;
  /** The sink may use private and loopback addresses. */
  readonly trusted?: boolean | undefined;
  /** A private certificate authority, or a client certificate. Verification cannot be turned off. */
  readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key"> | undefined;
  readonly connectionsMax?: number | undefined;
  /** True: bodies come back as they are, for a caller that reads them and never shows them. */
  readonly raw?: boolean | undefined;
}

/** What a stored configuration says of it; that the url is there was checked before. */
export function posterOptions({ url, headers, timeoutMs, trusted }: SinkConfig): PosterOptions {
  return { url: url as string, headers, timeoutMs, trusted };
}

export interface PosterDeps {
  readonly guard?: AddressGuard | undefined;
  readonly clock?: Clock | undefined;
}

export interface Poster {
  /** `headers` in addition to the configured ones. */
  post(body: string, headers: FlatHeaders, context: DeliverContext): Promise<Answer>;
  /** Reads another path of the same origin: the whole body, up to what an answer may have. */
  get(path: string, headers: FlatHeaders, context: DeliverContext): Promise<Answer>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** For all that post to one receiver. */
const CONNECTIONS_MAX = 1_024;
const SNIPPET_BYTES = 1_000;

export function createPoster(options: PosterOptions, deps: PosterDeps = {}): Poster {
  const clock = deps.clock ?? systemClock;
  const anyone = deps.guard ?? createAddressGuard();
  const guard = options.trusted === true ? anyone.trusting : anyone;
  // Decided again here and not only when it was saved: the guard's configuration may have changed since.
  const refusal = checkUrl(options.url, guard);
  if (refusal !== null) return refusingPoster(refusal);

  const url = new URL(options.url);
  const fixed = fixedHeaders(options.headers);
  const secrets = secretsIn(options.headers);
  const { pool, leave } = joinPool(guard, {
    origin: url.origin,
    connectTimeoutMs: Math.min(options.timeoutMs ?? CONNECT_TIMEOUT_MS, CONNECT_TIMEOUT_MS),
    connections: options.connectionsMax ?? CONNECTIONS_MAX,
    tls: options.tls,
  });
  const { origin } = url;
  const path = url.pathname + url.search;
  let running = 0;
  let closed: Promise<void> | undefined;
  let idle: () => void = () => undefined;
  const ended = (answer: Answer): Answer => {
    if (--running === 0) idle();
    if (options.raw === true || answer.kind === "failed" || answer.body === "") return answer;
    return { ...answer, body: shown(answer.body, secrets) };
  };
  const send = (request: Request, context: DeliverContext, reads: boolean): Promise<Answer> => {
    if (closed !== undefined) return Promise.resolve(CLOSED);
    const timeoutMs = Math.min(options.timeoutMs ?? context.timeoutMs, context.timeoutMs);
    running++;
    return exchange(pool, request, context, timeoutMs, clock, reads).then(ended);
  };

  return {
    // Field by field: for each message of a backlog spreads would cost more than all the rest of this.
    post: (body, headers, context) =>
      send({ origin, path, method: "POST", headers: [...fixed, ...headers], body }, context, false),
    get: (path, headers, context) => send({ origin, path, method: "GET", headers: [...fixed, ...headers] }, context, true),
    /** Attempts under way end by themselves, each by its own deadline; nothing else is waited for. */
    close() {
      closed ??= new Promise<void>((resolve) => {
        idle = resolve;
        if (running === 0) resolve();
      }).then(leave);
      return closed;
    },
  };
}

function failed(outcome: Outcome): Answer {
  return { kind: "failed", outcome };
}

const CLOSED = failed({ kind: "unserved", code: "sink_closed", error: "the sink is closed" });

function refusingPoster(reason: string): Poster {
  const answer = failed({ kind: "unserved", code: "address_refused", error: reason });
  const refused = () => Promise.resolve(answer);
  return { post: refused, get: refused, close: () => Promise.resolve() };
}

/** Receivers echo what they were sent; our credentials must not reach the error column that way. */
function secretsIn(headers: Readonly<Record<string, string>> = {}): string[] {
  return Object.entries(headers)
    .filter(([name]) => !/^(?:content-type|user-agent|accept)$/i.test(name))
    .flatMap(([, value]) => value.split(/[\s,;]+/))
    .filter((part) => part.length >= 8);
}

function shown(body: string, secrets: readonly string[]): string {
  let text = body;
  for (const secret of secrets) text = text.replaceAll(secret, "[redacted]");
  return oneLine(text.trim(), SNIPPET_BYTES);
}
