/**
 * The server's side. A topic for each type and one for the quarantine: `serve` and `work` declare them on every store that keeps audit records,
 * and their sinks write to the audit seam by event id, so that a repeat is a duplicate and never a second record. One record in is written at
 * once, else queued durably, else refused so that the producer keeps it; what does not fit or contradicts another is quarantined.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import type { Makegood } from "../../create.ts";
import { isMakegoodError } from "../../message/errors.ts";
import { DELIVERED, DUPLICATE, type Outcome } from "../../message/outcome.ts";
import type { DeclaredRetry } from "../../message/retry-policy.ts";
import type { TopicName } from "../../message/topic.ts";
import { systemClock, within } from "../../platform/clock.ts";
import type { DeliverContext, Delivery, Sink } from "../../sink/sink.ts";
import type { AuditRecord, AuditStore } from "../../store/audit.ts";
import { sqlState } from "../../store/shared/sql-state.ts";
import { type AnyTopic, topic } from "../../topic/topic.ts";
import { beside, type Carried, type CheckedRecord, checkAgain, checked, messageOf } from "./draft.ts";
import { isSameData, type RecordFault, readRecord, recordSchema, type Source } from "./record.ts";
import { AUDIT_NAMESPACE, type AuditKind, auditKinds, QUARANTINE } from "./registry.ts";

export function auditTopic(type: string): TopicName {
  return `${AUDIT_NAMESPACE}/${type}`;
}

/**
 * What was queued must not disturb requests: one write at once for each of the seven topics, against a pool of ten, and a rate
 * over all workers by which ten thousand records of one type are through in nine minutes. Requests themselves are not held to it.
 */
const CONCURRENCY = 1;
const RATE_PER_SECOND = 20;
const WRITE_TIMEOUT_MS = 10_000;

/** Empty where the store keeps no audit records. `retry`: instead of the policy `audit`. */
export function auditTopics(audit: AuditStore | null, retry: DeclaredRetry = { policy: "audit" }): AnyTopic[] {
  if (audit === null) return [];
  const common = { retry, concurrency: CONCURRENCY, ratePerSecond: RATE_PER_SECOND, timeoutMs: WRITE_TIMEOUT_MS } as const;
  const types = auditKinds().map((kind) => {
    const sink = sinkOf(audit, ({ payload }) => checked(kind, readRecord(kind, payload)));
    return topic(auditTopic(kind.type), { ...common, schema: recordSchema(kind), sink });
  });
  return [...types, topic(auditTopic(QUARANTINE), { ...common, sink: quarantineSink(audit) })];
}

export const quarantineSink = (audit: AuditStore): Sink => sinkOf(audit, checkAgain);

/** `check`: which record a message holds, or why it is refused. */
function sinkOf(audit: AuditStore, check: (delivery: Delivery) => CheckedRecord): Sink {
  return {
    kind: "function",
    onDemand: true,
    deliver(delivery, context) {
      const checked = check(delivery);
      if ("refused" in checked) return checked.refused;
      // EV-25: its tenant is the token that wrote it; what the producer calls itself stays in the text.
      const record = { ...checked.record, actor: delivery.tenantId ?? checked.record.actor };
      return write(audit, checked.kind, record, context);
    },
  };
}

/** Another record has this event id: a person has to look. */
export const EVENT_CONFLICT = "event_conflict";

async function write(audit: AuditStore, kind: AuditKind, record: AuditRecord, context: DeliverContext): Promise<Outcome> {
  try {
    // A sink never waits past its deadline; the write goes on and is a duplicate the next time.
    const written = await within(systemClock, audit.write(record), context.timeoutMs, context.signal);
    if (written === null)
      return { kind: "unknown", code: "timeout", error: "the audit database did not answer in time", outage: true };
    if (written.kind === "stored") return DELIVERED;
    if (written.kind === "duplicate" || isSameData(kind, record.eventId, record.payload)) return DUPLICATE;
    return { kind: "reject", code: EVENT_CONFLICT, error: "the event id belongs to a record with another text" };
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

/** What a failed write to the audit seam means for its record; what a database says is never repeated, only its class. Away, never, or an ordinary failure. */
export function outcomeOfWrite(thrown: unknown): Outcome {
  if (isMakegoodError(thrown)) {
    const { code, retryable } = thrown;
    const alert = code === "store_full" || code === "schema_outdated";
    if (AWAY[code] !== undefined) return { kind: "retry", code, error: AWAY[code], outage: true, alert };
    if (retryable) return { kind: "retry", code, error: `the audit store failed (${code})` };
    return { kind: "reject", code, error: `the audit store refuses the record (${code})` };
  }
  const state = sqlState(thrown);
  if (!/^[0-9A-Z]{5}$/.test(state)) return { kind: "retry", code: "write_failed", error: "the write failed" };
  const failed = { code: `sql_${state}`, error: `the audit database refuses the write (SQLSTATE ${state})` };
  // 22 data exception, 23 constraint violation: the same record will be refused for ever.
  if (/^2[23]/.test(state)) return { kind: "reject", ...failed };
  // 28 and 42: a person has changed a right or a table; nothing is wrong with the record.
  return { kind: "retry", ...failed, ...(/^(?:28|42)/.test(state) ? { outage: true, alert: true } : {}) };
}

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

type Given = Source & {
  readonly text: string;
  readonly traceparent: string | null;
  /** The name of the token that it came with; absent: nobody needs one here, and the record says who wrote it. */
  readonly writer?: string | undefined;
};
type Server = Pick<Makegood, "deliver" | "events">;

export async function acceptRecord(mg: Server, type: string, given: Given): Promise<AcceptedRecord> {
  const accepted = await accept(mg, type, given);
  mg.events.emit({ type: "audit", auditType: type, result: RESULTS[accepted.is], code: accepted.code });
  return accepted;
}

async function accept(mg: Server, type: string, given: Given): Promise<AcceptedRecord> {
  const deliver = ({ topic, key, payloadText }: Carried) =>
    mg.deliver(topic, null, { key, payloadText, ...HOW, traceparent: given.traceparent, tenantId: given.writer });
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
