/**
 * The log lines of the settlement client: each begins with `[billing-finalize]` and carries its facts as fields (FIN-64, CON-10).
 * Whatever is kept in nothing but memory is written out whole, so that a person can settle it from the log (INV-2d).
 */
import type { Outcome } from "../../message/outcome.ts";
import type { Log } from "../../observe/log.ts";
import type { JournalNote } from "../../store/journal.ts";
import type { ReplayCounts } from "./outcome.ts";
import type { FinalizeRequest } from "./request.ts";

/** What is known of an obligation when a line is written about it. */
export interface KeptEntry extends FinalizeRequest {
  readonly reason: string;
  readonly response_status: number | null;
  readonly attempt_count: number;
  readonly created_at: string;
}

export interface Lines {
  /** An obligation waits in a store. `durable` false: the line is an ERROR with the whole entry. */
  kept(entry: KeptEntry, where: { readonly store: string; readonly durable: boolean }): void;
  /** It will not be tried again by itself. */
  terminal(entry: KeptEntry, attempts: number, store: string): void;
  replayed(counts: ReplayCounts, remaining: number | null, store: string): void;
  degraded(from: string, to: string, reason: string): void;
  promoted(count: number, store: string): void;
  /** The same reservation with another cost or tenant: the first stands. */
  conflict(entry: KeptEntry, store: string): void;
  storeFailed(during: string, error: string, entry?: KeptEntry): void;
  /** Something about the journal's files that a person should know. */
  journalNote(note: JournalNote): void;
  claimLost(reservationId: string): void;
  /** Credentials or configuration look wrong; a person should look. */
  alert(reservationId: string, outcome: Outcome): void;
  unverified(request: FinalizeRequest): void;
  started(store: string, durable: boolean, persistence: string, reason: string): void;
}

const PREFIX = "[billing-finalize]";

export function createLines(log: Log): Lines {
  const said = (text: string): string => `${PREFIX} ${text}`;
  return {
    kept(entry, { store, durable }) {
      const { reservation_id, reason, attempt_count: attempt } = entry;
      const fields = { reservation_id, reason, attempt, store };
      if (durable) log.warn(said("DLQ: entry created"), fields);
      else log.error(said("DLQ: entry created, not durable; settle it from this line if it is lost"), { ...fields, entry });
    },
    terminal(entry, attempts, store) {
      const { reservation_id, tenant_id, actual_cost_micro, created_at, reason } = entry;
      const fields = { reservation_id, tenant_id, actual_cost_micro, attempts, created_at, reason, store };
      log.error(said("DLQ terminal drop: a person has to decide"), fields);
    },
    replayed: (counts, remaining, store) => log.info(said("DLQ replay"), { ...counts, remaining, store }),
    degraded: (from, to, reason) => log.error(said("DLQ store degraded"), { from, to, reason }),
    promoted: (count, store) => log.info(said("DLQ store back: entries moved out of memory"), { count, store }),
    conflict: (entry, store) =>
      log.error(said("DLQ conflict: this reservation is kept with another cost or tenant; the first stands"), { entry, store }),
    storeFailed: (during, error, entry) =>
      log.error(said("DLQ STORE FAILURE"), { during, error, ...(entry === undefined ? {} : { entry }) }),
    journalNote: (note) => log[note.what === "taken_over" ? "info" : "warn"](said("DLQ journal"), { ...note }),
    claimLost: (reservation_id) => log.warn(said("DLQ claim lost: another instance has it now"), { reservation_id }),
    alert(reservation_id, outcome) {
      if (outcome.kind !== "retry" || outcome.alert !== true) return;
      const { code, error } = outcome;
      log.error(said("billing refuses our credentials or configuration"), { reservation_id, code, error });
    },
    unverified: ({ reservation_id }) =>
      log.warn(said("409 without amount and state: taken as settled, unverified"), { reservation_id }),
    started: (store, durable, persistence, reason) =>
      log[durable ? "info" : "warn"](said(durable ? "DLQ ready" : "DLQ not durable: not ready for billing"), {
        store,
        durable,
        persistence,
        reason,
      }),
  };
}
