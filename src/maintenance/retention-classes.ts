/**
 * What is kept how long, by class, and which of its records may go: what is settled and past its time, and never what is unresolved or what
 * something unresolved still needs. Each class names its table and the order in which its records were made.
 */
import type { RetiredName } from "../message/retained.ts";
import type { EvidenceName } from "../store/evidence.ts";

const DAY_MS = 86_400_000;

/** Milliseconds after which records of a class go; null: never. */
export type Retention = Readonly<Record<RetainedClass, number | null>>;
export type RetainedClass = keyof typeof RETENTION_DAYS;

/** REC-24, REC-56, CON-34. Delivered messages and audit records have settings of their own: 7 days and seven years. */
export const RETENTION_DAYS = {
  /** Dead letters that were resolved or discarded. */
  dead: 90,
  /** Failures of groups: the ledger, its inputs. A group's newest one stays. */
  occurrences: 90,
  redrive_items: 90,
  /** Who did what to a message, a group, a candidate or a redrive, and why. */
  provenance: 90,
  /** Which message was made from which. */
  replays: 30,
  /** Turns and their quota, by whole periods. */
  usage_turns: 400,
  /** Locks that ran out. */
  locks: 1,
} as const;

export const RETENTION: Retention = Object.fromEntries(
  Object.entries(RETENTION_DAYS).map(([name, days]) => [name, days * DAY_MS]),
) as Retention;

/** What may go to the archive with its text. */
export const ARCHIVED_CLASSES = [
  "delivered",
  "dead",
  "occurrences",
  "redrive_items",
  "provenance",
  "replays",
  "usage_turns",
  "audit",
] as const satisfies readonly RetiredName[];
export type ArchivedClass = (typeof ARCHIVED_CLASSES)[number];

export interface RetiredTable {
  readonly class: RetainedClass;
  /** As the archive and `retention_jobs` name it: provenance is in two tables. */
  readonly name: RetiredName;
  readonly table: string;
  /** What evidence calls it, where its rows are sealed. */
  readonly evidence?: EvidenceName;
  /** In the order in which they were made, of a row `r`; with a value that is below all. */
  readonly key: readonly (readonly [column: string, type: string, lowest: string])[];
  /** When it was made, of `r`: the walk ends where everything is younger. */
  readonly born: (s: string) => string;
  /** Whether `r` may go; `before` is the moment up to which records are past their time. */
  readonly ended: (s: string, before: string) => string;
}

const NIL = "00000000-0000-0000-0000-000000000000";

const standing = (s: string, id: string): string => `(exists (select from ${s}.message m where m.id = ${id})
  or exists (select from ${s}.message_kept m where m.id = ${id}) or exists (select from ${s}.dead_letter d where d.id = ${id}))`;
/** The time inside an id of version 7. */
const timeIn = (id: string): string =>
  `to_timestamp(('x' || lpad(left(replace(${id}::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)`;

const asUuid = (text: string): string => `(case when ${text} ~ '^[0-9a-f-]{36}$' then ${text}::uuid end)`;

export const RETIRED_TABLES: readonly RetiredTable[] = [
  {
    class: "occurrences",
    name: "occurrences",
    table: "recovery_occurrence",
    key: [["id", "bigint", "0"]],
    born: () => "r.at",
    // Of an open report, one that is being sent, and one whose message is still here nothing goes; the newest one shows what a group is about.
    ended: (s, before) => `r.at < ${before}
      and (r.message_id is null or not ${standing(s, "r.message_id")}) and (r.sent_id is null or not ${standing(s, "r.sent_id")})
      and not exists (select from ${s}.recovery_group g where g.id = r.group_id and r.message_id is null and r.sent_id is null and r.id > g.reports_closed)
      and not exists (select from ${s}.recovery_candidate c where c.group_id = r.group_id and c.execution_status in ('executing', 'unknown'))
      and exists (select from ${s}.recovery_occurrence n where n.group_id = r.group_id and n.id > r.id)`,
  },
  {
    class: "redrive_items",
    name: "redrive_items",
    table: "redrive_item",
    key: [
      ["redrive_id", "uuid", NIL],
      ["n", "int", "-1"],
    ],
    born: () => timeIn("r.redrive_id"),
    // A stopped one may go on. What a copy carries is asked for until the original is gone.
    ended: (s, before) => `r.state >= 2 and coalesce(r.ended_at, r.sent_at) < ${before}
      and exists (select from ${s}.redrive v where v.id = r.redrive_id and v.status in ('done', 'cancelled') and v.waiting = 0 and v.sent = 0
        and v.ended_at < ${before})
      and (r.carrier_id is null or not (${standing(s, "r.message_id")} or ${standing(s, "r.carrier_id")}))`,
  },
  {
    class: "provenance",
    name: "provenance",
    table: "provenance",
    evidence: "provenance",
    key: [["id", "bigint", "0"]],
    born: () => "r.at",
    ended: (s, before) => `r.at < ${before} and not ${standing(s, "r.message_id")}`,
  },
  {
    class: "provenance",
    name: "recovery_provenance",
    table: "recovery_provenance",
    evidence: "recovery_provenance",
    key: [["id", "bigint", "0"]],
    born: () => "r.at",
    ended: (s, before) => `r.at < ${before}
      and not exists (select from ${s}.recovery_group g where g.id = r.group_id and (g.open > 0 or g.reports > 0))
      and not exists (select from ${s}.recovery_open o where o.group_id = r.group_id)
      and not exists (select from ${s}.recovery_candidate c where c.id = r.candidate_id and c.execution_status in ('executing', 'unknown'))
      and not exists (select from ${s}.redrive v where v.id = ${asUuid("r.redrive_id")} and v.status not in ('done', 'cancelled'))`,
  },
  {
    class: "replays",
    name: "replays",
    table: "message_origin",
    key: [["message_id", "uuid", NIL]],
    born: () => timeIn("r.message_id"),
    ended: (s, before) => `${timeIn("r.message_id")} < ${before}
      and not ${standing(s, "r.message_id")} and not ${standing(s, "r.replay_of")}`,
  },
];
