/**
 * A record in the seed's own shape, {id, fingerprint, confidence …} without an envelope, becomes the `data` of one: the same
 * envelope wherever it comes in, the endpoint, the stream or the client. Its text goes in as it is.
 */
import { readObject } from "../../message/json.ts";
import { payloadHash } from "../../message/validate.ts";
import { isEventId, type ReadRecord, readRecord } from "./record.ts";
import type { AuditKind } from "./registry.ts";

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
