/**
 * What finalize() and a pass of replays return. There are exactly three outcomes of a finalize, and every
 * replay of a pass is counted exactly once.
 */

export type FinalizeResult =
  | { readonly ok: true; readonly status: "finalized" | "idempotent" }
  | {
      readonly ok: false;
      readonly status: "dlq";
      readonly reason: string;
      /** Under which id it is kept: the reservation id, or one that was made up for a request without a usable one. */
      readonly id: string;
      /** Where it is now, and what it survives there. */
      readonly stored: string;
      readonly survives: "power-loss" | "process-crash" | "nothing";
      /** A person has closed this reservation: nothing was kept again. */
      readonly closed?: "resolved" | "discarded" | undefined;
    };

/** `replayed` = `succeeded` + `failed` + `terminal`: every attempt of the pass, by what became of the obligation. */
export interface ReplayCounts {
  readonly replayed: number;
  readonly succeeded: number;
  /** Still open: it waits for its next attempt. */
  readonly failed: number;
  /** Became a dead letter: its attempts ended, or it was rejected for good. */
  readonly terminal: number;
}

export const NO_REPLAYS: ReplayCounts = Object.freeze({ replayed: 0, succeeded: 0, failed: 0, terminal: 0 });
