/**
 * The file between two stores: one JSON text a line. First what it is, then topics, then tables of records with their rows, messages, what of
 * records belongs to messages, last the sums and the hash of every byte before; without that last line, or with a byte changed, it is not
 * read at all. Format 1 had no records.
 */
import type { AttemptRecord, ProvenanceRecord } from "../message/message.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { MovableMessage } from "../store/movable.ts";
import type { RecordKind, RecordTable } from "../store/movable-records.ts";

export const FORMAT = 2;
export const FORMATS: readonly unknown[] = [1, FORMAT];

export interface Header {
  readonly makegood_export: 1 | typeof FORMAT;
  readonly made_at: string;
  /** The kind of store that it came from. */
  readonly store: string;
  /** Also what was delivered, resolved or discarded. */
  readonly all: boolean;
  /** The store was at work meanwhile: each message as it stood when it was read. */
  readonly live: boolean;
  readonly secrets: boolean;
}

export type TopicLine = Pick<TopicRecord, "source" | "paused" | "disabledReason"> & {
  readonly definition: Omit<TopicRecord, "source" | "paused" | "disabledReason" | "revision" | "breaker">;
  /** Where something was left out of it: `sink.secrets`, `sink.headers.authorization`. */
  readonly missing: readonly string[];
};

/** How many messages of one topic, tenant and state, and the sum of what says which ones. */
export interface Sum {
  readonly topic: string;
  readonly tenant_id: string | null;
  readonly status: string;
  readonly count: number;
  readonly hash: string;
}

/** Of one table of records. */
export interface RecordSum {
  readonly kind: RecordKind;
  readonly table: string;
  readonly count: number;
  readonly hash: string;
}

export interface Closing {
  readonly topics: number;
  readonly messages: number;
  /** Over all of them, however they stood. */
  readonly hash: string;
  readonly sums: readonly Sum[];
  /** Messages of the store that could not be read and are not in the file. */
  readonly unreadable: number;
  /** Absent in format 1. */
  readonly records?: readonly RecordSum[];
  /** Of every byte before this line. */
  readonly sha256: string;
}

/** A row is one of the table that was named last, as JSON text: its numbers are larger than those of JavaScript. */
export type Line =
  | Header
  | { readonly topic: TopicLine }
  | { readonly table: RecordTable }
  | { readonly row: string }
  | { readonly message: unknown }
  | { readonly end: Closing };

type Fields<T> = readonly (keyof T & string)[];

const ATTEMPT: Fields<AttemptRecord> = ["attempt", "outcome", "counted", "at", "durationMs", "code", "error", "nextAttemptAt"];
const PROVENANCE: Fields<ProvenanceRecord> = ["at", "actor", "action", "reason"];
/** What never changes about a message, and then where it stands. */
export const FIXED: Fields<MovableMessage> = [
  ...([
    "id",
    "topic",
    "tenantId",
    "key",
    "orderingKey",
    "priority",
    "payload",
    "traceparent",
    "schemaVersion",
    "createdAt",
  ] as const),
  "handedDown",
];
const STANDS: Fields<MovableMessage> = [
  ...(["status", "resolution", "attempts", "base", "generation", "revision", "nextAttemptAt", "heldReason", "diedAt"] as const),
  ...(["settledAt", "suspicion", "retried", "place", "blocksOrder"] as const),
];
const DATES: ReadonlySet<string> = new Set(["createdAt", "nextAttemptAt", "diedAt", "settledAt", "at"]);

const wireName = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function encode<T>(fields: Fields<T>, one: T): Record<string, unknown> {
  return Object.fromEntries(fields.map((field) => [wireName(field), one[field]]));
}

function decode<T>(fields: Fields<T>, wire: Readonly<Record<string, unknown>>): T {
  const wanted = (field: string): unknown => {
    const value = wire[wireName(field)];
    return DATES.has(field) && typeof value === "string" ? new Date(value) : value;
  };
  return Object.fromEntries(fields.map((field) => [field, wanted(field)])) as T;
}

/** The same text for messages that are the same. */
export function messageText(one: MovableMessage): string {
  const history = one.history.map((row) => encode(ATTEMPT, row));
  const provenance = one.provenance.map((row) => encode(PROVENANCE, row));
  return JSON.stringify({ ...encode([...FIXED, ...STANDS], one), history, provenance });
}

export function messageOf(wire: unknown): MovableMessage {
  const given = wire as Record<string, unknown> & {
    readonly history: Record<string, unknown>[];
    readonly provenance: Record<string, unknown>[];
  };
  return {
    ...decode([...FIXED, ...STANDS], given),
    history: given.history.map((row) => decode(ATTEMPT, row)),
    provenance: given.provenance.map((row) => decode(PROVENANCE, row)),
  };
}
