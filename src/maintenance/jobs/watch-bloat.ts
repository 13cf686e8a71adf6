/**
 * Watches whether the database can clean up behind us: a transaction, replication slot or prepared transaction that is open for long keeps
 * every row that was deleted since. Then retention rests between its batches, because what it deletes would only make it worse, and a person
 * is told whose transaction it is.
 */
import type { Finding } from "../../observe/finding.ts";
import type { Clock } from "../../platform/clock.ts";
import type { MaintenanceJob } from "../../platform/job.ts";
import type { Home } from "../../store/home.ts";

const EVERY_MS = 60_000;
/** How old the oldest snapshot may be, and which share of a large table may be dead rows. */
const OLD_MS = 15 * 60_000;
const OLD_XIDS = 100_000_000;
const DEAD_SHARE = 0.4;
const DEAD_ROWS_MIN = 100_000;
const REST_MS = 5_000;

export interface BloatWatch {
  readonly job: MaintenanceJob;
  /** How long other jobs should rest after each batch; 0: not at all. */
  restMs(): number;
  findings(): Finding[];
}

/** The oldest thing that keeps dead rows: how old in ms and in transactions, and what it is. */
const HOLDERS = `select coalesce(extract(epoch from clock_timestamp() - x.since) * 1000, 0)::bigint::text, x.xids::text, x.what from (
    select xact_start as since, age(backend_xmin)::bigint as xids, 'a transaction of ' || coalesce(nullif(application_name, ''), usename, '?') || ', process ' || pid as what
      from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid() and backend_type = 'client backend' and datname = current_database()
    union all select null, greatest(age(xmin), age(catalog_xmin))::bigint, 'replication slot ' || slot_name from pg_replication_slots
      where xmin is not null or catalog_xmin is not null
    union all select prepared, age(transaction)::bigint, 'prepared transaction ' || gid from pg_prepared_xacts where database = current_database()) x
  order by 1 desc, x.xids desc limit 1`;

const TABLES = `select relname, n_dead_tup::text, n_live_tup::text from pg_stat_user_tables where schemaname = $1
  and n_dead_tup >= ${DEAD_ROWS_MIN} and n_dead_tup > ${DEAD_SHARE} * (n_dead_tup + n_live_tup) order by n_dead_tup desc limit 5`;

export function watchBloat(home: Home, clock: Clock): BloatWatch {
  const schema = home.s.replaceAll('"', "");
  let reasons: string[] = [];
  let sinceMs: number | null = null;
  return {
    restMs: () => (reasons.length > 0 ? REST_MS : 0),
    findings: () =>
      reasons.map((reason) => ({ what: "database_bloat", topic: null, reason, sinceMs, severity: "degraded" as const })),
    job: {
      name: "watch-bloat",
      about: "looks for what keeps the database from cleaning up, and slows retention down meanwhile",
      rehearses: true,
      everyMs: EVERY_MS,
      where: "each",
      async run() {
        const read = home.read("watch bloat");
        const [holder] = await read(HOLDERS);
        const tables = await read(TABLES, [schema]);
        const [heldMs, heldXids] = [Number(holder?.[0] ?? 0), Number(holder?.[1] ?? 0)];
        const held = heldMs > OLD_MS || heldXids > OLD_XIDS;
        const minutes = Math.round(heldMs / 60_000);
        reasons = [
          ...(held ? [`${holder?.[2]} is open for ${minutes} min: no row that was deleted since can be cleaned up; end it`] : []),
          ...tables.map(
            ([name, dead, live]) => `table ${name} has ${dead} dead rows beside ${live}: see that autovacuum keeps up`,
          ),
        ];
        sinceMs = reasons.length === 0 ? null : (sinceMs ?? clock.wallMs());
        const counts = { oldest_ms: heldMs, oldest_xids: heldXids, bloated_tables: tables.length };
        return { counts, notes: reasons };
      },
    },
  };
}
