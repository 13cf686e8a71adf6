/**
 * An obligation as an entry of the journal, and back: the same message that a kernel store would hold, so that `makegood journal` lists
 * it, and imports it into a store of either kind. Pure.
 */
import type { NewMessage } from "../../message/message.ts";
import { isTraceparent, payloadHash } from "../../message/validate.ts";
import { dueMessage, type HandedDown } from "../../store/handed-down.ts";
import type { NewDLQEntry, PutOptions } from "../../store/redis/dlq-port/dlq-store.ts";
import type { KeptEntry } from "./lines.ts";
import { payloadOf, TOPIC } from "./topic.ts";

const REASON = /^([a-z0-9_]{1,64}): (.*)$/s;
const INVALID = "invalid_request";

export function toHandedDown(entry: KeptEntry, how: PutOptions, id: string, atMs: number): HandedDown {
  const { reservation_id, tenant_id, actual_cost_micro, trace_id, reason } = entry;
  const [, code = null, error = reason] = REASON.exec(reason) ?? [];
  const problem = code === INVALID ? error : null;
  const payload = JSON.stringify(payloadOf({ request: { reservation_id, tenant_id, actual_cost_micro, trace_id }, problem }));
  const message: NewMessage = {
    id,
    topic: TOPIC,
    // What is wrong with a request may be its tenant.
    tenantId: problem === null ? tenant_id : null,
    key: reservation_id,
    payload,
    payloadHash: payloadHash(payload),
    delayMs: how.delayMs ?? 0,
    priority: 0,
    orderingKey: null,
    traceparent: isTraceparent(trace_id) ? trace_id : null,
    schemaVersion: null,
    directTry: { code, error, ...(how.terminal === undefined ? {} : { rejected: true }) },
  };
  return { message, atMs };
}

export interface FromJournal {
  readonly entry: NewDLQEntry & { readonly created_at: string };
  readonly how: PutOptions;
}

/** With the attempts that were made since. Null: it is no obligation of ours. */
export function fromHandedDown(handedDown: HandedDown, nowMs: number): FromJournal | null {
  const { message, atMs, tried } = handedDown;
  const fields = fieldsOf(message.payload);
  if (message.topic !== TOPIC || fields === null) return null;
  const text = (name: string): string => (typeof fields[name] === "string" ? fields[name] : "");
  const { code = null, error = null, rejected = false } = message.directTry ?? {};
  const reason = `${code ?? "handed_down"}: ${error ?? "no reason given"}`;
  const status = /^http_([0-9]{3})$/.exec(code ?? "")?.[1];
  const entry = {
    reservation_id: message.key ?? message.id,
    tenant_id: text("tenant_id"),
    actual_cost_micro: text("actual_cost_micro"),
    trace_id: message.traceparent ?? text("trace_id"),
    reason,
    response_status: status === undefined ? null : Number(status),
    attempt_count: 1 + (tried?.failed.length ?? 0),
    created_at: new Date(atMs).toISOString(),
  };
  if (rejected || tried?.dead === true) {
    return { entry, how: { terminal: rejected ? reason : (tried?.failed.at(-1)?.error ?? reason) } };
  }
  return { entry, how: { delayMs: dueMessage(handedDown, nowMs).delayMs } };
}

function fieldsOf(payload: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(payload);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
