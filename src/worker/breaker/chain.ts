/**
 * Probes of what one breaker holds, a topic's or one tenant's, as one process makes them: how many it may try now, of which kind and from
 * where, and how those before ended. Each success calls for the next ones.
 */
import type { Timer } from "../../platform/clock.ts";
import type { ProbeKind } from "../attempt.ts";
import { Spots } from "./spots.ts";

/** How long a right to try lasts, and how far apart those that the store gives are. */
export const PROBE_MS = 1_000;

export class Chain {
  readonly spots: Spots;
  /** How many may be tried now, and until when. */
  credit = 0;
  untilMs = Number.NEGATIVE_INFINITY;
  /** The credit is for one that failed before. */
  retried = false;
  /** `free`: the credit is for one that rests, and is charged with nothing; `charged`: those that failed before are. */
  kind: ProbeKind = "charged";
  askedMs = Number.NEGATIVE_INFINITY;
  restedMs = Number.NEGATIVE_INFINITY;
  wins = 0;
  losses = 0;
  lull: Timer | undefined;

  constructor(spots = new Spots()) {
    this.spots = spots;
  }

  /** How many of these may be tried now. */
  room(nowMs: number, retried: boolean): number {
    if (nowMs >= this.untilMs) return 0;
    return this.wins > 0 || this.retried === retried ? this.credit : 0;
  }

  grant(count: number, nowMs: number): void {
    this.credit = (nowMs < this.untilMs ? this.credit : 0) + count;
    this.untilMs = nowMs + PROBE_MS;
  }

  end(): void {
    this.credit = 0;
    this.wins = 0;
    this.losses = 0;
    this.lull?.cancel();
  }
}
