/**
 * The server's side: sinks that write queued records to the audit seam by event id, so that a repeat is a duplicate and never a
 * second record. What a database says is never repeated, only its class.
 */
import { isMakegoodError } from "../../message/errors.ts";
import type { Outcome } from "../../message/outcome.ts";
import { systemClock, within } from "../../platform/clock.ts";
import type { DeliverContext, Delivery, Sink } from "../../sink/sink.ts";
import type { AuditRecord, AuditStore } from "../../store/audit.ts";
import { type CheckedRecord, checkAgain, checked } from "./quarantine.ts";
import { readRecord } from "./record.ts";
import type { AuditKind } from "./registry.ts";
import { isSameData } from "./seed-record.ts";

/** Another record has this event id: a person has to look. */
export const EVENT_CONFLICT = "event_conflict";

/** `check`: which record a message holds, or why it is refused. */
function sinkOf(audit: AuditStore, check: (delivery: Delivery) => CheckedRecord): Sink {
  return {
    kind: "function",
    onDemand: true,
    deliver(delivery, context) {
      const checked = check(delivery);
      return "refused" in checked ? checked.refused : write(audit, checked.kind, checked.record, context);
    },
  };
}

export const storeSink = (audit: AuditStore, kind: AuditKind): Sink =>
  sinkOf(audit, ({ payload }) => checked(kind, readRecord(kind, payload)));

export const quarantineSink = (audit: AuditStore): Sink => sinkOf(audit, checkAgain);

async function write(audit: AuditStore, kind: AuditKind, record: AuditRecord, context: DeliverContext): Promise<Outcome> {
  try {
    // A sink never waits past its deadline; the write goes on and is a duplicate the next time.
    const written = await within(systemClock, audit.write(record), context.timeoutMs, context.signal);
    switch (written?.kind) {
      case "stored":
        return { kind: "delivered" };
      case "duplicate":
        return { kind: "duplicate" };
      case "conflict":
        if (isSameData(kind, record.eventId, record.payload)) return { kind: "duplicate" };
        return { kind: "reject", code: EVENT_CONFLICT, error: "the event id belongs to a record with another text" };
      case undefined:
        return { kind: "unknown", code: "timeout", error: "the audit database did not answer in time", outage: true };
    }
  } catch (thrown) {
    return outcomeOfWrite(thrown);
  }
}

/** Not there at the moment, for any record: it waits and spends no attempt. */
const AWAY: Readonly<Record<string, string>> = {
  store_unavailable: "the audit database cannot be reached",
  outcome_unknown: "the audit database did not answer; whether the record was stored is not known",
  retry_transaction: "a concurrent transaction won",
  schema_outdated: "the audit tables are missing or old: run `makegood migrate up`",
  store_full: "the audit database has no space left",
  closed: "the store is closed",
};

/** What a failed write to the audit seam means for its record: away, never, or an ordinary failure. */
export function outcomeOfWrite(thrown: unknown): Outcome {
  if (isMakegoodError(thrown)) {
    const away = AWAY[thrown.code];
    if (away !== undefined) {
      const alert = thrown.code === "store_full" || thrown.code === "schema_outdated";
      return { kind: "retry", code: thrown.code, error: away, outage: true, alert };
    }
    if (!thrown.retryable)
      return { kind: "reject", code: thrown.code, error: `the audit store refuses the record (${thrown.code})` };
    return { kind: "retry", code: thrown.code, error: `the audit store failed (${thrown.code})` };
  }
  const state = sqlState(thrown);
  const error = `the audit database refuses the write (SQLSTATE ${state})`;
  // 22 data exception, 23 constraint violation: the same record will be refused for ever.
  if (/^2[23]/.test(state)) return { kind: "reject", code: `sql_${state}`, error };
  // 28 and 42: a person has changed a right or a table; nothing is wrong with the record.
  if (/^(?:28|42)/.test(state)) return { kind: "retry", code: `sql_${state}`, error, outage: true, alert: true };
  if (state === "") return { kind: "retry", code: "write_failed", error: "the write failed" };
  return { kind: "retry", code: `sql_${state}`, error };
}

function sqlState(thrown: unknown): string {
  const code = typeof thrown === "object" && thrown !== null ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "";
}
