/**
 * The last rung: entries in memory, bounded, each of them written to the ERROR log in whole the moment it comes here, because nothing
 * else will have it if this process ends.
 */
import type { WaitingBelow } from "../fallback.ts";
import type { HandedDown } from "../handed-down.ts";
import { type AfterTry, triedMore } from "../tried-below.ts";

export interface MemoryRung {
  /** False: it is full. */
  keep(entry: HandedDown): boolean;
  /** Oldest first. */
  list(): Iterable<WaitingBelow>;
  get(id: string): HandedDown | undefined;
  /** An attempt at it has ended. */
  ended(id: string, after: AfterTry, atMs: number): void;
  done(id: string): void;
  readonly size: number;
  readonly oldestAtMs: number | null;
}

const ENTRIES_MAX = 10_000;
const BYTES_MAX = 64 * 1_048_576;

export function createMemoryRung(): MemoryRung {
  const entries = new Map<string, HandedDown>();
  let bytes = 0;
  const sizeOf = ({ message }: HandedDown): number => 2 * message.payload.length + 512;
  return {
    keep(entry) {
      if (entries.has(entry.message.id)) return true;
      if (entries.size >= ENTRIES_MAX || bytes + sizeOf(entry) > BYTES_MAX) return false;
      entries.set(entry.message.id, entry);
      bytes += sizeOf(entry);
      return true;
    },
    *list() {
      for (const entry of entries.values()) yield waitingOf(entry);
    },
    get: (id) => entries.get(id),
    ended(id, after, atMs) {
      const entry = entries.get(id);
      if (entry) entries.set(id, { ...entry, tried: triedMore(entry.tried, after, atMs) });
    },
    done(id) {
      const entry = entries.get(id);
      if (!entry) return;
      bytes -= sizeOf(entry);
      entries.delete(id);
    },
    get size() {
      return entries.size;
    },
    get oldestAtMs() {
      for (const { atMs } of entries.values()) return atMs;
      return null;
    },
  };
}

function waitingOf({ message, atMs, tried }: HandedDown): WaitingBelow {
  const { id, topic, orderingKey, delayMs, directTry } = message;
  const dueAtMs = tried ? tried.atMs + tried.delayMs : atMs + delayMs;
  const retried = tried !== undefined || directTry !== undefined;
  return {
    id,
    topic,
    orderingKey,
    atMs,
    retried,
    dueAtMs,
    dead: directTry?.rejected === true || (tried?.dead ?? false),
  };
}
