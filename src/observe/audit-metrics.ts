/**
 * The audit path in numbers: writes by result, how long what was queued had to wait, what ended as a dead letter and why, and
 * how much waits now. Every label is from a list.
 */
import type { Clock } from "../platform/clock.ts";
import { idTimeMs, isUuid } from "../platform/ids.ts";
import type { Book, Counted, MessageLevel } from "./book.ts";

/** Both namespaces of the audit preset: the server's and the producers'. */
const TOPIC = /^audit(?:-write)?\/([a-z-]+)$/;
const REASONS = new Set(["invalid_record", "event_conflict", "timeout", "lease_lost", "http_400", "http_413", "http_422"]);

function reasonOf(code: string | null): string {
  if (code === null) return "unknown";
  if (REASONS.has(code)) return code;
  if (/^sql_2[23]/.test(code)) return "database_refused";
  return /^http_[45]\d\d$/.test(code) ? code : "other";
}

export function auditCounts({ of, durations }: Book, clock: Clock): Counted {
  const waited = durations("makegood_audit_retry_duration_seconds");
  return {
    audit({ auditType, result }) {
      of("makegood_audit_write_attempts_total").inc([auditType, result]);
      // From 0 with the first write of its type: what a counter begins with is no increase, and the first spike would be missed.
      of("makegood_audit_write_failures_total").inc([auditType], result === "success" ? 0 : 1);
    },
    attempt({ topic, status, code, attempt, id }) {
      const type = TOPIC.exec(topic)?.[1];
      if (type === undefined) return;
      if (status === "dead") of("makegood_audit_dead_letter_total").inc([type, reasonOf(code)]);
      // Attempt 0 is a direct try: it waited for nothing.
      else if (status === "delivered" && attempt > 0 && isUuid(id))
        waited.observe([type], Math.max(0, clock.wallMs() - idTimeMs(id)) / 1_000);
    },
  };
}

/** The counts of the store, where they are known. */
export function auditLevels({ of }: Book, counts: readonly MessageLevel[]): void {
  const ours = counts.filter(({ topic }) => TOPIC.test(topic));
  const sum = (which: (one: MessageLevel) => boolean): number =>
    ours.filter(which).reduce((total, { count }) => total + count, 0);
  of("makegood_audit_pending").set(
    [],
    sum(({ status }) => status === "pending" || status === "processing"),
  );
  of("makegood_audit_dead_letters").set(
    [],
    sum(({ status, resolution }) => status === "dead" && resolution === "open"),
  );
}
