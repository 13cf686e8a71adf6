/**
 * What waits in memory and in the journal, as the room that makes attempts sees it (DF-12). An entry that is taken is busy: the way up leaves it
 * alone until its attempt has ended, so a store that comes back in the middle of an attempt gets it afterwards or not at all.
 */
import type { Clock } from "../../platform/clock.ts";
import type { Below, TakenBelow } from "../fallback.ts";
import type { Journal } from "../journal.ts";
import type { MemoryRung } from "./memory-rung.ts";

export interface BelowOptions {
  readonly memory: MemoryRung;
  readonly journal?: Journal | undefined;
  /** Ids that are being attempted or moved. */
  readonly busy: Set<string>;
  readonly storeAway: () => boolean;
  readonly clock: Clock;
  /** An attempt has ended: what is left may be moved up. */
  readonly ended: () => void;
}

export function createBelow(options: BelowOptions): Below & { came(): void } {
  const { memory, journal, busy } = options;
  const watchers = new Set<() => void>();

  /** Whatever happens to the mark, the entry is free again. */
  async function end(id: string, mark: () => Promise<void> | void): Promise<void> {
    try {
      await mark();
    } finally {
      busy.delete(id);
      options.ended();
    }
  }

  function fromMemory(id: string): TakenBelow | null {
    const entry = memory.get(id);
    if (!entry) return null;
    return {
      message: entry.message,
      attempt: (entry.tried?.failed.length ?? 0) + 1,
      delivered: () => end(id, () => memory.done(id)),
      failed: (after) => end(id, () => memory.ended(id, after, options.clock.wallMs())),
      release: () => end(id, () => {}),
    };
  }

  async function fromJournal(id: string): Promise<TakenBelow | null> {
    const begun = await journal?.begin(id);
    if (!begun || !journal) return null;
    return {
      message: begun.entry.message,
      attempt: begun.attempt,
      // Removed only now: until it was delivered, a crash leaves it to whoever comes next, with the same key.
      delivered: () => end(id, () => journal.done([id])),
      failed: (after) => end(id, () => journal.ended(id, after)),
      release: () => end(id, () => journal.ended(id, null)),
    };
  }

  return {
    get storeAway() {
      return options.storeAway();
    },
    watch(listener) {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    came() {
      for (const watcher of watchers) watcher();
    },
    *list() {
      for (const one of memory.list()) if (!busy.has(one.id)) yield one;
      for (const one of journal?.list() ?? []) if (!busy.has(one.id)) yield one;
    },
    async take(id) {
      if (busy.has(id)) return null;
      busy.add(id);
      let taken: TakenBelow | null = null;
      try {
        taken = fromMemory(id) ?? (await fromJournal(id));
        return taken;
      } finally {
        if (!taken) busy.delete(id);
      }
    },
  };
}
