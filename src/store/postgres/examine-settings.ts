/**
 * How a PostgreSQL is set and used, as far as messages depend on it: what it loses, what it can bring back, how many it lets in, and what
 * holds it up. It only reads.
 */
import { type Examined, examined } from "../shared/examined.ts";
import type { Connection, Row } from "./connection.ts";
import { OPEN_TRANSACTIONS } from "./open-transactions.ts";

const MAJORS = [14, 15, 16, 17, 18];
/** At most, of one process: ten of a pool and one that listens. */
const OF_A_PROCESS = 11;
const PROCESSES_MIN = 2;
const GIB = 1_073_741_824;

const one = async (connection: Connection, text: string, values: unknown[] = []): Promise<Row> =>
  (await connection.rows("examine the server", text, values, { reads: true }))[0] ?? [];

export async function examineSettings(connection: Connection): Promise<Examined[]> {
  return [
    ...(await durability(connection)),
    await connections(connection),
    ...(await upkeep(connection)),
    ...(await copies(connection)),
    await heldBack(connection),
  ];
}

async function durability(connection: Connection): Promise<Examined[]> {
  const [version, number, fsync, commit, pages, standby, readOnly] = await one(
    connection,
    `select current_setting('server_version'), current_setting('server_version_num'), current_setting('fsync'),
       current_setting('synchronous_commit'), current_setting('full_page_writes'), pg_is_in_recovery()::text,
       current_setting('default_transaction_read_only')`,
  );
  const known = MAJORS.includes(Math.floor(Number(number) / 10_000));
  const setting = (name: string, value: string | null | undefined, good: boolean): Examined =>
    examined(name, good, `${value}${good ? "" : ": what was accepted would not survive a power loss"}`);
  const writable = standby !== "true" && readOnly !== "on";
  return [
    examined("version", known, `${version}${known ? "" : ": 14 to 18 are supported"}`),
    setting("fsync", fsync, fsync === "on"),
    setting("synchronous_commit", commit, commit !== "off"),
    setting("full_page_writes", pages, pages === "on"),
    examined("writable", writable, writable ? "yes" : "no: a standby or read-only, connect to the primary"),
  ];
}

/** A server that is nearly full refuses the next process of ours, and other programs' connections. */
async function connections(connection: Connection): Promise<Examined> {
  const text = `select count(*)::text, (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)::text
    from pg_stat_activity where backend_type = 'client backend'`;
  const [used = 0, most = 0] = (await one(connection, text)).map(Number);
  const remedy = `raise max_connections, or put a pooler in front; a process uses at most ${OF_A_PROCESS}`;
  if (used > most * 0.8) return examined("connections", false, `${used} of ${most} in use: ${remedy}`, "warn");
  const fits = most >= PROCESSES_MIN * OF_A_PROCESS;
  return examined(
    "connections",
    fits,
    `${used} of ${most} in use${fits ? "" : `, too few for two processes: ${remedy}`}`,
    "warn",
  );
}

async function upkeep(connection: Connection): Promise<Examined[]> {
  const text = `select current_setting('autovacuum'), current_setting('track_counts'),
    (select setting from pg_settings where name = 'idle_in_transaction_session_timeout')`;
  const [vacuum, counts, idleMs] = await one(connection, text);
  const cleans = vacuum === "on" && counts === "on";
  const off = "a forgotten transaction holds up vacuum until its connection ends; set 60s, say";
  return [
    examined(
      "autovacuum",
      cleans,
      cleans ? "on" : "off: the tables only grow, and claims become slow; turn it and track_counts on",
      "warn",
    ),
    examined("idle transactions", idleMs !== "0", idleMs === "0" ? `never ended: ${off}` : `ended after ${idleMs} ms`, "warn"),
  ];
}

/** What could bring it back: the log, its archive, those who follow. */
async function copies(connection: Connection): Promise<Examined[]> {
  const [level, archives, failing, wanted, following, inStep] = await one(
    connection,
    `select current_setting('wal_level'), current_setting('archive_mode'),
       (select coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)::text from pg_stat_archiver),
       current_setting('synchronous_standby_names'), (select count(*)::text from pg_stat_replication),
       (select count(*)::text from pg_stat_replication where sync_state in ('sync', 'quorum'))`,
  );
  const minimal = "minimal: neither a backup while it runs nor a standby is possible; set wal_level to replica";
  const archive = archives === "off" ? `${level}, not archived` : `${level}, archived`;
  const broken = `${archive}, and the last attempt to archive failed: the log grows until it succeeds; see archive_command`;
  const log =
    level === "minimal"
      ? examined("wal", false, minimal, "warn")
      : examined("wal", failing !== "true", failing === "true" ? broken : archive, "warn");
  const stuck = `synchronous_standby_names is ${wanted} and no such standby follows: every write waits for one`;
  const waits = wanted !== "" && inStep === "0";
  return [
    log,
    examined("standbys", !waits, waits ? stuck : `${following} follow${wanted === "" ? "" : `, ${inStep} of them in step`}`),
    await slots(connection),
  ];
}

async function slots(connection: Connection): Promise<Examined> {
  // A standby asked for its own position would refuse the question.
  const text = `select slot_name, coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, restart_lsn), 0)::text
    from pg_replication_slots where not active order by 2 desc`;
  const found = await connection.rows("examine the server", text, [], { reads: true });
  const named = found.slice(0, 5).map(([name, bytes]) => `${name} (${(Number(bytes) / GIB).toFixed(1)} GiB)`);
  const detail = `nobody reads ${named.join(", ")}: the log is kept for them until the disk is full; drop them`;
  return examined("replication slots", found.length === 0, found.length === 0 ? "none is left behind" : detail, "warn");
}

/** As long as anything of ours may take; who is open longer keeps every row that died since. */
const OPEN_MS_MAX = 300_000;

export async function heldBack(connection: Connection, olderThanMs = OPEN_MS_MAX): Promise<Examined> {
  const text = `select what, extract(epoch from clock_timestamp() - since)::int::text from ${OPEN_TRANSACTIONS} as open
    where since < clock_timestamp() - $1::bigint * interval '1 ms' order by since limit 5`;
  const found = await connection.rows("examine the server", text, [olderThanMs], { reads: true });
  const words = found.map(([what, seconds]) => `${what} is open for ${seconds} s`).join("; ");
  const good = `none is open longer than ${olderThanMs / 1_000} s`;
  return examined(
    "transactions",
    found.length === 0,
    found.length === 0 ? good : `${words}: vacuum waits for it; end it`,
    "warn",
  );
}
