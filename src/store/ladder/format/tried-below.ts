/**
 * What was tried of a message while no store could be asked: the counted attempts that failed, each with its reason (I5), and the wait
 * before the next one. It travels with the entry, so that the store that takes it in the end counts these attempts, too.
 */
import { LIMITS } from "../../../message/limits.ts";
import type { AttemptOutcome, AttemptRecord } from "../../../message/message.ts";
import type { AttemptMade } from "../../../message/outcome.ts";
import type { Settlement } from "../../../message/settlement.ts";

export interface FailedTry {
  readonly outcome: Extract<AttemptOutcome, "retry" | "unknown" | "reject" | "lost">;
  readonly code: string | null;
  readonly error: string | null;
  readonly ms: number | null;
}

export interface TriedBelow {
  /** Those that count, oldest first. */
  readonly failed: readonly FailedTry[];
  /** The wait before the next attempt, and since when, by the wall clock of the process that made the last one. */
  readonly atMs: number;
  readonly delayMs: number;
  /** The last one ended it: it is not attempted again, and becomes a dead letter of the store that takes it. */
  readonly dead: boolean;
}

/** How one attempt ended. */
export interface AfterTry {
  /** Null: it does not count. */
  readonly failed: FailedTry | null;
  readonly delayMs: number;
  readonly dead: boolean;
}

export const LOST: FailedTry = {
  outcome: "lost",
  code: "process_lost",
  error: "the process ended during an attempt from below: whether it took effect is not known",
  ms: null,
};

export function triedMore(before: TriedBelow | null | undefined, after: AfterTry, atMs: number): TriedBelow {
  const failed = [...(before?.failed ?? []), ...(after.failed ? [after.failed] : [])];
  return { failed, atMs, delayMs: after.delayMs, dead: after.dead };
}

/** What a settlement says of the attempt that it ends; null: it was not made. */
export function afterTry(settlement: Settlement, ms: number | null): AfterTry | null {
  if (settlement.kind === "release") return null;
  if (settlement.kind === "delivered") return { failed: null, delayMs: 0, dead: false };
  const { code, error } = settlement;
  const failed: FailedTry = { outcome: settlement.outcome as FailedTry["outcome"], code, error, ms };
  if (settlement.kind === "dead") return { failed, delayMs: 0, dead: true };
  const delayMs = settlement.kind === "retry" ? settlement.delayMs : 0;
  return { failed: settlement.counted ? failed : null, delayMs, dead: false };
}

/** What a history says, for the process that takes the message over; undefined: nothing was tried that counts. */
export function triedIn(
  attempts: readonly AttemptRecord[],
  dead: boolean,
  atMs: number,
  delayMs: number,
): TriedBelow | undefined {
  const failed = attempts
    .filter(({ counted, outcome }) => counted && outcome !== "delivered" && outcome !== "duplicate")
    .map(({ outcome, code, error, durationMs: ms }) => readTry({ outcome, code, error, ms }));
  return failed.length > 0 ? { failed, atMs, delayMs, dead } : undefined;
}

/** One of them as it is written where the message is now; only the last has its wait, others `meanwhileMs`. Undefined: there is none. */
export function madeAttempt({ failed, dead, delayMs }: TriedBelow, index: number, meanwhileMs: number): AttemptMade | undefined {
  const one = failed[index];
  const last = index === failed.length - 1;
  if (!one) return undefined;
  const { outcome, code, error, ms: durationMs } = one;
  return { outcome, code, error, durationMs, counted: true, dead: dead && last, waitMs: last ? delayMs : meanwhileMs };
}

export function tryJson({ outcome, code, error, ms }: FailedTry): Record<string, unknown> {
  return { outcome, code, error: error === null ? null : error.slice(0, LIMITS.errorBytesMax), ms };
}

export function readTry(value: unknown): FailedTry {
  const { outcome, code, error, ms } = (value ?? {}) as Record<string, unknown>;
  return {
    outcome: outcome === "unknown" || outcome === "reject" || outcome === "lost" ? outcome : "retry",
    code: typeof code === "string" ? code : null,
    error: typeof error === "string" ? error : null,
    ms: typeof ms === "number" ? ms : null,
  };
}

export function triedJson({ failed, atMs, delayMs, dead }: TriedBelow): Record<string, unknown> {
  return { failed: failed.map(tryJson), at: new Date(atMs).toISOString(), delay_ms: delayMs, dead };
}

/** Null where there is nothing of the kind. */
export function readTried(value: unknown): TriedBelow | null {
  if (typeof value !== "object" || value === null) return null;
  const { failed, at, delay_ms, dead } = value as Record<string, unknown>;
  const atMs = Date.parse(String(at));
  if (!Array.isArray(failed) || Number.isNaN(atMs)) return null;
  return {
    failed: failed.slice(0, LIMITS.attemptsMax).map(readTry),
    atMs,
    delayMs: typeof delay_ms === "number" ? delay_ms : 0,
    dead: dead === true,
  };
}
