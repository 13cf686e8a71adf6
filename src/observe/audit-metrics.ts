/**
 * The audit path in numbers: writes by result, how long what was queued had to wait, what ended as a dead letter and why, and
 * how much waits now. The seed's names of these metrics are in docs/aliases.md; every label is from a list.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { type Clock, systemClock } from "../platform/clock.ts";
import { idTimeMs, isUuid } from "../platform/ids.ts";
import type { Events, MakegoodEvent } from "./events.ts";

/** Both namespaces of the audit preset: the server's and the producers'. */
const TOPIC = /^audit(?:-write)?\/([a-z-]+)$/;
/** Up to a week: an outage of that length is survived, so it must be seen. */
const WAIT_BUCKETS = [60, 300, 900, 3_600, 14_400, 86_400, 172_800, 604_800];
const REASONS = new Set(["invalid_record", "event_conflict", "timeout", "lease_lost", "http_400", "http_413", "http_422"]);

export interface AuditLevel {
  readonly topic: string;
  readonly status: string;
  readonly resolution: string | null;
  readonly count: number;
}

export interface AuditMetrics {
  /** The last known counts of the store. */
  levels(counts: readonly AuditLevel[]): void;
  stop(): void;
}

function reasonOf(code: string | null): string {
  if (code === null) return "unknown";
  if (REASONS.has(code)) return code;
  if (/^sql_2[23]/.test(code)) return "database_refused";
  return /^http_[45]\d\d$/.test(code) ? code : "other";
}

export function auditMetrics(events: Events, register: Registry, clock: Clock = systemClock): AuditMetrics {
  const registers = [register];
  const name = (last: string): string => `makegood_audit_${last}`;
  const writes = new Counter({
    name: name("write_attempts_total"),
    help: "Audit writes by result: success, fallback, validation_error, failed.",
    labelNames: ["audit_type", "result"],
    registers,
  });
  const failures = new Counter({
    name: name("write_failures_total"),
    help: "Audit writes that were not stored at once: fallback, validation_error and failed.",
    labelNames: ["audit_type"],
    registers,
  });
  const waited = new Histogram({
    name: name("retry_duration_seconds"),
    help: "From queueing to stored, for audit records that had to wait.",
    labelNames: ["audit_type"],
    buckets: WAIT_BUCKETS,
    registers,
  });
  const died = new Counter({
    name: name("dead_letter_total"),
    help: "Audit records that became dead letters in this process.",
    labelNames: ["audit_type", "failure_reason"],
    registers,
  });
  const pending = new Gauge({ name: name("pending"), help: "Audit records that wait to be stored.", registers });
  const open = new Gauge({ name: name("dead_letters"), help: "Audit dead letters that nobody has decided on.", registers });

  const counted = (event: MakegoodEvent): void => {
    if (event.type === "audit") {
      writes.inc({ audit_type: event.auditType, result: event.result });
      if (event.result !== "success") failures.inc({ audit_type: event.auditType });
    }
    if (event.type !== "attempt") return;
    const audit_type = TOPIC.exec(event.topic)?.[1];
    if (audit_type === undefined) return;
    if (event.status === "dead") died.inc({ audit_type, failure_reason: reasonOf(event.code) });
    // Attempt 0 is a direct try: it waited for nothing.
    else if (event.status === "delivered" && event.attempt > 0 && isUuid(event.id)) {
      waited.observe({ audit_type }, Math.max(0, clock.wallMs() - idTimeMs(event.id)) / 1_000);
    }
  };
  return {
    levels(counts) {
      const ours = counts.filter(({ topic }) => TOPIC.test(topic));
      const sum = (which: (one: AuditLevel) => boolean): number =>
        ours.filter(which).reduce((total, { count }) => total + count, 0);
      pending.set(sum(({ status }) => status === "pending" || status === "processing"));
      open.set(sum(({ status, resolution }) => status === "dead" && resolution === "open"));
    },
    stop: events.on(counted),
  };
}
