/**
 * The memory below the seeds' port with the journal at its side: each attempt that is made from memory is marked there, so that whoever starts
 * after a crash goes on counting where this process stopped (I6).
 */
import { errorText } from "../../message/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Journal } from "../../store/journal.ts";
import type { DLQOperations, DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";
import type { FailedTry } from "../../store/tried-below.ts";
import type { Lines } from "./lines.ts";

export interface JournaledOptions {
  readonly memory: DLQStore & DLQOperations;
  readonly journal: Journal;
  /** Reservation → its entries in the journal. */
  readonly held: ReadonlyMap<string, readonly string[]>;
  readonly clock: Clock;
  readonly lines: Lines;
}

export function journaledMemory({ memory, journal, held, clock, lines }: JournaledOptions): DLQStore & DLQOperations {
  const begun = new Set<string>();

  /** A mark that cannot be written costs a repeat after a crash, and nothing else. */
  async function mark(reservationId: string, write: (id: string) => Promise<unknown>): Promise<void> {
    try {
      for (const id of held.get(reservationId) ?? []) await write(id);
    } catch (error) {
      lines.storeFailed("mark the journal", errorText(error));
    }
  }

  function ended(reservationId: string, reason: string | null, delayMs: number, dead: boolean): Promise<void> {
    begun.delete(reservationId);
    const failed: FailedTry = { outcome: dead ? "reject" : "retry", code: null, error: reason, ms: null };
    return mark(reservationId, (id) => journal.ended(id, { failed, delayMs, dead }));
  }

  return {
    ...memory,
    async claimForReplay(id, leaseMs) {
      const claim = await memory.claimForReplay(id, leaseMs);
      if (claim === null) return null;
      begun.add(id);
      await mark(id, (entry) => journal.begin(entry));
      return claim;
    },
    async releaseClaim(id, token) {
      const released = await memory.releaseClaim(id, token);
      // No attempt was made after all.
      if (released && begun.delete(id)) await mark(id, (entry) => journal.ended(entry, null));
      return released;
    },
    async incrementAttempt(id, token, next) {
      const count = await memory.incrementAttempt(id, token, next);
      const delayMs = next instanceof Date ? Math.max(0, next.getTime() - clock.wallMs()) : next.delayMs;
      if (count !== null) await ended(id, null, delayMs, false);
      return count;
    },
    async terminalDrop(id, token, reason) {
      const dropped = await memory.terminalDrop(id, token, reason);
      if (dropped) await ended(id, reason, 0, true);
      return dropped;
    },
    async delete(id, token) {
      begun.delete(id);
      return memory.delete(id, token);
    },
  };
}
