/**
 * POST /api/v1/audit/<type>: one audit record in, stored durably or queued durably, and said which. 201 stored, 200 it was there
 * already, 202 the database failed and the record is queued (EV-15), 400 it does not fit and is quarantined, 422 its event id belongs
 * to another record, 507 the database is full, 503 nothing could take it: the last two mean that the producer keeps it.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import { isTraceparent } from "../../message/validate.ts";
import { createIds } from "../../platform/ids.ts";
import { quarantineMessage } from "../../presets/audit/quarantine.ts";
import { faultText, type RecordFault } from "../../presets/audit/record.ts";
import { AUDIT_NAMESPACE, AUDIT_TYPES, type AuditKind, type AuditType } from "../../presets/audit/registry.ts";
import { isSameData, readEither } from "../../presets/audit/seed-record.ts";
import { EVENT_CONFLICT } from "../../presets/audit/store-sink.ts";
import { auditTopic } from "../../presets/audit/topics.ts";
import { auditOf } from "../../store/audit.ts";
import { json } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import { type ProblemItem, problem, type Reply } from "../problem.ts";
import type { Asked } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";

/** The database first, then a fresh limit of the same length for whatever queues. */
const WRITE_MS = 3_000;
/** The topics' rate is for what was queued, so that requests are not disturbed (AUD-14). */
const HOW = { timeoutMs: WRITE_MS, budgetMs: 2 * WRITE_MS, unpaced: true } as const;

type Kind = AuditKind & { readonly type: AuditType };
type Result = "success" | "fallback" | "validation_error" | "failed";

export function auditHandlers(kernel: Kernel): Handlers<"recordAudit"> {
  const newId = createIds(kernel.clock);
  return {
    recordAudit(asked) {
      const kind = AUDIT_TYPES.find(({ type }) => type === asked.params.type);
      return kind ? post(kernel, kind, asked, newId) : problem("not_found", "there is nothing at this address");
    },
  };
}

async function post(kernel: Kernel, kind: Kind, request: Asked<"recordAudit">, newId: () => string): Promise<Reply> {
  if (auditOf(kernel.mg.store) === null) {
    const detail = `audit records need PostgreSQL, and this server's store is ${kernel.mg.store.traits.name}`;
    return problem("needs_postgres", detail);
  }
  const { actor, body: text } = request;
  const read = readEither(kind, text, { newId, actor, occurredMs: kernel.clock.wallMs() });
  if (!read.ok) return quarantine(kernel, kind, text, read.faults);
  const traceparent = request.header("traceparent");
  const { eventId, payload } = read.record;
  const result = await kernel.mg.deliver(auditTopic(kind.type), null, {
    payloadText: payload,
    key: eventId,
    ...HOW,
    traceparent: isTraceparent(traceparent) ? traceparent : null,
  });
  const conflicts = result.code === "key_conflict";
  if (conflicts && isSameData(kind, eventId, payload)) {
    tell(kernel, kind, "fallback", null);
    return json(202, { event_id: eventId, status: "queued" });
  }
  // A queued record that contradicts it was first: this one is kept beside it, and the worker will tell which one came second.
  const kept = conflicts ? await keep(kernel, kind, text, "its event id belongs to another record") : null;
  const [outcome, reply] = answer(eventId, result, kept?.quarantined ?? false);
  tell(kernel, kind, outcome, result.code);
  return reply;
}

function tell(kernel: Kernel, kind: Kind, result: Result, code: string | null): void {
  kernel.mg.events.emit({ type: "audit", auditType: kind.type, result, code });
}

/** What a producer may rely on; what only our memory holds is not one of it (DA-16). */
function answer(eventId: string, { kind, id, code, error, stored, survives }: DeliverResult, kept: boolean): [Result, Reply] {
  const body = { event_id: eventId };
  switch (kind) {
    case "delivered":
      return ["success", json(201, { ...body, status: "stored" })];
    case "duplicate":
      return ["success", json(200, { ...body, status: "duplicate" })];
    case "queued":
      if (survives === "nothing") return ["failed", unavailable(code, error)];
      return ["fallback", json(202, { ...body, status: "queued", message_id: id, survives })];
    case "dead": {
      const members = { event_id: eventId, quarantined: stored !== null && survives !== "nothing", message_id: id };
      if (code === EVENT_CONFLICT) return ["validation_error", conflict(eventId, members)];
      return ["validation_error", problem("invalid_payload", `the record is refused (${code})`, { members })];
    }
    case "refused":
      if (code === "key_conflict") return ["validation_error", conflict(eventId, { event_id: eventId, quarantined: kept })];
      return ["failed", unavailable(code, error)];
  }
}

function conflict(eventId: string, members: Record<string, unknown>): Reply {
  const detail = `event ${JSON.stringify(eventId)} is already there with another text: an event id names one record for ever`;
  return problem("key_conflict", detail, { members });
}

/** While the breaker is open its reason says what the last real write met. */
function unavailable(code: string | null, error: string | null): Reply {
  return code === "store_full" || error?.startsWith("store_full") === true
    ? problem("store_full", "the audit database is full and nothing else could take the record: keep it and send it again")
    : problem("store_unavailable", "neither the database nor the queue could take the record: keep it and send it again");
}

async function quarantine(kernel: Kernel, kind: Kind, text: string, faults: readonly RecordFault[]): Promise<Reply> {
  const errors: ProblemItem[] = faults.map(({ field, detail }) => ({ field, code: "invalid_payload", detail }));
  const reason = faultText(faults);
  const { quarantined, id, code } = await keep(kernel, kind, text, reason);
  tell(kernel, kind, "validation_error", code);
  const members = { quarantined, message_id: quarantined ? id : null };
  return problem("invalid_payload", `the record does not fit: ${reason}`, { errors, members });
}

/** Kept as a dead letter with its whole text: a replay judges it again and stores it once it fits (CON-16, DA-15). */
async function keep(kernel: Kernel, kind: Kind, text: string, reason: string) {
  const { topic, ...message } = quarantineMessage(AUDIT_NAMESPACE, kind.type, reason, text);
  const result = await kernel.mg.deliver(topic, null, { ...message, ...HOW });
  return { quarantined: result.stored !== null && result.survives !== "nothing", id: result.id, code: result.code };
}
