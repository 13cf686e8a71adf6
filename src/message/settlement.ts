/**
 * What is written under a claim, as decided by decide(). Delays are durations, never dates: the store's clock adds them.
 * A store writes exactly what a settlement says; it has no policy of its own.
 */
import type { AttemptOutcome, Claim, Suspicion } from "./message.ts";

interface Failed {
  readonly outcome: AttemptOutcome;
  readonly code: string | null;
  readonly error: string | null;
}

export type Settlement =
  | { readonly kind: "delivered"; readonly outcome: "delivered" | "duplicate" }
  /** Back to pending after `delayMs`. Not counted: the attempt number is given out again. `retried`: it failed, and waits apart from those that never did. */
  | ({
      readonly kind: "retry";
      readonly delayMs: number;
      readonly counted: boolean;
      readonly suspicion: Suspicion;
      readonly retried?: boolean | undefined;
    } & Failed)
  /** `blocksOrder`: a strict topic's dead head keeps its ordering key closed until a person decides. */
  | ({ readonly kind: "dead"; readonly blocksOrder: boolean } & Failed)
  /** Pending, never due, until a person replays, resolves or discards it. */
  | ({ readonly kind: "hold"; readonly reason: string; readonly counted: boolean } & Failed)
  /** Claimed but never started: put back as if it had not been claimed; no attempt row. */
  | { readonly kind: "release" };

/** One settlement with what proves the right to write it. */
export interface Settle {
  readonly id: string;
  readonly claim: Claim;
  readonly attempt: number;
  readonly durationMs: number | null;
  readonly settlement: Settlement;
}
