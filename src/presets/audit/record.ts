/**
 * What an audit record is: an envelope that is the same for every type, `data` with the least its type needs, and what else
 * the producer sent. The text is checked and never rewritten: what is stored is what came in. Everything that is wrong is found
 * at once. A record in the seed's own shape, {id, fingerprint, confidence …} without an envelope, becomes the `data` of one: the same
 * envelope wherever it comes in, the endpoint, the stream or the client.
 */
import { z } from "zod";
import { isMakegoodError } from "../../message/errors.ts";
import { readObject } from "../../message/json.ts";
import { issueText, type StandardSchemaV1 } from "../../message/standard-schema.ts";
import { parsePayloadText, payloadHash, textProblem } from "../../message/validate.ts";
import type { AuditRecord } from "../../store/audit.ts";
import type { AUDIT_TYPES, AuditKind, AuditType } from "./registry.ts";

/** A record as a producer writes it; the client fills in what may be absent. Unknown members are kept. */
export interface AuditEnvelope<Data extends object = Record<string, unknown>> {
  /** Unique for ever: a second write of it is not a second record. */
  readonly event_id?: string | undefined;
  /** What this belongs to: the remediation, the request, the order. */
  readonly correlation_id: string;
  /** RFC 3339 with an offset. */
  readonly occurred_at?: string | undefined;
  readonly actor?: string | undefined;
  readonly resource: string;
  readonly outcome: string;
  readonly data: Data;
  readonly [unknown: string]: unknown;
}

/** The least that the data of a type holds. */
export type LeastData<T extends AuditType> = z.infer<
  z.ZodObject<Extract<(typeof AUDIT_TYPES)[number], { type: T }>["least"], z.core.$loose>
>;

export interface RecordFault {
  /** A path such as `data.confidence`; `.` is the record as a whole. */
  readonly field: string;
  readonly detail: string;
}

export type ReadRecord =
  | { readonly ok: true; readonly record: AuditRecord }
  | { readonly ok: false; readonly faults: readonly RecordFault[] };

const INSTANT = /^(?:19[7-9]\d|[2-9]\d{3})-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Date.parse alone would read the 31st of February as a day in March. */
function isInstant(text: string): boolean {
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (!INSTANT.test(text) || Number.isNaN(Date.parse(text)) || Number.isNaN(day.getTime())) return false;
  return day.toISOString().startsWith(text.slice(0, 10));
}

/** A column, a header and a log show it. */
const text = (bytesMax: number) =>
  z.custom<string>((value) => textProblem(value, bytesMax) === null, {
    error: ({ input }) => (input === undefined ? "is missing" : (textProblem(input, bytesMax) ?? "")),
  });

const NO_TIME = "must be a time such as 2026-01-31T12:00:00.000Z, with its offset";
const ID_BYTES_MAX = 255;
const NO_OBJECT = "must be a JSON object";
const ENVELOPE = z.looseObject(
  {
    event_id: text(ID_BYTES_MAX),
    correlation_id: text(ID_BYTES_MAX),
    actor: text(255),
    resource: text(1_024),
    outcome: text(100),
    occurred_at: z.string(NO_TIME).refine(isInstant, NO_TIME),
  },
  NO_OBJECT,
);
const schemaOf = ({ least, schema }: AuditKind) => {
  const data = z.looseObject(least, NO_OBJECT);
  return ENVELOPE.extend({ data: schema ? data.check((context) => judge(schema, context)) : data });
};
const SCHEMAS = new WeakMap<AuditKind, ReturnType<typeof schemaOf>>();

function checksOf(kind: AuditKind) {
  const known = SCHEMAS.get(kind) ?? schemaOf(kind);
  SCHEMAS.set(kind, known);
  return known;
}

/** By the user's own schema. One that answers later cannot say no in time, so it says no. */
function judge(schema: StandardSchemaV1, context: z.core.ParsePayload<Record<string, unknown>>): void {
  const result = schema["~standard"].validate(context.value);
  const issues = result instanceof Promise ? [{ message: "has a schema that does not answer at once" }] : (result.issues ?? []);
  for (const { path, message } of issues.map(issueText)) {
    const parts = path === "" ? [] : path.split(".");
    context.issues.push({ code: "custom", message, path: parts, input: context.value });
  }
}

export function isEventId(value: unknown): value is string {
  return textProblem(value, ID_BYTES_MAX) === null;
}

/** Reads the exact text of a record: JSON, 1 MiB, bounded depth, envelope, and the least of its type. */
export function readRecord(kind: AuditKind, text: string): ReadRecord {
  let value: unknown;
  try {
    value = parsePayloadText(text);
  } catch (error) {
    if (!isMakegoodError(error)) throw error;
    return { ok: false, faults: [{ field: ".", detail: error.message }] };
  }
  const { data, error } = checksOf(kind).safeParse(value);
  if (error)
    return { ok: false, faults: error.issues.map(({ path, message: detail }) => ({ field: path.join(".") || ".", detail })) };
  const { event_id: eventId, correlation_id: correlationId, occurred_at, actor, resource, outcome } = data;
  const facts = { correlationId, occurredAt: new Date(occurred_at), actor, resource, outcome };
  return { ok: true, record: { eventId, auditType: kind.type, ...facts, payload: text } };
}

/** The same checks as a schema of a topic: a program that enqueues a record directly gets the faults at once. */
export const recordSchema = (kind: AuditKind): StandardSchemaV1<AuditEnvelope> =>
  checksOf(kind) as StandardSchemaV1<AuditEnvelope>;

/** All faults as one sentence. It names fields and never repeats what stood in them. */
export function faultText(faults: readonly RecordFault[]): string {
  return faults.map(({ field, detail }) => (field === "." ? `the record ${detail}` : `${field} ${detail}`)).join("; ");
}

export interface Source {
  /** Of the envelope that is made; absent: the record's own id and text say whether it is the same one again. */
  readonly eventId?: string | undefined;
  /** For a record that has no id of its own either. */
  readonly newId: () => string;
  /** Absent: the type's producer. */
  readonly actor?: string | undefined;
  readonly occurredMs: number;
}

/** Where the data begins in an envelope made here: quotes inside of a text before it are escaped. */
const DATA = ',"data":';

/** Reads a record in either shape. What fits neither is checked as the one it looks like. */
export function readEither(kind: AuditKind, text: string, source: Source): ReadRecord {
  const read = readRecord(kind, text);
  if (read.ok) return read;
  const wrapped = wrap(kind, text, source);
  return wrapped === null ? read : readRecord(kind, wrapped);
}

/** Whether the event id says no more than "this very data": another envelope around it is the same record, not a contradiction. */
export function isSameData(kind: AuditKind, eventId: string, text: string): boolean {
  const at = text.indexOf(DATA);
  return at > 0 && eventId === dataId(kind, text.slice(at + DATA.length, -1));
}

/** Whether it has, or tries to have, an envelope of its own. Members that are undefined are absent. */
export function hasEnvelope(record: unknown): record is object {
  const { event_id, data } = Object(record) as { event_id?: unknown; data?: unknown };
  return typeof record === "object" && (event_id !== undefined || data !== undefined);
}

const dataId = ({ type }: AuditKind, text: string): string => `${type}/${payloadHash(text)}`;

/** Null: it has an envelope of its own that is wrong, or is no object at all. */
function wrap(kind: AuditKind, text: string, { eventId, newId, actor = kind.producer, occurredMs }: Source): string | null {
  const data = readObject(text);
  if (data === null || hasEnvelope(data) || !(Math.abs(occurredMs) <= 8.64e15)) return null;
  const { id } = data;
  const own = typeof id === "number" ? String(id) : id;
  // Without an id two equal records may be two events: kept twice rather than once too few.
  const event = eventId ?? (isEventId(own) ? dataId(kind, text) : newId());
  const envelope = {
    event_id: event,
    correlation_id: isEventId(own) ? own : event,
    occurred_at: new Date(occurredMs).toISOString(),
    actor,
    resource: kind.type,
    outcome: "unknown",
  };
  return `${JSON.stringify(envelope).slice(0, -1)}${DATA}${text}}`;
}
