/**
 * What an entry of the seeds' port is as a message of the topic `billing/finalize`, and back: which entry is acceptable, when two are the
 * same obligation, what of it stands in the payload. Pure. The settlement preset keeps its obligations in the same shape.
 */
import { z } from "zod";
import { isObject, readObject } from "../../../message/json.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { MessageView, NewMessage } from "../../../message/message.ts";
import { checkNumber, invalid, isTraceparent, isWellFormed, payloadHash, textProblem } from "../../../message/validate.ts";
import type { Store } from "../../store.ts";
import type { QuarantinedMessage } from "../quarantined.ts";
import type { DLQEntry, DLQRequest, NewDLQEntry, PutOptions, Quarantined, TerminalRecord } from "./dlq-store.ts";

export const TOPIC = "billing/finalize";
/** What the key of a quarantined contradiction begins with. */
export const CONFLICT = "conflict-";
export const DLQ_LIMITS = { leaseMs: 60_000, textBytesMax: 4_096 } as const;
/** What the port itself writes as an attempt's code; an entry's reason is what came before. */
export const PORT_CODES = { failed: "replay_failed", dropped: "terminal_drop" } as const;

export function checkId(id: unknown): asserts id is string {
  checkText("reservation_id", id, LIMITS.keyBytesMax);
  if (id === "") throw invalid("reservation_id", "must not be empty: quarantine it under an id of your own");
}

export function checkText(field: string, value: unknown, bytesMax: number = DLQ_LIMITS.textBytesMax): asserts value is string {
  if (typeof value !== "string") throw invalid(field, "must be a text");
  if (Buffer.byteLength(value) > bytesMax) throw invalid(field, `has more than ${bytesMax} bytes`);
  if (!isWellFormed(value)) throw invalid(field, "contains half of a surrogate pair and cannot be written as UTF-8");
}

const ISO = z.iso.datetime({ offset: true }).optional();

export function checkEntry(entry: NewDLQEntry, { delayMs, terminal }: PutOptions): void {
  checkId(entry.reservation_id);
  for (const field of ["tenant_id", "actual_cost_micro", "trace_id", "reason"] as const) checkText(field, entry[field]);
  const { response_status: status, attempt_count: attempts } = entry;
  if (status !== null) checkNumber("response_status", status, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, true);
  checkNumber("attempt_count", attempts, 0, Number.MAX_SAFE_INTEGER, true);
  if (delayMs !== undefined) checkDelay(delayMs);
  if (terminal !== undefined) checkText("reason", terminal);
  for (const field of ["created_at", "next_attempt_at"] as const)
    if (!ISO.safeParse(entry[field]).success) throw invalid(field, "must be an ISO-8601 date and time with its zone");
}

function wholeMs(field: string, ms: number, min: number, max: number): number {
  checkNumber(field, ms, min, max, false);
  return Math.ceil(ms);
}

export const checkDelay = (delayMs: number): number => wholeMs("delayMs", delayMs, 0, LIMITS.delayMsMax);

/** One less: a lease of ours has ended at its last millisecond, one of the store only after it. */
export const checkLease = (leaseMs: number): number => wholeMs("leaseMs", leaseMs, LIMITS.leaseMsMin, LIMITS.leaseMsMax) - 1;

/** How far away a date is. */
export function delayOf(next: Date, nowMs: number): number {
  if (Number.isNaN(next.getTime())) throw invalid("next", "is not a date");
  return checkDelay(Math.min(LIMITS.delayMsMax, Math.max(0, next.getTime() - nowMs)));
}

/** The obligation is who owes how much. The same one with another trace or reason is a repeat (DF-17). */
export function sameObligation(a: DLQRequest, b: DLQRequest): boolean {
  return a.actual_cost_micro === b.actual_cost_micro && a.tenant_id === b.tenant_id;
}

/** How a repeated obligation relates to the message that has its reservation. `closed`: a person has ended it (N8). */
export function standsTo(first: MessageView, repeated: DLQRequest): "other" | "settled" | "closed" | "owed" {
  if (!sameObligation(fieldsOf(first.payload), repeated)) return "other";
  if (first.status === "delivered") return "settled";
  return first.resolution === "resolved" || first.resolution === "discarded" ? "closed" : "owed";
}

/** What only a caller of the port says; absent from the payload where it says nothing new. */
type Extra = Partial<Pick<NewDLQEntry, "reason" | "response_status" | "attempt_count" | "created_at">>;

/** What is undefined is not written. A trace that travels as `traceparent` is no part of it, so a repeat with another trace is a duplicate, not a conflict. */
export function payloadOf(request: DLQRequest, problem?: string, extra: Extra = {}): object {
  const { reservation_id, tenant_id, actual_cost_micro, trace_id } = request;
  const traced = trace_id === "" || isTraceparent(trace_id);
  const entry = Object.values(extra).some((value) => value !== undefined) ? extra : undefined;
  return { reservation_id, tenant_id, actual_cost_micro, trace_id: traced ? undefined : trace_id, problem, entry };
}

const REASON = /^([a-z0-9_]{1,64}): (.*)$/s;
const statusOf = (reason: string): number | null => Number(/^http_([0-9]{3})\b/.exec(reason)?.[1] ?? Number.NaN) || null;

export function messageOf(entry: NewDLQEntry, how: PutOptions & Pick<NewMessage, "id"> & { readonly key: string }): NewMessage {
  const { reason, response_status, attempt_count, created_at, trace_id, tenant_id } = entry;
  const { id, key, problem, terminal, delayMs = 0 } = how;
  const given = terminal ?? reason;
  const extra: Extra = {
    reason: given === reason ? undefined : reason,
    response_status: response_status === statusOf(reason) ? undefined : response_status,
    attempt_count: attempt_count === 1 ? undefined : attempt_count,
    created_at,
  };
  const [, code = null, error = given] = REASON.exec(given) ?? [];
  const payload = JSON.stringify(payloadOf(entry, problem, extra));
  return {
    ...{ id, topic: TOPIC, key, payload, payloadHash: payloadHash(payload) },
    tenantId: problem === undefined && textProblem(tenant_id, LIMITS.tenantIdBytesMax) === null ? tenant_id : null,
    delayMs: Math.ceil(delayMs),
    ...{ priority: 0, orderingKey: null, schemaVersion: null },
    traceparent: isTraceparent(trace_id) ? trace_id : null,
    directTry: { code, error, ...(terminal === undefined ? {} : { rejected: true }) },
  };
}

/** DF-17: a dead letter of its own that names both; one, however often the obligation is repeated. */
export function conflictOf(entry: NewDLQEntry, firstId: string, id: string): NewMessage {
  const { reservation_id, tenant_id, actual_cost_micro } = entry;
  const key = CONFLICT + payloadHash(JSON.stringify([reservation_id, tenant_id, actual_cost_micro]));
  const problem = `reservation ${reservation_id} is kept with another cost or tenant as message ${firstId}; the first stands`;
  return messageOf(entry, { id, key, problem, terminal: `key_conflict: ${problem}` });
}

export function quarantinedOf({ payload, createdAt }: MessageView): Quarantined {
  const { entry: _, problem, ...fields } = fieldsOf(payload);
  const { reservation_id } = fields;
  return { kind: "conflict", reservation_id, at: createdAt.toISOString(), fields: { ...fields, reason: problem ?? "" } };
}

/** What the engine has quarantined: a reservation, where its name is left. */
export function unreadableOf({ id, kind, at, key, topic, left }: QuarantinedMessage): Quarantined {
  const reservation_id = topic === TOPIC && key !== null ? key : id;
  return { kind: kind === "gone" ? "orphan" : "corrupt", reservation_id, at: at.toISOString(), fields: left };
}

/** Null unless nothing could be sent of it: not an obligation, and not what a problem made of one. */
export function garbledOf({ id, key, payload, createdAt }: MessageView, fields: Fields): Quarantined | null {
  if (fields.problem !== null || (fields.reservation_id !== "" && fields.actual_cost_micro !== "")) return null;
  return { kind: "corrupt", reservation_id: key ?? id, at: createdAt.toISOString(), fields: { payload } };
}

export type History = Awaited<ReturnType<Store["history"]>>;

const TEXT = z.string().catch("");
const FIELDS = z.object({
  reservation_id: TEXT,
  tenant_id: TEXT,
  actual_cost_micro: TEXT,
  trace_id: TEXT,
  entry: z.custom<Extra>(isObject).catch({}),
  problem: z.string().nullable().catch(null),
});
export type Fields = z.output<typeof FIELDS>;

/** The fields of a payload that are text; none of a payload that cannot be read, which shows a person that nothing is left. */
export const fieldsOf = (payload: string): Fields => FIELDS.parse(readObject(payload) ?? {});

/** Attempts since the last replay, and before it; what only dropped it is none (DF-15: the direct try is the first). */
function countsOf(view: MessageView, { attempts, provenance }: History, first: number): { now: number; before: number } {
  if (isPlain(view)) return { now: first + view.attempts, before: 0 };
  const replayedAt = replayOf(provenance);
  const counted = attempts.filter((one) => one.counted && one.code !== PORT_CODES.dropped);
  if (view.generation === 0 || replayedAt === null) return { now: first + counted.length, before: 0 };
  const since = counted.filter(({ at }) => at > replayedAt).length;
  return { now: since, before: first + counted.length - since };
}

const replayOf = (all: History["provenance"]) => all.findLast(({ action }) => action === "replay")?.at ?? null;

/** Claims whose holder died since the last replay (CON-27). */
export function abandonedOf({ attempts, provenance }: History): number {
  const since = replayOf(provenance) ?? new Date(0);
  return attempts.filter(({ outcome, at }) => outcome === "lost" && at > since).length;
}

/** Its view says all there is to say: no replay, nothing of the port's own in it. */
export function isPlain({ status, generation, lastCode }: MessageView): boolean {
  return status === "pending" && generation === 0 && lastCode !== "lease_lost" && !isPorts(lastCode);
}

export function entryOf(view: MessageView, history: History, fields: Fields = fieldsOf(view.payload)): DLQEntry {
  const { entry: extra, problem: _, ...request } = fields;
  const failed = history.attempts.findLast(({ error, code, outcome }) => error !== null && outcome !== "lost" && !isPorts(code));
  const said = failed ? textOf(failed.code, failed.error) : textOf(view.lastCode, view.lastError);
  const reason = (failed?.attempt ?? 0) === 0 && extra.reason !== undefined ? extra.reason : said;
  const { now } = countsOf(view, history, extra.attempt_count ?? 1);
  const due =
    view.nextAttemptAt ??
    history.attempts.findLast(({ nextAttemptAt }) => nextAttemptAt !== null)?.nextAttemptAt ??
    view.createdAt;
  return {
    ...request,
    reservation_id: request.reservation_id || (view.key ?? ""),
    trace_id: view.traceparent ?? request.trace_id,
    reason,
    response_status: extra.response_status === undefined ? statusOf(reason) : extra.response_status,
    attempt_count: now,
    next_attempt_at: due.toISOString(),
    created_at: extra.created_at ?? view.createdAt.toISOString(),
  };
}

const isPorts = (code: string | null): boolean => code === PORT_CODES.failed || code === PORT_CODES.dropped;
const textOf = (code: string | null, error: string | null): string => (code === null ? (error ?? "") : `${code}: ${error}`);

export function terminalOf(view: MessageView, history: History): TerminalRecord {
  const closed = history.provenance.findLast(({ action }) => action !== "replay");
  const last = history.attempts.at(-1);
  return {
    ...entryOf(view, history),
    attempts_before: countsOf(view, history, fieldsOf(view.payload).entry.attempt_count ?? 1).before,
    terminal_reason: last?.code === PORT_CODES.dropped ? (last.error ?? "") : textOf(view.lastCode, view.lastError),
    terminal_at: (view.diedAt ?? view.createdAt).toISOString(),
    resolution: view.resolution ?? "open",
    resolved_by: closed?.actor ?? null,
    resolved_reason: closed?.reason ?? null,
  };
}
