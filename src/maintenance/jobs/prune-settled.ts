/**
 * Retention: lets the store delete what is settled and past its time, in bounded steps, so that no step holds locks or the
 * disk for long; what is to be archived is, in the same write. Never anything else (I2): the store alone decides what is settled and since when.
 */
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob, Ran } from "../../platform/job.ts";
import type { PruneArchive, SettledClass, Store } from "../../store/store.ts";

export interface PruneOptions {
  readonly store: Store;
  readonly events: Events;
  readonly keptMs: number;
  /** Of dead letters that were resolved or discarded, where that is longer. */
  readonly deadKeptMs?: number | undefined;
  /** Which are archived, where the store has an archive. */
  readonly archives?: readonly SettledClass[] | undefined;
}

const BATCH = 10_000;
const STEPS_MAX = 100;
const EVERY_MS = 60_000;

export function pruneSettled({ store, events, keptMs, deadKeptMs, archives = [] }: PruneOptions): MaintenanceJob {
  return {
    name: "prune-settled",
    about: "deletes delivered messages, and dead letters that ended, past their retention",
    rehearses: true,
    // A short retention needs a short interval.
    everyMs: Math.min(EVERY_MS, Math.max(1_000, keptMs / 2)),
    where: "leader",
    async run(signal, turn): Promise<Ran> {
      if (turn.dryRun) return { counts: { would_delete: await store.prune({ keptMs, deadKeptMs, limit: BATCH, dryRun: true }) } };
      const total = { deleted: 0, archived: 0, bytes: 0 };
      const told: PruneArchive["told"] = ({ class: name, rows, bytes }) => {
        total.archived += rows;
        total.bytes += bytes;
        events.emit({ type: "archived", class: name, count: rows, bytes });
      };
      const archive = { classes: archives, told };
      const limit = turn.batchSize ?? BATCH;
      const went = (name: SettledClass, count: number) => events.emit({ type: "retired", class: name, count });
      for (let step = 0; step < STEPS_MAX && !signal.aborted; step++) {
        const count = await store.prune({ keptMs, deadKeptMs, limit, under: turn.fence, archive, went });
        total.deleted += count;
        if (count > 0) events.emit({ type: "pruned", count });
        if (count < limit) return { counts: total };
      }
      return { counts: total, more: !signal.aborted };
    },
  };
}
