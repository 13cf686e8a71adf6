/**
 * Where a retry is decided: one pure function from (claimed message, outcome, policy, jitter) to the settlement that a
 * store writes. Attempts are bounded here (I6): the end is `dead` or a named hold, never silence.
 */
import { LIMITS } from "./limits.ts";
import type { ClaimedMessage, Ordering, Suspicion } from "./message.ts";
import type { AttemptMade, Outcome } from "./outcome.ts";
import { type RetryPolicy, retryDelayMs } from "./retry-policy.ts";
import type { Settlement } from "./settlement.ts";

export interface DecideRules {
  readonly policy: RetryPolicy;
  readonly ordering: Ordering;
  readonly onUnknown: "retry" | "hold";
}

/** What decide() reads of a claimed message. */
export interface Decided extends Pick<ClaimedMessage, "attempt" | "base" | "handedDown" | "suspicion"> {
  readonly retried?: boolean | undefined;
  /**
   * It was tried to see whether its receiver is back: that it is not is not charged to it. `first`: it never failed before;
   * `stand_in`: it did, and nobody better was there.
   */
  readonly probe?: "first" | "stand_in" | undefined;
}

const DELIVERED: Settlement = Object.freeze({ kind: "delivered", outcome: "delivered" });
const RELEASE: Settlement = Object.freeze({ kind: "release" });
const DUPLICATE: Settlement = Object.freeze({ kind: "delivered", outcome: "duplicate" });

/** `random` is in [0, 1): the only chance in the decision, passed in. */
export function decide(message: Decided, outcome: Outcome, rules: DecideRules, random: number): Settlement {
  switch (outcome.kind) {
    case "delivered":
      return DELIVERED;
    case "duplicate":
      return DUPLICATE;
    case "reject":
      return {
        kind: "dead",
        blocksOrder: rules.ordering === "strict",
        outcome: "reject",
        code: outcome.code,
        error: outcome.error,
      };
    case "disable":
      return {
        kind: "retry",
        delayMs: 0,
        counted: false,
        suspicion: message.suspicion,
        retried: message.retried,
        outcome: "retry",
        code: outcome.code,
        error: outcome.error,
      };
    case "unserved":
      // What this process cannot do is nobody's attempt: as if it had never been claimed here.
      return RELEASE;
    case "interrupted":
      return {
        kind: "retry",
        delayMs: outcome.move?.waitMs ?? 0,
        counted: false,
        suspicion: message.suspicion,
        retried: message.retried,
        outcome: "interrupted",
        code: outcome.move ? "move_interrupted" : "shutdown",
        error: outcome.move?.error ?? "the worker shut down before the sink answered",
      };
    case "made":
      return made(message, outcome.attempt, rules);
    case "unknown":
      if (rules.onUnknown === "hold") {
        return {
          kind: "hold",
          reason: "outcome_unknown",
          counted: true,
          outcome: "unknown",
          code: outcome.code,
          error: outcome.error,
        };
      }
      if (outcome.outage || message.probe) return waited(message, outcome, rules, random, 0);
      return failed(message, "unknown", outcome.code, outcome.error, rules, random, 0);
    case "retry": {
      const asked = Math.min(Math.max(outcome.retryAfterMs ?? 0, 0), LIMITS.retryAfterMsMax);
      if (outcome.outage || message.probe) return waited(message, outcome, rules, random, asked);
      return failed(message, "retry", outcome.code, outcome.error, rules, random, asked);
    }
    case "lost":
      return lost(message, rules, random);
  }
}

/** What was decided where it was made stands, and so does the wait that is left of it. */
function made(
  { suspicion }: Decided,
  { outcome, code, error, counted, dead, waitMs }: AttemptMade,
  { ordering }: DecideRules,
): Settlement {
  if (dead) return { kind: "dead", blocksOrder: ordering === "strict", outcome, code, error };
  return { kind: "retry", delayMs: waitMs, counted, suspicion, retried: true, outcome, code, error };
}

/** A counted failure: wait and try again, or die when this generation's budget is spent. */
function failed(
  message: Decided,
  outcome: "retry" | "unknown" | "lost",
  code: string,
  error: string,
  rules: DecideRules,
  random: number,
  askedMs: number,
): Settlement {
  const spent = message.attempt - message.base;
  if (spent >= rules.policy.attemptsMax) {
    return { kind: "dead", blocksOrder: rules.ordering === "strict", outcome, code, error };
  }
  const step = message.handedDown || rules.policy.waitsFirst ? spent + 1 : spent;
  const delayMs = Math.max(retryDelayMs(rules.policy, step, random), askedMs);
  return { kind: "retry", delayMs, counted: true, suspicion: message.suspicion, retried: true, outcome, code, error };
}

/**
 * A stand-in comes back soon, without regard to its policy, but not so soon that it is the only one: others are tried too, at
 * both ends of their lane.
 */
const STAND_IN_MS = 4_000;

/**
 * The receiver is away for every message, or a probe found it so: the wait is the policy's, and the attempt's number is used
 * again.
 */
function waited(
  message: Decided,
  { kind, code, error }: Extract<Outcome, { kind: "retry" | "unknown" }>,
  { policy }: DecideRules,
  random: number,
  askedMs: number,
): Settlement {
  const waitMs = message.probe === "stand_in" ? STAND_IN_MS : retryDelayMs(policy, message.attempt - message.base, random);
  const delayMs = Math.max(waitMs, askedMs);
  return { kind: "retry", delayMs, counted: false, suspicion: message.suspicion, retried: true, outcome: kind, code, error };
}

/**
 * A lost lease does not say which of the messages in flight killed the worker, nor that any did: none is charged, all come back
 * as suspects, in small batches first and alone after that. What is lost while it was alone is named by that: it counts like any
 * other failure, so a message that kills workers is bounded too.
 */
function lost(message: Decided, rules: DecideRules, random: number): Settlement {
  const error = "the lease expired: the worker crashed, stalled or was cut off";
  if (message.suspicion === 2) return failed(message, "lost", "lease_lost", error, rules, random, 0);
  const suspicion = Math.min(message.suspicion + 1, 2) as Suspicion;
  const { retried } = message;
  return { kind: "retry", delayMs: 0, counted: false, suspicion, retried, outcome: "lost", code: "lease_lost", error };
}
