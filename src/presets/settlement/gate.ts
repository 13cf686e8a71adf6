/**
 * A circuit breaker for the billing service where no kernel stands behind the client (EV-8): five failures within a minute
 * close the gate for half a minute, then one call finds out. Behind a closed gate nothing is sent, so no attempt is spent.
 */
import { DEFAULTS } from "../../message/limits.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Clock } from "../../platform/clock.ts";

export interface Gate {
  /** False: send nothing now. Whoever gets true must tell the outcome. */
  enter(): boolean;
  leave(outcome: Outcome): void;
  readonly open: boolean;
}

export function createGate(clock: Clock): Gate {
  let failedAtMs: number[] = [];
  let closedUntilMs: number | null = null;
  let probing = false;

  return {
    get open() {
      return closedUntilMs === null;
    },
    enter() {
      if (closedUntilMs === null) return true;
      if (probing || clock.monotonicMs() < closedUntilMs) return false;
      probing = true;
      return true;
    },
    leave(outcome) {
      const now = clock.monotonicMs();
      // An answer about the message itself proves as well as a success that the service is there.
      if (outcome.kind === "delivered" || outcome.kind === "duplicate" || outcome.kind === "reject") {
        failedAtMs = [];
        closedUntilMs = null;
      } else if (outcome.kind === "retry" || outcome.kind === "unknown") {
        failedAtMs = [...failedAtMs.filter((atMs) => now - atMs <= DEFAULTS.breakerWindowMs), now];
        if (probing || failedAtMs.length >= DEFAULTS.breakerFailures) {
          closedUntilMs = now + DEFAULTS.breakerCooldownMs;
          failedAtMs = [];
        }
      }
      probing = false;
    },
  };
}
