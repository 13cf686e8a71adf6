/**
 * An entry as the journal knows it without reading it again: where it stands, what it is and what was tried of it before. The marks of attempts are
 * written beside the entries and folded into this when a segment is read; an attempt that was begun and never ended counts as lost (I6).
 */
import { payloadHash } from "../../message/validate.ts";
import { type HandedDown, readEntry } from "../ladder/format/handed-down.ts";
import type { Sealer } from "../ladder/format/seal.ts";
import { type AfterTry, LOST, readTry, type TriedBelow, triedMore, tryJson } from "../ladder/format/tried-below.ts";

export interface Held {
  readonly id: string;
  /** As it was handed down, of its payload only the hash; null: it cannot be read, and `fault` says why. */
  readonly entry: HandedDown | null;
  readonly fault: string | null;
  readonly offset: number;
  readonly bytes: number;
  /** Why it is in quarantine; null: it waits, if it can be read. */
  reason: string | null;
  /** What had been tried of it when this process got it; the worker that tries it knows its own attempts. */
  tried: TriedBelow | null;
  /** While marks are read: the attempt that was under way. */
  begun: { readonly attempt: number; readonly atMs: number } | null;
}

export function heldEntry(entry: HandedDown, offset: number, bytes: number): Held {
  const { message, atMs, tried = null } = entry;
  const known = { message: { ...message, payload: payloadHash(message.payload) }, atMs };
  return { id: message.id, entry: known, fault: null, offset, bytes, reason: null, tried, begun: null };
}

/** From an entry's text; null: it is none. */
export function heldValue(value: unknown, sealer: Sealer | null, offset: number, bytes: number): Held | null {
  const { id, at } = (value ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || Number.isNaN(Date.parse(String(at)))) return null;
  const read = readEntry(value, sealer);
  if (read.ok) return heldEntry(read.entry, offset, bytes);
  return { id, entry: null, fault: read.fault, offset, bytes, reason: null, tried: null, begun: null };
}

/** The mark of an attempt that begins. */
export const begunMark = (id: string, attempt: number, atMs: number): Buffer =>
  mark({ id, begun: attempt, at: new Date(atMs).toISOString() });

/** The mark of one that has ended, or was not made after all (null). */
export function endedMark(id: string, after: AfterTry | null, atMs: number): Buffer {
  if (after === null) return mark({ id, ended: null });
  const { failed, delayMs, dead } = after;
  return mark({ id, ended: { failed: failed && tryJson(failed), delay_ms: delayMs, dead, at: new Date(atMs).toISOString() } });
}

const mark = (value: object): Buffer => Buffer.from(JSON.stringify(value));

const atMsOf = ({ entry }: Held): number => entry?.atMs ?? 0;

/** What a mark says, after a restart. */
export function foldMark(held: Held, value: { readonly begun?: unknown; readonly at?: unknown; readonly ended?: unknown }): void {
  if (typeof value.begun === "number") {
    held.begun = { attempt: value.begun, atMs: Date.parse(String(value.at)) || atMsOf(held) };
    return;
  }
  held.begun = null;
  if (typeof value.ended !== "object" || value.ended === null) return;
  const { failed, delay_ms, dead, at } = value.ended as Record<string, unknown>;
  const after = {
    failed: failed ? readTry(failed) : null,
    delayMs: typeof delay_ms === "number" ? delay_ms : 0,
    dead: dead === true,
  };
  held.tried = triedMore(held.tried, after, Date.parse(String(at)) || atMsOf(held));
}

/**
 * The process that made the attempt is gone. Its wait begins again: a message that ends processes must not do so without a pause.
 */
export function countLost(held: Held): void {
  if (held.begun === null) return;
  const after = { failed: LOST, delayMs: held.tried?.delayMs ?? held.entry?.message.delayMs ?? 0, dead: false };
  held.tried = triedMore(held.tried, after, held.begun.atMs);
  held.begun = null;
}
