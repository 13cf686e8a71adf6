/**
 * The last rung: entries in memory, bounded, each of them written to the ERROR log in whole the moment it comes here, because nothing
 * else will have it if this process ends.
 */
import type { HandedDown } from "../handed-down.ts";

export interface MemoryRung {
  /** False: it is full. */
  keep(entry: HandedDown): boolean;
  first(limit: number, skip: ReadonlySet<string>): HandedDown[];
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
    first(limit, skip) {
      const found: HandedDown[] = [];
      for (const entry of entries.values()) {
        if (found.length >= limit) break;
        if (!skip.has(entry.message.id)) found.push(entry);
      }
      return found;
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
