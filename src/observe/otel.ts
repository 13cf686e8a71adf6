/**
 * Spans and metrics by the API of OpenTelemetry, where the application has that package. It never decides anything: what goes wrong here
 * changes nothing for a message. Until a provider is registered nothing is made; whether one is, is asked once for each batch.
 */
import type * as Otel from "@opentelemetry/api";
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { ClaimedMessage, NewMessage } from "../message/message.ts";
import type { Outcome } from "../message/outcome.ts";
import { redact } from "../message/redact.ts";
import type { Clock } from "../platform/clock.ts";
import { createOtelMeters, type OtelMeters } from "./otel-meters.ts";
import { ATTRIBUTES as A, type Operation, SCOPE } from "./otel-names.ts";
import type { AttemptSpan, Spans, TracingOptions, Tried } from "./spans.ts";
import { spanContextOf, traceparentText } from "./traceparent.ts";

/** As many as the conventions' own limit: what more a batch has is found by its messages. */
const LINKS_MAX = 128;

interface Failure {
  readonly code: string;
  readonly text: string | null;
}

/** Null where the package is not there, or tracing is switched off: then nobody pays for it. */
export async function loadSpans(options: TracingOptions | false | undefined, clock: Clock): Promise<Spans | null> {
  if (options === false) return null;
  try {
    return new OtelSpans(await import("@opentelemetry/api"), clock, options ?? {});
  } catch {
    return null;
  }
}

class OtelSpans implements Spans {
  readonly #api: typeof Otel;
  readonly #clock: Clock;
  readonly #propagate: boolean;
  readonly #keys: boolean;
  #tracer: Otel.Tracer | null = null;
  #meters: OtelMeters | null = null;
  #provider: Otel.MeterProvider | null = null;

  constructor(api: typeof Otel, clock: Clock, { propagate = false, keys = false }: TracingOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#propagate = propagate;
    this.#keys = keys;
  }

  sent<T>(
    messages: readonly NewMessage[],
    work: (messages: readonly NewMessage[]) => Promise<T>,
    failure: (result: T) => string | null = () => null,
  ): Promise<T> {
    if (!this.#listened()) return work(messages);
    const sending = quietly(() => this.#sending(messages)) ?? { span: undefined, messages };
    const startedMs = this.#clock.monotonicMs();
    const over = (failed: Failure | null): void =>
      quietly(() => {
        this.#meters?.operation("send", messages, (this.#clock.monotonicMs() - startedMs) / 1_000, failed?.code);
        this.#end(sending.span, failed);
      });
    const run = (): Promise<T> => work(sending.messages);
    return (sending.span ? this.#within(this.#api.context.active(), sending.span, run) : run()).then(
      (result) => {
        const code = failure(result);
        over(code === null ? null : { code, text: null });
        return result;
      },
      (error) => {
        over(failureOf(error));
        throw error;
      },
    );
  }

  received(messages: readonly ClaimedMessage[], ms: number, error?: unknown): void {
    if (this.#listened() && (messages.length > 0 || error !== undefined)) this.#called("receive", messages, ms, error);
  }

  settled(batch: readonly { readonly message: ClaimedMessage }[], ms: number, error?: unknown): void {
    if (!this.#tracer && !this.#meters) return;
    const messages = batch.map(({ message }) => message);
    this.#called("settle", messages, ms, error);
  }

  attempt(message: Tried, direct: boolean): AttemptSpan | null {
    if (!this.#tracer && !this.#meters) return null;
    return quietly(() => this.#attempt(message, direct)) ?? null;
  }

  /** Whether anybody registered anything, and who. An SDK may come after us, and go. */
  #listened(): boolean {
    const { trace, metrics, createNoopMeter } = this.#api;
    const tracers = trace.getTracerProvider() as Otel.TracerProvider & Partial<Otel.ProxyTracerProvider>;
    const tracer = tracers.getDelegateTracer ? tracers.getDelegateTracer(SCOPE) : tracers.getTracer(SCOPE);
    this.#tracer = tracer ?? null;
    const provider = metrics.getMeterProvider();
    if (provider !== this.#provider) {
      this.#provider = provider;
      const meter = provider.getMeter(SCOPE);
      this.#meters = meter === createNoopMeter() ? null : createOtelMeters(meter);
    }
    return this.#tracer !== null || this.#meters !== null;
  }

  #sending(messages: readonly NewMessage[]): { span: Otel.Span | undefined; messages: readonly NewMessage[] } {
    const { context, trace, SpanKind } = this.#api;
    const active = context.active();
    const given = messages[0]?.traceparent ?? null;
    const parent = trace.getSpan(active) || given === null ? active : this.#remote(active, given);
    // A batch has a span for each message that is to carry one, and then it is not itself what they were made in.
    const each = this.#propagate && messages.length > 1;
    const span = this.#start("send", messages, { kind: each ? SpanKind.CLIENT : SpanKind.PRODUCER }, parent);
    if (!span || !this.#propagate) return { span, messages };
    const within = trace.setSpan(active, span);
    const carrying = messages.map((message) => {
      if (message.traceparent !== null) return message;
      const made = each ? this.#start("create", [message], { kind: SpanKind.PRODUCER }, within) : span;
      if (each) made?.end();
      return { ...message, traceparent: made ? this.#text(made) : null };
    });
    return { span, messages: carrying };
  }

  #attempt(message: Tried, direct: boolean): AttemptSpan {
    const { context, ROOT_CONTEXT, SpanKind } = this.#api;
    // A worker's loop began in whatever was active then: an attempt belongs to none of it.
    const parent = direct ? context.active() : ROOT_CONTEXT;
    const attributes = { [A.attempt]: message.attempt };
    const links = direct ? [] : this.#links([message]);
    const span = this.#start("process", [message], { kind: SpanKind.CONSUMER, attributes, links }, parent);
    return {
      traceparent: this.#propagate && span ? this.#text(span) : null,
      run: (work) => (span ? this.#within(parent, span, work) : work()),
      end: (outcome, ms) =>
        void quietly(() => {
          const failed = failureOfOutcome(outcome);
          this.#meters?.processed(message.topic, ms / 1_000, failed?.code);
          span?.setAttribute(A.outcome, outcome.kind);
          this.#end(span, failed);
        }),
    };
  }

  /** A call that is over. */
  #called(operation: "receive" | "settle", messages: readonly ClaimedMessage[], ms: number, error: unknown): void {
    quietly(() => {
      const failed = error === undefined ? null : failureOf(error);
      this.#meters?.operation(operation, messages, ms / 1_000, failed?.code);
      const endMs = this.#clock.wallMs();
      const { SpanKind, ROOT_CONTEXT } = this.#api;
      const how = { kind: SpanKind.CLIENT, links: this.#links(messages), startTime: endMs - ms };
      this.#end(this.#start(operation, messages, how, ROOT_CONTEXT), failed, endMs);
    });
  }

  #start(
    operation: Operation,
    messages: readonly Pick<NewMessage, "topic" | "id" | "key">[],
    how: Otel.SpanOptions,
    parent: Otel.Context,
  ): Otel.Span | undefined {
    const [first] = messages;
    const topic = messages.every((message) => message.topic === first?.topic) ? first?.topic : undefined;
    const one = messages.length === 1 && operation !== "receive" && operation !== "settle";
    const attributes = {
      [A.system]: SCOPE,
      [A.operationName]: operation,
      [A.operationType]: operation,
      ...(topic === undefined ? {} : { [A.destination]: topic }),
      ...(one ? { [A.messageId]: first?.id } : { [A.batchCount]: messages.length }),
      ...(one && this.#keys && first?.key ? { [A.key]: first.key } : {}),
      ...how.attributes,
    };
    return this.#tracer?.startSpan(topic === undefined ? operation : `${operation} ${topic}`, { ...how, attributes }, parent);
  }

  #end(span: Otel.Span | undefined, failed: Failure | null, endMs?: number): void {
    if (!span) return;
    if (failed) {
      const message = failed.text === null ? undefined : redact(failed.text);
      span.setAttribute(A.errorType, failed.code);
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message });
      // Without a stack: it would carry the text as it was.
      if (message !== undefined) span.recordException({ name: failed.code, message });
    }
    span.end(endMs);
  }

  #within<T>(parent: Otel.Context, span: Otel.Span, work: () => T): T {
    return this.#api.context.with(this.#api.trace.setSpan(parent, span), work);
  }

  #links(messages: readonly Pick<NewMessage, "traceparent">[]): Otel.Link[] {
    const links: Otel.Link[] = [];
    for (const { traceparent } of messages) {
      const context = traceparent === null ? null : spanContextOf(traceparent);
      if (context !== null && links.push({ context }) === LINKS_MAX) break;
    }
    return links;
  }

  #remote(active: Otel.Context, traceparent: string): Otel.Context {
    const context = spanContextOf(traceparent);
    return context === null ? active : this.#api.trace.setSpanContext(active, context);
  }

  #text(span: Otel.Span): string | null {
    const context = span.spanContext();
    return this.#api.isSpanContextValid(context) ? traceparentText(context) : null;
  }
}

function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function failureOf(error: unknown): Failure {
  const code = isMakegoodError(error) ? error.code : error instanceof Error ? error.name : "error";
  return { code, text: errorText(error) };
}

/** Null: it ended well, or our own shutdown ended it. */
function failureOfOutcome(outcome: Outcome): Failure | null {
  if (outcome.kind === "delivered" || outcome.kind === "duplicate" || outcome.kind === "interrupted") return null;
  return "error" in outcome ? { code: outcome.code, text: outcome.error } : { code: outcome.kind, text: null };
}
