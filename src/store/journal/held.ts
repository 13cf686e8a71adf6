/**
 * An entry as the journal knows it without reading it again: where it stands, when it is due and what was tried of it. The marks of attempts are
 * written beside the entries and folded into this when a segment is read; an attempt that was begun and never ended counts as lost (I6).
 */
import type { WaitingBelow } from "../fallback.ts";
import type { HandedDown } from "../handed-down.ts";
import { type AfterTry, LOST, readTried, readTry, type TriedBelow, triedMore, tryJson } from "../tried-below.ts";

export interface Held extends WaitingBelow {
  readonly delayMs: number;
  /** It had a direct try, which failed. */
  readonly direct: boolean;
  /** Its direct try was a rejection. */
  readonly refused: boolean;
  readonly offset: number;
  readonly bytes: number;
  /** Why it is in quarantine; null: it waits. */
  reason: string | null;
  tried: TriedBelow | null;
  /** The attempt that is under way: its number, and since when; null: none. */
  begun: { readonly attempt: number; readonly atMs: number } | null;
}

type Known = Pick<Held, "id" | "topic" | "orderingKey" | "direct" | "refused" | "atMs" | "delayMs" | "tried">;

function holding(known: Known, offset: number, bytes: number): Held {
  return {
    ...known,
    offset,
    bytes,
    reason: null,
    begun: null,
    get retried() {
      return this.direct || this.tried !== null;
    },
    get dueAtMs() {
      return this.tried ? this.tried.atMs + this.tried.delayMs : this.atMs + this.delayMs;
    },
    get dead() {
      return this.refused || (this.tried?.dead ?? false);
    },
  };
}

export function heldEntry({ message, atMs, tried }: HandedDown, offset: number, bytes: number): Held {
  const { id, topic, orderingKey, delayMs, directTry } = message;
  const tries = { direct: directTry !== undefined, refused: directTry?.rejected === true };
  return holding({ id, topic, orderingKey, ...tries, atMs, delayMs, tried: tried ?? null }, offset, bytes);
}

/** From an entry's text; null: it is none. */
export function heldValue(value: unknown, offset: number, bytes: number): Held | null {
  const { id, topic, at, ordering_key, delay_ms, direct_try, tried } = (value ?? {}) as Record<string, unknown>;
  const atMs = Date.parse(String(at));
  if (typeof id !== "string" || Number.isNaN(atMs)) return null;
  const delayMs = typeof delay_ms === "number" ? delay_ms : 0;
  const orderingKey = typeof ordering_key === "string" ? ordering_key : null;
  const refused = (direct_try as { rejected?: unknown } | null | undefined)?.rejected === true;
  const direct = direct_try !== undefined && direct_try !== null;
  return holding(
    { id, topic: String(topic), orderingKey, direct, refused, atMs, delayMs, tried: readTried(tried) },
    offset,
    bytes,
  );
}

/** An attempt begins; returns the mark to write. */
export function beginAttempt(held: Held, atMs: number): Buffer {
  const attempt = (held.tried?.failed.length ?? 0) + 1;
  held.begun = { attempt, atMs };
  return mark({ id: held.id, begun: attempt, at: new Date(atMs).toISOString() });
}

/** It has ended, or was not made after all (null); returns the mark to write. */
export function endAttempt(held: Held, after: AfterTry | null, atMs: number): Buffer {
  held.begun = null;
  if (after === null) return mark({ id: held.id, ended: null });
  held.tried = triedMore(held.tried, after, atMs);
  const { failed, delayMs, dead } = after;
  const ended = { failed: failed && tryJson(failed), delay_ms: delayMs, dead, at: new Date(atMs).toISOString() };
  return mark({ id: held.id, ended });
}

const mark = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** What a mark says, after a restart. */
export function foldMark(held: Held, value: { readonly begun?: unknown; readonly at?: unknown; readonly ended?: unknown }): void {
  if (typeof value.begun === "number") {
    held.begun = { attempt: value.begun, atMs: Date.parse(String(value.at)) || held.atMs };
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
  held.tried = triedMore(held.tried, after, Date.parse(String(at)) || held.atMs);
}

/** Whoever made the attempt is gone. The wait before it is waited again: a message that ends processes must not do so without a pause. */
export function countLost(held: Held): void {
  if (held.begun === null) return;
  const after = { failed: LOST, delayMs: held.tried?.delayMs ?? held.delayMs, dead: false };
  held.tried = triedMore(held.tried, after, held.begun.atMs);
  held.begun = null;
}
