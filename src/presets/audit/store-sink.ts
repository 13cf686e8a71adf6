/**
 * The server's side: sinks that write queued records to the audit seam by event id, so that a repeat is a duplicate and never a
 * second record (DA-14). The quarantine's sink judges a record again each time, so that a replay after a fix stores it.
 */
import type { Outcome } from "../../message/outcome.ts";
import type { DeliverContext, Sink } from "../../sink/sink.ts";
import type { AuditStore } from "../../store/audit.ts";
import { faultText, readRecord } from "./record.ts";
import { outcomeOfWrite, redact } from "./redact.ts";
import { type AuditKind, auditKind } from "./registry.ts";

/** Another record has this event id: a person has to look. */
export const EVENT_CONFLICT = "event_conflict";
export const INVALID_RECORD = "invalid_record";

/** What a quarantined message holds: the text as it came, wherever it came from. */
export interface Quarantined {
  readonly audit_type: string;
  readonly reason: string;
  /** The exact text of the record; it need not be JSON. */
  readonly record: string;
}

const AS_IT_CAME = /^as-it-came:([a-z-]+):/;

/** The key of a record that is quarantined without anything around it, because both together would be too large. */
export const asItCameKey = (type: string, hash: string): string => `as-it-came:${type}:${hash}`;

export function storeSink(audit: AuditStore, kind: AuditKind): Sink {
  return { kind: "function", occasional: true, deliver: ({ payload }, context) => writeText(audit, kind, payload, context) };
}

export function quarantineSink(audit: AuditStore): Sink {
  return {
    kind: "function",
    occasional: true,
    deliver({ payload, key }, context) {
      const type = AS_IT_CAME.exec(key ?? "")?.[1];
      const kept: unknown = type === undefined ? JSON.parse(payload) : { audit_type: type, record: payload };
      const { audit_type, record } = (kept ?? {}) as Partial<Quarantined>;
      const kind = auditKind(String(audit_type));
      if (kind === null || typeof record !== "string") {
        return { kind: "reject", code: INVALID_RECORD, error: "nobody registered this audit type" };
      }
      return writeText(audit, kind, record, context);
    },
  };
}

async function writeText(audit: AuditStore, kind: AuditKind, text: string, context: DeliverContext): Promise<Outcome> {
  const read = readRecord(kind, text);
  if (!read.ok) return { kind: "reject", code: INVALID_RECORD, error: redact(faultText(read.faults)) };
  try {
    const written = await beforeAbort(audit.write(read.record), context.signal);
    switch (written?.kind) {
      case "stored":
        return { kind: "delivered" };
      case "duplicate":
        return { kind: "duplicate" };
      case "conflict":
        return { kind: "reject", code: EVENT_CONFLICT, error: "the event id belongs to a record with another text" };
      case undefined:
        return { kind: "unknown", code: "timeout", error: "the audit database did not answer in time", outage: true };
    }
  } catch (thrown) {
    return outcomeOfWrite(thrown);
  }
}

/** A sink never waits past its deadline; the write goes on and is a duplicate the next time. Undefined: cut short. */
function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cut = (): void => resolve(undefined);
    if (signal.aborted) cut();
    signal.addEventListener("abort", cut, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", cut));
  });
}
