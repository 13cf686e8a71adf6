/**
 * The server's side: sinks that write queued records to the audit seam by event id, so that a repeat is a duplicate and never a
 * second record (DA-14).
 */
import type { Outcome } from "../../message/outcome.ts";
import type { DeliverContext, Sink } from "../../sink/sink.ts";
import type { AuditRecord, AuditStore } from "../../store/audit.ts";
import { invalid, judgeAgain } from "./quarantine.ts";
import { faultText, readRecord } from "./record.ts";
import type { AuditKind } from "./registry.ts";
import { isSameData } from "./seed-record.ts";
import { outcomeOfWrite } from "./write-outcome.ts";

/** Another record has this event id: a person has to look. */
export const EVENT_CONFLICT = "event_conflict";

export function storeSink(audit: AuditStore, kind: AuditKind): Sink {
  return {
    kind: "function",
    occasional: true,
    deliver({ payload }, context) {
      const read = readRecord(kind, payload);
      return read.ok ? write(audit, kind, read.record, context) : invalid(faultText(read.faults));
    },
  };
}

export function quarantineSink(audit: AuditStore): Sink {
  return {
    kind: "function",
    occasional: true,
    deliver(delivery, context) {
      const judged = judgeAgain(delivery);
      return "refused" in judged ? judged.refused : write(audit, judged.kind, judged.record, context);
    },
  };
}

async function write(audit: AuditStore, kind: AuditKind, record: AuditRecord, context: DeliverContext): Promise<Outcome> {
  try {
    const written = await beforeAbort(audit.write(record), context.signal);
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

/** A sink never waits past its deadline; the write goes on and is a duplicate the next time. Undefined: cut short. */
function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cut = (): void => resolve(undefined);
    if (signal.aborted) cut();
    signal.addEventListener("abort", cut, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", cut));
  });
}
