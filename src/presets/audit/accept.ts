/**
 * One audit record in: written to the database at once, else queued durably, else refused so that the producer keeps it. What does not fit,
 * and what contradicts a record that is there, is quarantined as a dead letter with its whole text.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import type { Makegood } from "../../create.ts";
import { quarantineMessage } from "./quarantine.ts";
import { faultText, type RecordFault } from "./record.ts";
import { AUDIT_NAMESPACE, type AuditKind, type AuditType } from "./registry.ts";
import { isSameData, readEither } from "./seed-record.ts";
import { EVENT_CONFLICT } from "./store-sink.ts";
import { auditTopic } from "./topics.ts";

/** The database first, then a fresh limit of the same length for whatever queues. */
const WRITE_MS = 3_000;
/** The topics' rate is for what was queued, so that requests are not disturbed (AUD-14). */
const HOW = { timeoutMs: WRITE_MS, budgetMs: 2 * WRITE_MS, unpaced: true } as const;

type Kind = AuditKind & { readonly type: AuditType };
type Result = "success" | "fallback" | "validation_error" | "failed";

/** What a producer may rely on; what only our memory holds is not one of it (DA-16). */
export type AcceptedRecord =
  | { readonly is: "stored" | "duplicate"; readonly eventId: string }
  | { readonly is: "queued"; readonly eventId: string; readonly id?: string; readonly survives?: DeliverResult["survives"] }
  | {
      readonly is: "conflict" | "refused";
      readonly eventId: string;
      readonly quarantined: boolean;
      readonly id?: string;
      readonly code: string | null;
    }
  | { readonly is: "full" | "unavailable" }
  | {
      readonly is: "unfit";
      readonly faults: readonly RecordFault[];
      readonly reason: string;
      readonly quarantined: boolean;
      readonly id: string;
    };

const RESULTS: Readonly<Record<AcceptedRecord["is"], Result>> = {
  stored: "success",
  duplicate: "success",
  queued: "fallback",
  conflict: "validation_error",
  refused: "validation_error",
  unfit: "validation_error",
  full: "failed",
  unavailable: "failed",
};

export interface RecordGiven {
  readonly text: string;
  readonly newId: () => string;
  readonly actor: string;
  readonly occurredMs: number;
  readonly traceparent: string | null;
}

export async function acceptRecord(
  mg: Pick<Makegood, "deliver" | "events">,
  kind: Kind,
  given: RecordGiven,
): Promise<AcceptedRecord> {
  const [accepted, code] = await accept(mg, kind, given);
  mg.events.emit({ type: "audit", auditType: kind.type, result: RESULTS[accepted.is], code });
  return accepted;
}

type Outcome = readonly [AcceptedRecord, code: string | null];

async function accept(mg: Pick<Makegood, "deliver">, kind: Kind, given: RecordGiven): Promise<Outcome> {
  const read = readEither(kind, given.text, given);
  if (!read.ok) {
    const reason = faultText(read.faults);
    const kept = await keep(mg, kind, given.text, reason);
    return [{ is: "unfit", faults: read.faults, reason, ...kept }, kept.code];
  }
  const { eventId, payload } = read.record;
  const how = { payloadText: payload, key: eventId, ...HOW, traceparent: given.traceparent };
  const result = await mg.deliver(auditTopic(kind.type), null, how);
  if (result.code !== "key_conflict") return [outcomeOf(eventId, result), result.code];
  if (isSameData(kind, eventId, payload)) return [{ is: "queued", eventId }, null];
  // A queued record that contradicts it was first: this one is kept beside it, and the worker will tell which one came second.
  const { quarantined } = await keep(mg, kind, given.text, "its event id belongs to another record");
  return [{ is: "conflict", eventId, quarantined, code: result.code }, result.code];
}

function outcomeOf(eventId: string, { kind, id, code, error, stored, survives }: DeliverResult): AcceptedRecord {
  // While the breaker is open its reason says what the last real write met.
  const full = code === "store_full" || error?.startsWith("store_full") === true;
  const lost = { is: full ? "full" : "unavailable" } as const;
  switch (kind) {
    case "delivered":
      return { is: "stored", eventId };
    case "duplicate":
      return { is: "duplicate", eventId };
    case "queued":
      return survives === "nothing" ? lost : { is: "queued", eventId, id, survives };
    case "dead": {
      const quarantined = stored !== null && survives !== "nothing";
      return { is: code === EVENT_CONFLICT ? "conflict" : "refused", eventId, quarantined, id, code };
    }
    case "refused":
      return lost;
  }
}

/** Kept as a dead letter with its whole text: a replay judges it again and stores it once it fits (CON-16, DA-15). */
async function keep(mg: Pick<Makegood, "deliver">, kind: Kind, text: string, reason: string) {
  const { topic, ...message } = quarantineMessage(AUDIT_NAMESPACE, kind.type, reason, text);
  const result = await mg.deliver(topic, null, { ...message, ...HOW });
  return { quarantined: result.stored !== null && result.survives !== "nothing", id: result.id, code: result.code };
}
