/**
 * One audit record in: written to the database at once, else queued durably, else refused so that the producer keeps it. What does not fit,
 * and what contradicts a record that is there, is quarantined as a dead letter with its whole text.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import type { Makegood } from "../../create.ts";
import { beside, type Carried, messageOf } from "./draft.ts";
import type { RecordFault, Source } from "./record.ts";
import { AUDIT_NAMESPACE, type AuditKind, type AuditType } from "./registry.ts";
import { EVENT_CONFLICT } from "./topics.ts";

/** The database first, then a fresh limit of the same length for whatever queues. */
const WRITE_MS = 3_000;
/** The topics' rate is for what was queued, so that requests are not disturbed (AUD-14). */
const HOW = { timeoutMs: WRITE_MS, budgetMs: 2 * WRITE_MS, unpaced: true } as const;

/** How each is counted. */
const RESULTS = {
  stored: "success",
  duplicate: "success",
  queued: "fallback",
  conflict: "validation_error",
  refused: "validation_error",
  unfit: "validation_error",
  full: "failed",
  unavailable: "failed",
} as const;

/** What a producer may rely on; what only our memory holds is not one of it (DA-16). */
export interface AcceptedRecord {
  readonly is: keyof typeof RESULTS;
  readonly eventId: string;
  /** Its message; absent where another one that is the same record waits. */
  readonly id?: string | undefined;
  readonly survives?: DeliverResult["survives"] | undefined;
  /** It is kept as a dead letter: a replay judges it again and stores it once it fits (CON-16, DA-15). */
  readonly quarantined: boolean;
  readonly faults: readonly RecordFault[];
  readonly code: string | null;
}

interface RecordGiven extends Source {
  readonly text: string;
  readonly traceparent: string | null;
}

type Kind = AuditKind & { readonly type: AuditType };

export async function acceptRecord(
  mg: Pick<Makegood, "deliver" | "events">,
  kind: Kind,
  given: RecordGiven,
): Promise<AcceptedRecord> {
  const accepted = await accept(mg, kind, given);
  mg.events.emit({ type: "audit", auditType: kind.type, result: RESULTS[accepted.is], code: accepted.code });
  return accepted;
}

async function accept(mg: Pick<Makegood, "deliver">, { type }: Kind, given: RecordGiven): Promise<AcceptedRecord> {
  const deliver = ({ topic, key, payloadText }: Carried) =>
    mg.deliver(topic, null, { key, payloadText, ...HOW, traceparent: given.traceparent });
  const message = messageOf(AUDIT_NAMESPACE, type, given.text, given);
  const { key: eventId, payloadText, faults } = message;
  const result = await deliver(message);
  if (faults.length > 0) return { ...answerOf(result), is: "unfit", eventId, faults };
  if (result.code !== "key_conflict") return { ...answerOf(result), eventId };
  const second = beside(AUDIT_NAMESPACE, type, eventId, payloadText, given.text);
  if (second === null) return { is: "queued", eventId, quarantined: false, faults, code: null };
  return { is: "conflict", eventId, quarantined: answerOf(await deliver(second)).quarantined, faults, code: result.code };
}

function answerOf(result: DeliverResult): Omit<AcceptedRecord, "eventId"> {
  const { id, code, stored, survives } = result;
  const quarantined = stored !== null && survives !== "nothing";
  return { is: isOf(result), id, survives, quarantined, faults: [], code };
}

function isOf({ kind, code, error, survives }: DeliverResult): AcceptedRecord["is"] {
  if (kind === "delivered") return "stored";
  if (kind === "duplicate") return kind;
  if (kind === "dead") return code === EVENT_CONFLICT ? "conflict" : "refused";
  if (kind === "queued" && survives !== "nothing") return kind;
  // While the breaker is open its reason says what the last real write met.
  return code === "store_full" || error?.startsWith("store_full") ? "full" : "unavailable";
}
