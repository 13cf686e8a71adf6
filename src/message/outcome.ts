/**
 * What a sink answered, as a value. A sink never throws to say no: `retry` is about the world (try again later),
 * `reject` is about the message (it will never fit), `unknown` means that the effect may or may not have landed.
 */

import type { AttemptOutcome } from "./message.ts";

/** What deliver() passes on to its caller of the receiver's answer, where a sink gives it; nothing is decided by it. */
export interface ReceiverAnswer {
  readonly status?: number | undefined;
  readonly body?: string | undefined;
}

/** An attempt that was made elsewhere and failed. */
export interface AttemptMade {
  readonly outcome: Exclude<AttemptOutcome, "delivered" | "duplicate">;
  readonly code: string | null;
  readonly error: string | null;
  readonly durationMs: number | null;
  readonly counted: boolean;
  /** True: it ended the message. */
  readonly dead: boolean;
  /** What is left of the wait after it. */
  readonly waitMs: number;
}

export type Outcome =
  | ({ readonly kind: "delivered" } & ReceiverAnswer)
  /** The receiver knew the key already: as good as delivered, and recorded as what it was. */
  | ({ readonly kind: "duplicate" } & ReceiverAnswer)
  | {
      readonly kind: "retry";
      readonly code: string;
      readonly error: string;
      /** What the receiver asked for; clamped by decide(). */
      readonly retryAfterMs?: number | undefined;
      /** Credentials or configuration look wrong: a person should look, retrying alone will not help. */
      readonly alert?: boolean | undefined;
      readonly outage?: boolean | undefined;
      /**
       * What it says about the receiver besides the message. `unasked`: nothing was sent or dialled, so nothing. `answers`: it lives, and only this
       * message has to wait. Absent: it failed.
       */
      readonly receiver?: "unasked" | "answers" | undefined;
    }
  | { readonly kind: "reject"; readonly code: string; readonly error: string }
  | {
      readonly kind: "unknown";
      readonly code: string;
      readonly error: string;
      /** True: the receiver as a whole is away, which says nothing about the message; no attempt is spent. */
      readonly outage?: boolean | undefined;
    }
  /** The receiver does not want anything any more (410 to a webhook): the topic's sink is disabled and the message held. */
  | { readonly kind: "disable"; readonly code: string; readonly error: string }
  /**
   * This process may not or cannot deliver it (its own allow-list, no descriptor, no key to sign with): nothing was sent, and it says
   * nothing about the receiver or the message, which goes back uncounted to others.
   */
  | { readonly kind: "unserved"; readonly code: string; readonly error: string }
  /** Not an answer of a sink: the claim was lost (a crash, a stall), found by the process that reclaimed the lease. */
  | { readonly kind: "lost" }
  /** Not an answer of a sink: our own shutdown or a move of the message cut the attempt short; the message waits on as before. */
  | { readonly kind: "interrupted"; readonly move?: { readonly error: string; readonly waitMs: number } | undefined }
  /** Not an answer of a sink: an attempt that was made where the message lay before, with what was decided there. */
  | { readonly kind: "made"; readonly attempt: AttemptMade };

export const DELIVERED: Outcome = Object.freeze({ kind: "delivered" });
export const DUPLICATE: Outcome = Object.freeze({ kind: "duplicate" });
