/**
 * The seam of tracing: what each step of the walk tells of itself, where the application has the API of OpenTelemetry
 * (`src/observe/otel.ts`). Otherwise there is no such object, and a step costs one comparison.
 */
import type { ClaimedMessage, NewMessage } from "../message/message.ts";
import type { Outcome } from "../message/outcome.ts";

export interface TracingOptions {
  /**
   * True: the span that enqueues is kept with the message as its `traceparent`, unless one was given, and what an attempt sends carries the
   * attempt's own. Never baggage.
   */
  readonly propagate?: boolean | undefined;
  /** True: spans carry the message's key. */
  readonly keys?: boolean | undefined;
}

export interface Spans {
  /** Around an enqueue: `work` gets the messages as they are to be stored. `failure`: the code of a result that is none. */
  sent<T>(
    messages: readonly NewMessage[],
    work: (messages: readonly NewMessage[]) => Promise<T>,
    failure?: (result: T) => string | null,
  ): Promise<T>;
  /** A claim came back after `ms`; with nothing, unless it failed, nobody needs to know. */
  received(messages: readonly ClaimedMessage[], ms: number, error?: unknown): void;
  /** A try at a sink begins; null: nobody listens. `direct`: the caller waits for it, and it belongs to the caller's trace. */
  attempt(message: Tried, direct: boolean): AttemptSpan | null;
  settled(batch: readonly { readonly message: ClaimedMessage }[], ms: number, error?: unknown): void;
}

export type Tried = Pick<ClaimedMessage, "id" | "topic" | "key" | "payload" | "traceparent" | "attempt">;

export interface AttemptSpan {
  /** What goes out with the message instead of its own; null: its own does. */
  readonly traceparent: string | null;
  /** Runs the sink, so that what it does stands below this span. */
  run<T>(work: () => T): T;
  /** Once. */
  end(outcome: Outcome, ms: number): void;
}
