/**
 * What was tried of a message while no store could be asked: the counted attempts that failed, each with its reason (I5), and the wait
 * before the next one. It travels with the entry, so that the store that takes it in the end counts these attempts, too.
 */
import { LIMITS } from "../message/limits.ts";
import type { AttemptOutcome } from "../message/message.ts";

export interface FailedTry {
  readonly outcome: Extract<AttemptOutcome, "retry" | "unknown" | "reject" | "lost">;
  readonly code: string | null;
  readonly error: string | null;
  readonly ms: number | null;
}

export interface TriedBelow {
  /** Those that count, oldest first. */
  readonly failed: readonly FailedTry[];
  /** The wait before the next attempt, and since when, by the wall clock of whoever made the last one. */
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
