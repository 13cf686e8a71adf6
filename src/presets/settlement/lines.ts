/**
 * The log lines of the settlement client: each begins with `[billing-finalize]` and carries its facts as fields.
 * What is kept in memory only is written out whole, so that a person can settle it from the log.
 */
import type { NewMessage } from "../../message/message.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Log, LogFields } from "../../observe/log.ts";
import { tell } from "../../platform/tell.ts";
import { entryJson } from "../../store/ladder/format/handed-down.ts";
import type { NewDLQEntry, Quarantined } from "../../store/redis/dlq-port/dlq-store.ts";
import { messageOf } from "../../store/redis/dlq-port/entry.ts";

import type { FinalizeRequest, ReplayCounts } from "./request.ts";

/** What is known of an obligation when a line is written about it. */
export interface KeptEntry extends NewDLQEntry {
  readonly created_at: string;
  /** The message that it is, or would be. */
  readonly id?: string | undefined;
  /** It is a dead letter. */
  readonly dead?: boolean | undefined;
  /** As it was kept, where that is not what the fields say: an invalid request, or one that contradicts another. */
  readonly message?: NewMessage | undefined;
}

export type Lines = ReturnType<typeof createLines>;

const PREFIX = "[billing-finalize]";

export function createLines(given: Log) {
  const log = ours(given);
  return {
    /** An obligation waits in a store. `durable` false: the line is an ERROR with the whole entry. */
    kept(entry: KeptEntry, store: string, durable: boolean): void {
      const { reservation_id, reason, attempt_count: attempt } = entry;
      const fields = { reservation_id, reason, attempt, store };
      const unsafe = "DLQ: entry created, not durable; settle it from this line if it is lost";
      if (durable) log.warn("DLQ: entry created", fields);
      else log.error(unsafe, { ...fields, ...whole(entry) });
    },
    /** It will not be tried again by itself. */
    terminal(entry: KeptEntry, attempts: number, store: string): void {
      const { reservation_id, tenant_id, actual_cost_micro, created_at, reason } = entry;
      const fields = { reservation_id, tenant_id, actual_cost_micro, attempts, created_at, reason, store };
      log.error("DLQ terminal drop: a person has to decide", fields);
    },
    replayed: (counts: ReplayCounts, remaining: number | null, store: string) =>
      log.info("DLQ replay", { ...counts, remaining, store }),
    degraded: (from: string, to: string, reason: string) => log.error("DLQ store degraded", { from, to, reason }),
    promoted: (count: number, store: string) => log.info("DLQ store back: entries moved out of memory", { count, store }),
    conflict: (entry: KeptEntry, store: string) =>
      log.error("DLQ conflict: this reservation is kept with another cost or tenant; the first stands", { entry, store }),
    storeFailed: (during: string, error: string, entry?: KeptEntry) =>
      log.error("DLQ STORE FAILURE", { during, error, ...(entry === undefined ? {} : whole(entry)) }),
    journalNote: (note: Readonly<Record<string, unknown>>) =>
      log[note.what === "taken_over" ? "info" : "warn"]("DLQ journal", note),
    closed: (entry: KeptEntry, resolution: string, store: string) =>
      log.error("DLQ closed: a person has ended this reservation; this request is kept nowhere", {
        resolution,
        store,
        ...whole(entry),
      }),
    unreadable: ({ kind, reservation_id, at, fields }: Quarantined) =>
      log.error("DLQ payload unreadable: find out what was owed", { kind, reservation_id, at, left: Object.keys(fields) }),
    /** Credentials or configuration look wrong; a person should look. */
    alert(reservation_id: string, outcome: Outcome): void {
      if (outcome.kind !== "retry" || outcome.alert !== true) return;
      const { code, error } = outcome;
      log.error("billing refuses our credentials or configuration", { reservation_id, code, error });
    },
    unverified: ({ reservation_id }: FinalizeRequest) =>
      log.warn("409 without amount and state: taken as settled, unverified", { reservation_id }),
    started: (store: string, durable: boolean, persistence: string, reason: string) =>
      durable
        ? log.info("DLQ ready", { store, durable, persistence, reason })
        : log.warn("DLQ not durable: not ready for billing", { store, durable, persistence, reason }),
  };
}

/** The entry in the seeds' words, and as `makegood journal import` reads it back. */
function whole({ id, dead, message: given, ...entry }: KeptEntry): object {
  const { created_at: _, ...request } = entry;
  if (id === undefined) return { entry };
  const message = given ?? messageOf(request, { id, key: entry.reservation_id, terminal: dead ? entry.reason : undefined });
  return { entry, makegood_entry: JSON.parse(entryJson({ message, atMs: Date.parse(entry.created_at) })) };
}

/** Every line begins alike. A log that throws changes no result, and ends no process. */
function ours(log: Log): Log {
  const call = (level: keyof Log) => (text: string, fields?: LogFields) => tell(() => log[level](`${PREFIX} ${text}`, fields));
  return { debug: call("debug"), info: call("info"), warn: call("warn"), error: call("error") };
}
