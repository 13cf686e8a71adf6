/**
 * What every adapter of the seeds' port agrees on: limits, which entry is acceptable, when two of them are the same
 * obligation, and how a date becomes milliseconds. Pure.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import { isWellFormed } from "../../../message/validate.ts";
import type { DLQAlarm, DLQStoreOptions, NewDLQEntry, NextAttempt, PutOptions } from "./dlq-store.ts";

export const DLQ_LIMITS = {
  maxRetries: 5,
  batchLimit: 50,
  batchLimitMax: 1_000,
  pageMax: 1_000,
  leaseMs: 60_000,
  idBytesMax: 255,
  textBytesMax: 4_096,
  /** How long a closed terminal record is kept: the seven days that the seed gave to open ones (FIN-21, DF-3). */
  closedKeptMs: 604_800_000,
} as const;

const invalid = (field: string, what: string): MakegoodError =>
  new MakegoodError("invalid_message", `${field} ${what}`, { field });

export function checkId(id: unknown): asserts id is string {
  checkText("reservation_id", id, DLQ_LIMITS.idBytesMax);
  if (id === "") throw invalid("reservation_id", "must not be empty: quarantine it under an id of your own");
}

function checkText(field: string, value: unknown, bytesMax: number): asserts value is string {
  if (typeof value !== "string") throw invalid(field, "must be a text");
  if (Buffer.byteLength(value) > bytesMax) throw invalid(field, `has more than ${bytesMax} bytes`);
  if (!isWellFormed(value)) throw invalid(field, "contains half of a surrogate pair and cannot be written as UTF-8");
}

export function checkEntry(entry: NewDLQEntry, { delayMs, terminal }: PutOptions): void {
  checkId(entry.reservation_id);
  for (const field of ["tenant_id", "actual_cost_micro", "trace_id", "reason"] as const)
    checkText(field, entry[field], DLQ_LIMITS.textBytesMax);
  const { response_status: status, attempt_count: attempts } = entry;
  if (status !== null && !Number.isSafeInteger(status)) throw invalid("response_status", "must be a whole number or null");
  if (!Number.isSafeInteger(attempts) || attempts < 0) throw invalid("attempt_count", "must be a whole number from 0 on");
  if (delayMs !== undefined) checkDelay(delayMs);
  if (terminal !== undefined) checkReason(terminal);
  if (entry.created_at !== undefined) isoMs("created_at", entry.created_at);
  if (entry.next_attempt_at !== undefined) isoMs("next_attempt_at", entry.next_attempt_at);
}

export function checkReason(reason: string): void {
  checkText("reason", reason, DLQ_LIMITS.textBytesMax);
}

function checkDelay(delayMs: number): void {
  if (!(delayMs >= 0 && delayMs <= LIMITS.delayMsMax))
    throw invalid("delayMs", `must be a number from 0 to ${LIMITS.delayMsMax}`);
}

export function checkLease(leaseMs: number): number {
  if (leaseMs >= LIMITS.leaseMsMin && leaseMs <= LIMITS.leaseMsMax) return Math.ceil(leaseMs);
  throw invalid("leaseMs", `must be a number from ${LIMITS.leaseMsMin} to ${LIMITS.leaseMsMax}`);
}

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

export function isoMs(field: string, text: string): number {
  const ms = ISO.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw invalid(field, "must be an ISO-8601 date and time with its zone");
  return Math.max(0, ms);
}

export const toIso = (ms: number): string => new Date(ms).toISOString();

/** A date as it is, a delay on top of the store's own time. */
export function nextAttempt(next: NextAttempt): { readonly atMs: number | null; readonly delayMs: number } {
  if (!(next instanceof Date)) {
    checkDelay(next.delayMs);
    return { atMs: null, delayMs: Math.ceil(next.delayMs) };
  }
  const atMs = next.getTime();
  if (Number.isNaN(atMs)) throw invalid("next", "is not a date");
  return { atMs, delayMs: 0 };
}

/** The obligation is who owes how much. Another trace or reason is the same obligation told again (DF-17). */
export function sameObligation(a: NewDLQEntry, b: NewDLQEntry): boolean {
  return a.actual_cost_micro === b.actual_cost_micro && a.tenant_id === b.tenant_id;
}

export function storeLimits({ maxRetries, batchLimit }: DLQStoreOptions): { maxRetries: number; batchLimit: number } {
  const whole = (name: string, value: number, max: number): number => {
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new MakegoodError("invalid_config", `${name} must be a whole number from 1 to ${max}`, { [name]: value });
  };
  return {
    maxRetries: whole("maxRetries", maxRetries ?? DLQ_LIMITS.maxRetries, LIMITS.attemptsMax),
    batchLimit: whole("batchLimit", batchLimit ?? DLQ_LIMITS.batchLimit, DLQ_LIMITS.batchLimitMax),
  };
}

export function pageOf(limit: number, offset: number): { readonly from: number; readonly count: number } {
  const from = Math.max(0, Math.floor(offset));
  return { from, count: Math.min(DLQ_LIMITS.pageMax, Math.max(1, Math.floor(limit))) };
}

/** An alarm never changes what happens to an entry: a listener that throws is its own problem. */
export function alarmBell(onAlarm: DLQStoreOptions["onAlarm"]): (alarm: DLQAlarm) => void {
  return (alarm) => {
    try {
      onAlarm?.(alarm);
    } catch {
      // See above.
    }
  };
}
