/**
 * One HTTP exchange: sends a request through undici's lowest interface and says what came back, exactly once and never as a
 * throw. It knows whether bytes were sent (undici tells when it starts to write), it lets the status decide however
 * large or slow the body is, and it holds no connection longer than a short, bounded time after that.
 */
import type { Dispatcher } from "undici";
import { LIMITS } from "../message/limits.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Clock, Timer } from "../platform/clock.ts";
import { outcomeOfCut, outcomeOfFailure } from "./failure.ts";
import type { DeliverContext } from "./sink.ts";

export type Answer =
  | { readonly kind: "answered"; readonly status: number; readonly retryAfter: string | null; readonly body: string }
  | { readonly kind: "failed"; readonly outcome: Outcome };

/** How long a body may take after the status is known: to be read for its first words, and to free the connection. */
const BODY_WAIT_MS = 500;
/** From here on a tenth of a second more or less is nothing. */
const COARSE_MS = 1_000;
/** Twice what is shown, so that a credential that the receiver echoes is whole when it is looked for. */
const BODY_KEPT_BYTES = 2_048;

export type Request = Pick<Dispatcher.DispatchOptions, "origin" | "path" | "method" | "headers" | "body">;

/** `reads`: the body is what is asked for; of a 2xx, too, it is waited for, and kept whole. */
export function exchange(
  dispatcher: Dispatcher,
  { origin, path, method, headers, body }: Request,
  context: DeliverContext,
  timeoutMs: number,
  clock: Clock,
  reads = false,
): Promise<Answer> {
  return new Promise((resolve) => {
    const running = new Exchange(resolve, context, timeoutMs, clock, reads);
    // undici's own timeouts count from chunk to chunk, so a trickle never ends; the deadline here is the only one.
    const options = { origin, path, method, headers, body, headersTimeout: 0, bodyTimeout: 0 };
    if (running.start()) dispatcher.dispatch(options, running);
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void;
  readonly #context: DeliverContext;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #reads: boolean;
  readonly #keptMax: number;
  #deadline: Timer | undefined;
  #bodyTimer: Timer | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #signal: AbortSignal | undefined;
  #signalled: (() => void) | undefined;
  #answered: boolean;
  #ended: boolean;
  #status = 0;
  #retryAfter: string | null = null;
  #encoding: string | null = null;
  #bytes = 0;
  #kept: Buffer[] = [];

  constructor(resolve: (answer: Answer) => void, context: DeliverContext, timeoutMs: number, clock: Clock, reads: boolean) {
    this.#resolve = resolve;
    this.#reads = reads;
    this.#keptMax = reads ? LIMITS.responseBytesMax : BODY_KEPT_BYTES;
    this.#context = context;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#answered = false;
    this.#ended = false;
  }

  /** False when it is over before it began. */
  start(): boolean {
    const context = this.#context;
    if (context.onAbort) context.onAbort((reason) => this.#cutShort(reason));
    else this.#listen(context.signal);
    if (this.#answered) return false;
    // A caller that reports an abort keeps its own deadline, to the tenth of a second; only a shorter one is ours to keep.
    const kept = context.onAbort !== undefined && this.#timeoutMs >= Math.max(context.timeoutMs, COARSE_MS);
    if (!kept) this.#deadline = this.#clock.after(this.#timeoutMs, () => this.#cutShort(null));
    return true;
  }

  #listen(signal: AbortSignal): void {
    if (signal.aborted) {
      this.#cutShort(signal.reason);
      return;
    }
    this.#signal = signal;
    this.#signalled = () => this.#cutShort(signal.reason);
    signal.addEventListener("abort", this.#signalled, { once: true });
  }

  /** undici calls this right before it writes to a connected socket: from here on the receiver may have acted. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The deadline passed while the request waited for a connection; it was reported as not sent, so it must not be.
    if (this.#answered) controller.abort(new Error("cut short before it was sent"));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Record<string, unknown>): void {
    if (status < 200) return;
    this.#status = status;
    this.#retryAfter = firstOf(headers["retry-after"]);
    this.#encoding = firstOf(headers["content-encoding"]);
    if (status < 300 && !this.#reads) this.#answerByStatus();
    // Most bodies came in the same packet and are over before this runs: they cost no timer.
    queueMicrotask(() => {
      if (!this.#ended) this.#bodyTimer = this.#clock.after(BODY_WAIT_MS, () => this.#enough(), true);
    });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#answered) this.#kept.push(chunk.subarray(0, this.#keptMax));
    this.#bytes += chunk.length;
    if (this.#bytes >= this.#keptMax) this.#answerByStatus();
    if (this.#bytes > LIMITS.responseBytesMax) this.#enough();
  }

  onResponseEnd(): void {
    this.#end();
    this.#answerByStatus();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: unknown): void {
    this.#end();
    if (this.#status > 0) this.#answerByStatus();
    else this.#answer({ kind: "failed", outcome: outcomeOfFailure(error, this.#controller !== undefined) });
  }

  #cutShort(reason: unknown): void {
    if (this.#answered) return;
    if (this.#status > 0) {
      this.#enough();
      return;
    }
    const timeoutMs = this.#timeoutMs;
    const elapsedMs = this.#clock.monotonicMs() - this.#startedMs;
    // Timers may fire a little early, and the worker's own deadline may win the race by a moment: late is late.
    const late = elapsedMs >= timeoutMs - 5 || (reason instanceof Error && reason.name === "TimeoutError");
    this.#answer({ kind: "failed", outcome: outcomeOfCut(this.#controller !== undefined, late, timeoutMs) });
    this.#drop();
  }

  /** The status is known and the body has had its time. */
  #enough(): void {
    this.#answerByStatus();
    this.#drop();
  }

  /** Closes the connection: the rest of a body nobody reads must not answer the next message. */
  #drop(): void {
    if (this.#ended) return;
    this.#end();
    this.#controller?.abort(new Error("the rest of the answer is not read"));
  }

  #end(): void {
    this.#ended = true;
    this.#bodyTimer?.cancel();
  }

  #answerByStatus(): void {
    if (this.#answered) return;
    // Never decompressed: a few bytes of gzip can become gigabytes, for words that only a person would read.
    const encoded = this.#encoding !== null && this.#encoding !== "identity";
    const body = encoded ? `(a body encoded as ${this.#encoding})` : textOf(this.#kept, this.#keptMax);
    this.#answer({ kind: "answered", status: this.#status, retryAfter: this.#retryAfter, body });
  }

  #answer(answer: Answer): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#kept = [];
    this.#deadline?.cancel();
    if (this.#signalled) this.#signal?.removeEventListener("abort", this.#signalled);
    this.#resolve(answer);
  }
}

const textOf = (kept: readonly Buffer[], bytesMax: number): string =>
  kept.length === 0 ? "" : Buffer.concat(kept).toString("utf8", 0, bytesMax);

function firstOf(value: unknown): string | null {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" ? first : null;
}
