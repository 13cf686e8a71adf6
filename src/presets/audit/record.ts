/**
 * What an audit record is: an envelope that is the same for every type, `data` with the least its type needs, and what else
 * the producer sent. The text is checked and never rewritten: what is stored is what came in. Everything that is wrong is found
 * at once.
 */
import { isMakegoodError } from "../../message/errors.ts";
import { isObject } from "../../message/json.ts";
import { type StandardSchemaV1, schemaOf } from "../../message/standard-schema.ts";
import { isWellFormed, parsePayloadText } from "../../message/validate.ts";
import type { AuditRecord } from "../../store/audit.ts";
import type { AuditKind, Minimum } from "./registry.ts";

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

type And<Least extends object> = Least & { readonly [more: string]: unknown };

/** The least that `data` holds, as the client's helpers ask for it; `confidence`: from 0 to 1. */
export interface LeastData {
  orchestration: And<{ readonly phase: string }>;
  signalProcessing: And<{ readonly fingerprint: string }>;
  aiDecision: And<{ readonly fingerprint: string; readonly confidence: number }>;
  execution: And<{ readonly workflow: string }>;
  notification: And<{ readonly channel: string }>;
  effectiveness: And<{ readonly score: number }>;
}

export interface RecordFault {
  /** A path such as `data.confidence`; `.` is the record as a whole. */
  readonly field: string;
  readonly detail: string;
}

export type ReadRecord =
  | { readonly ok: true; readonly record: AuditRecord }
  | { readonly ok: false; readonly faults: readonly RecordFault[] };

const TEXT_BYTES_MAX = { event_id: 255, correlation_id: 255, actor: 255, resource: 1_024, outcome: 100 } as const;
type TextField = keyof typeof TEXT_BYTES_MAX;

// A column, a header and a log show these: no control characters.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;
const INSTANT = /^(?:19[7-9]\d|[2-9]\d{3})-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Date.parse alone would read the 31st of February as a day in March. */
function isInstant(text: string): boolean {
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (!INSTANT.test(text) || Number.isNaN(Date.parse(text)) || Number.isNaN(day.getTime())) return false;
  return day.toISOString().startsWith(text.slice(0, 10));
}

export function isEventId(value: unknown): value is string {
  return textFault(value, TEXT_BYTES_MAX.event_id) === null;
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
  const faults = recordFaults(kind, value);
  if (faults.length > 0) return { ok: false, faults };
  const { event_id, correlation_id, occurred_at, actor, resource, outcome } = value as Record<TextField | "occurred_at", string>;
  const record: AuditRecord = {
    eventId: event_id,
    auditType: kind.type,
    correlationId: correlation_id,
    occurredAt: new Date(occurred_at),
    actor,
    resource,
    outcome,
    payload: text,
  };
  return { ok: true, record };
}

function recordFaults(kind: AuditKind, value: unknown): RecordFault[] {
  if (!isObject(value)) return [{ field: ".", detail: "must be a JSON object" }];
  const own = (name: string): unknown => (Object.hasOwn(value, name) ? value[name] : undefined);
  const faults: RecordFault[] = [];
  for (const [field, bytesMax] of Object.entries(TEXT_BYTES_MAX)) {
    const detail = textFault(own(field), bytesMax);
    if (detail !== null) faults.push({ field, detail });
  }
  const occurred = own("occurred_at");
  if (typeof occurred !== "string" || !isInstant(occurred)) {
    faults.push({ field: "occurred_at", detail: "must be a time such as 2026-01-31T12:00:00.000Z, with its offset" });
  }
  const data = own("data");
  if (!isObject(data)) return [...faults, { field: "data", detail: "must be a JSON object" }];
  for (const minimum of kind.minimum) {
    const detail = minimumFault(Object.hasOwn(data, minimum.name) ? data[minimum.name] : undefined, minimum);
    if (detail !== null) faults.push({ field: `data.${minimum.name}`, detail });
  }
  return faults;
}

/** The same checks as a schema of a topic: a program that enqueues a record directly gets the faults at once. */
export function recordSchema(kind: AuditKind): StandardSchemaV1<AuditEnvelope> {
  const issueOf = ({ field, detail }: RecordFault) => ({ message: detail, path: field === "." ? [] : field.split(".") });
  return schemaOf((value) => recordFaults(kind, value).map(issueOf));
}

/** All faults as one sentence. It names fields and never repeats what stood in them. */
export function faultText(faults: readonly RecordFault[]): string {
  return faults.map(({ field, detail }) => (field === "." ? `the record ${detail}` : `${field} ${detail}`)).join("; ");
}

function textFault(value: unknown, bytesMax: number): string | null {
  if (value === undefined) return "is missing";
  if (typeof value !== "string" || value === "") return "must be a text that is not empty";
  if (Buffer.byteLength(value) > bytesMax) return `may have at most ${bytesMax} bytes`;
  return CONTROL.test(value) || !isWellFormed(value) ? "must not hold control characters or half surrogate pairs" : null;
}

function minimumFault(value: unknown, { kind, min, max }: Minimum): string | null {
  if (value === undefined) return "is missing";
  if (kind === "text") return typeof value === "string" && value !== "" ? null : "must be a text that is not empty";
  if (typeof value !== "number" || !Number.isFinite(value)) return "must be a number";
  const inside = value >= (min ?? value) && value <= (max ?? value);
  return inside ? null : `must be from ${min ?? "any"} to ${max ?? "any"}`;
}
