/**
 * The Sink seam: one method that makes a message into an Outcome. A sink never touches a store, never retries and never
 * waits past its deadline; a throw becomes `retry`, a timeout after the request was sent becomes `unknown`.
 */
import type { Outcome } from "../message/outcome.ts";

/** What a sink sees of a message. */
export interface Delivery {
  readonly id: string;
  readonly topic: string;
  readonly tenantId: string | null;
  /** The effect's identity, constant over every attempt and replay (I7): the key, else the id. */
  readonly idempotencyKey: string;
  readonly key: string | null;
  /** The exact accepted text (I8). */
  readonly payload: string;
  readonly attempt: number;
  readonly traceparent: string | null;
  readonly schemaVersion: number | null;
}

export interface DeliverContext {
  /** Aborted when the deadline passes, the claim is lost or the worker shuts down. Made on first use: reading it costs. */
  readonly signal: AbortSignal;
  /**
   * The same moment without the price of a signal: one listener, called with the reason, at once when it is past. Absent: use the
   * signal.
   */
  onAbort?(listener: (reason: Error) => void): void;
  /** The total time this attempt has. */
  readonly timeoutMs: number;
}

export interface Sink {
  readonly kind: string;
  /** A plain value is allowed so that a fast in-process function costs no promise. */
  deliver(delivery: Delivery, context: DeliverContext): Outcome | Promise<Outcome>;
  /** Asks the receiver whether an unknown attempt landed: `delivered`, `retry`, or still `unknown`. */
  probe?(delivery: Delivery, context: DeliverContext): Promise<Outcome>;
  /** True: messages come only now and then (after an outage, say); no room is kept free for them while there are none. */
  readonly onDemand?: boolean;
  close?(): Promise<void>;
}
