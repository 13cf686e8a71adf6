/**
 * The log lines of the settlement client: each begins with `[billing-finalize]` and carries its facts as fields.
 * What is kept in memory only is written out whole, so that a person can settle it from the log.
 */
import { errorText } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Log, LogFields } from "../../observe/log.ts";
import { tell } from "../../platform/tell.ts";
import { entryJson } from "../../store/ladder/format/handed-down.ts";
import type { NewDLQEntry } from "../../store/redis/dlq-port/dlq-store.ts";
import { messageOf } from "../../store/redis/dlq-port/entry.ts";

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

export function createLines(log: Log) {
  /** Every line begins alike. A log that throws changes no result, and ends no process. */
  const say = (level: keyof Log, text: string) => (fields: LogFields) => tell(() => log[level](`${PREFIX} ${text}`, fields));
  const failed = say("error", "DLQ STORE FAILURE");
  const refused = say("error", "billing refuses our credentials or configuration");
  return {
    ready: say("info", "DLQ ready"),
    notReady: say("warn", "DLQ not durable: not ready for billing"),
    replayed: say("info", "DLQ replay"),
    degraded: say("error", "DLQ store degraded"),
    promoted: say("info", "DLQ store back: entries moved out of memory"),
    conflict: say("error", "DLQ conflict: this reservation is kept with another cost or tenant; the first stands"),
    journalTaken: say("info", "DLQ journal"),
    journalNote: say("warn", "DLQ journal"),
    unreadable: say("error", "DLQ payload unreadable: find out what was owed"),
    unverified: say("warn", "409 without amount and state: taken as settled, unverified"),
    /** An obligation waits in a store. `durable` false: the line is an ERROR with the whole entry. */
    kept(entry: KeptEntry, store: string, durable: boolean): void {
      const { reservation_id, reason, attempt_count: attempt } = entry;
      const fields = { reservation_id, reason, attempt, store };
      const unsafe = "DLQ: entry created, not durable; settle it from this line if it is lost";
      if (durable) say("warn", "DLQ: entry created")(fields);
      else say("error", unsafe)({ ...fields, ...whole(entry) });
    },
    /** It will not be tried again by itself. */
    terminal(entry: KeptEntry, store: string): void {
      const { reservation_id, tenant_id, actual_cost_micro, attempt_count: attempts, created_at, reason } = entry;
      const fields = { reservation_id, tenant_id, actual_cost_micro, attempts, created_at, reason, store };
      say("error", "DLQ terminal drop: a person has to decide")(fields);
    },
    storeFailed: (during: string, error: unknown, entry?: KeptEntry) =>
      failed({ during, error: errorText(error), ...(entry === undefined ? {} : whole(entry)) }),
    closed(entry: KeptEntry, resolution: string, store: string): void {
      const text = "DLQ closed: a person has ended this reservation; this request is kept nowhere";
      say("error", text)({ resolution, store, ...whole(entry) });
    },
    /** Credentials or configuration look wrong; a person should look. */
    alert(reservation_id: string, outcome: Outcome): void {
      if (outcome.kind === "retry" && outcome.alert) refused({ reservation_id, code: outcome.code, error: outcome.error });
    },
  };
}

/** The entry in the seeds' words, and as `makegood journal import` reads it back. */
function whole({ id, dead, message: given, ...entry }: KeptEntry): object {
  const { created_at: _, ...request } = entry;
  if (id === undefined) return { entry };
  const message = given ?? messageOf(request, { id, key: entry.reservation_id, terminal: dead ? entry.reason : undefined });
  return { entry, makegood_entry: JSON.parse(entryJson({ message, atMs: Date.parse(entry.created_at) })) };
}
