/**
 * Retention of records that are not messages: a bounded walk over each table in the order in which it grew. What may go is written to the
 * archive and deleted in one transaction, at most a thousand at a time, under the fence; a run that was killed left each batch whole or
 * untouched, and the next one finds what is left. Two at once lock different rows.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import { type Clock, sleep } from "../../platform/clock.ts";
import type { JobTurn, MaintenanceJob, Ran } from "../../platform/job.ts";
import type { Depart } from "../../store/evidence.ts";
import type { Home, Inside } from "../../store/home.ts";
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, chainLock, chainLockSql, chunkSql } from "../../store/shared/archive-sql.ts";
import type { Retention, RetiredTable } from "../retention-classes.ts";

export interface RetireOptions {
  readonly home: Home;
  readonly events: Events;
  readonly holder: string;
  readonly table: RetiredTable;
  readonly retention: Retention;
  /** Whether the text is kept in the archive, or only the fact. */
  readonly archives: boolean;
  /** Leaves the signed record of what went, where there is evidence of it; gives back what may go. */
  readonly depart?: Depart | undefined;
  readonly clock: Clock;
  /** How long to rest after a batch, while the database cannot clean up behind it. */
  readonly restMs: () => number;
}

const EVERY_MS = 3_600_000;
/** How many rows are looked at between two writes. */
const WINDOW = 5_000;
/** One run at most; the next follows at once. */
const BATCHES_MAX = 200;
const WINDOWS_MAX = 1_000;

const RETIRED = { kind: "retired", actor: "retention", reason: "it is older than such records are kept" } as const;

interface Batch {
  readonly rows: number;
  readonly bytes: number;
  /** Where the walk goes on; null: everything further on is younger. */
  readonly next: string[] | null;
}

export function retireRecords(options: RetireOptions): MaintenanceJob {
  const { events, table, retention } = options;
  const keptMs = retention[table.class];
  const lowest = table.key.map(([, , value]) => value);
  // A run that stopped at its bounds goes on there: else what cannot go would hide what stands behind it.
  let from = lowest;
  return {
    name: `retire-${table.name.replaceAll("_", "-")}`,
    about: `archives and deletes ${table.name.replaceAll("_", " ")} past their retention`,
    rehearses: true,
    everyMs: EVERY_MS,
    where: "leader",
    async run(signal, turn) {
      if (keptMs === null) return { counts: {}, notes: ["kept for ever"] };
      if (turn.dryRun) return rehearse(options, keptMs);
      const ran = await retireAll(options, keptMs, turn, signal, from);
      from = ran.next ?? lowest;
      if (ran.deleted === 0) return { counts: { deleted: 0 }, more: ran.more };
      if (options.archives) events.emit({ type: "archived", class: table.name, count: ran.deleted, bytes: ran.bytes });
      events.emit({ type: "retired", class: table.name, count: ran.deleted });
      return { counts: { deleted: ran.deleted, archived: options.archives ? ran.deleted : 0, bytes: ran.bytes }, more: ran.more };
    },
  };
}

async function retireAll(options: RetireOptions, keptMs: number, turn: JobTurn, signal: AbortSignal, from: string[]) {
  const { home, table, clock, restMs } = options;
  const record = createRunRecord(options, keptMs);
  const limit = Math.min(turn.batchSize ?? CHUNK_ROWS_MAX, CHUNK_ROWS_MAX);
  let [deleted, bytes] = [0, 0];
  let next: string[] | null = from;
  try {
    for (let windows = 0, batches = 0; next !== null && windows < WINDOWS_MAX && batches < BATCHES_MAX; windows++) {
      if (signal.aborted) break;
      const after: string[] = next;
      const work = (inside: Inside) => retireBatch(options, inside, keptMs, after, limit, record);
      const done: Batch = await home.transaction(`retire ${table.name}`, work, turn.fence);
      record.committed();
      next = done.next;
      deleted += done.rows;
      bytes += done.bytes;
      if (done.rows === 0) continue;
      batches++;
      if (restMs() > 0) await sleep(clock, restMs(), signal);
    }
  } finally {
    await record.end(signal.aborted ? "stopped" : "done").catch(() => {});
  }
  return { deleted, bytes, next, more: next !== null };
}

const keyOf = ({ key }: RetiredTable): string => `(${key.map(([column]) => `r.${column}`).join(", ")})`;
const orderOf = ({ key }: RetiredTable, way = ""): string => key.map(([column]) => `r.${column}${way}`).join(", ");
const given = ({ key }: RetiredTable, from: number): string =>
  `(${key.map(([, type], i) => `$${from + i}::${type}`).join(", ")})`;
const beforeSql = (keptMs: number): string => `statement_timestamp() - ${Math.round(keptMs)}::bigint * interval '1 ms'`;

/** The last key of the next rows, how many they are, and whether all of them are too young. */
const windowSql = (s: string, table: RetiredTable, keptMs: number): string => `with w as materialized (
    select r.* from ${s}.${table.table} r where ${keyOf(table)} > ${given(table, 1)} order by ${orderOf(table)} limit ${WINDOW})
  select (select min(${table.born(s)}) >= ${beforeSql(keptMs)} from w r)::text, ${table.key.map(([column]) => `r.${column}::text`).join(", ")}
  from w r order by ${orderOf(table, " desc")} limit 1`;

/** Those of a window that may go, locked, as many as one chunk takes: where each stands, and the key of the last. */
const findSql = (s: string, table: RetiredTable, keptMs: number, limit: number): string => {
  const n = table.key.length;
  return `with d as materialized (select r.ctid as tid, ${orderOf(table)}, octet_length(row_to_json(r)::text) as size from ${s}.${table.table} r
    where ${keyOf(table)} > ${given(table, 1)} and ${keyOf(table)} <= ${given(table, 1 + n)} and ${table.ended(s, beforeSql(keptMs))}
    order by ${orderOf(table)} limit ${limit} for update of r skip locked)
  select r.tid::text, ${table.key.map(([column]) => `r.${column}::text`).join(", ")}
  from (select d.*, sum(size) over (order by ${table.key.map(([column]) => column).join(", ")}) - size as before from d) r
  where before < ${CHUNK_BYTES_MAX} order by ${orderOf(table)}`;
};

async function retireBatch(
  { home: { s }, table, archives, depart }: RetireOptions,
  { run }: Inside,
  keptMs: number,
  after: string[],
  limit: number,
  record: RunRecord,
): Promise<Batch> {
  await run("set local lock_timeout = '5s'");
  const [window] = await run(windowSql(s, table, keptMs), [...after]);
  if (!window || window[0] === "true") return { rows: 0, bytes: 0, next: null };
  const end = window.slice(1) as string[];
  const seen = await run(findSql(s, table, keptMs, limit), [...after, ...end]);
  const ids = seen.map(([, id]) => id as string);
  const departs = table.evidence && depart && ids.length > 0 ? new Set(await depart(run, table.evidence, ids, RETIRED)) : null;
  const found = departs ? seen.filter(([, id]) => departs.has(id as string)) : seen;
  if (found.length === 0) return { rows: 0, bytes: 0, next: seen.length < limit ? end : (seen.at(-1)?.slice(1) as string[]) };
  const places = found.map(([place]) => place);
  await run(chainLockSql, [chainLock(s, table.name)]);
  const idOf = table.key.map(([column]) => `r.${column}::text`).join(` || '/' || `);
  const lines = `select row_number() over (order by ${orderOf(table)}) as sort, ${idOf} as id, ${table.born(s)} as at, row_to_json(r)::text as line
    from ${s}.${table.table} r where r.ctid = any ($3::tid[])`;
  const [chunk] = await run(chunkSql(s, lines), [table.name, archives, places]);
  const gone = await run(`delete from ${s}.${table.table} r where r.ctid = any ($1::tid[]) returning 1`, [places]);
  const [, rows, bytes] = (chunk ?? []).map(Number) as [number, number, number];
  if (rows !== found.length || gone.length !== found.length) {
    const said = `retention of ${table.name} archived ${rows} and would delete ${gone.length} of ${found.length}: nothing was done`;
    throw new MakegoodError("invariant_violated", said, { class: table.name });
  }
  const last = seen.at(-1)?.slice(1) as string[];
  const first = found[0]?.slice(1) as string[];
  await record.add(run, gone.length, bytes, first.join("/"), last.join("/"));
  // What is left of the window comes next: it was cut off by the batch or by its bytes.
  return { rows, bytes, next: last };
}

type RunRecord = ReturnType<typeof createRunRecord>;

/** One line for a run that did something, written with each batch. */
function createRunRecord({ home, holder, table, archives }: RetireOptions, keptMs: number) {
  const { s } = home;
  let id: string | null = null;
  let made: string | null = null;
  return {
    async add(run: Inside["run"], rows: number, bytes: number, first: string, last: string): Promise<void> {
      const archived = archives ? rows : 0;
      if (id !== null) {
        const text = `update ${s}.retention_jobs set archived = archived + $2::bigint, deleted = deleted + $3::bigint, bytes = bytes + $4::bigint,
          last_id = $5, updated_at = statement_timestamp() where id = $1::bigint`;
        await run(text, [id, archived, rows, bytes, last]);
        return;
      }
      const [row] = await run(
        `insert into ${s}.retention_jobs (class, holder, kept_ms, archived, deleted, bytes, first_id, last_id)
          values ($1, $2, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7, $8) returning id::text`,
        [table.name, holder, Math.round(keptMs), archived, rows, bytes, first, last],
      );
      made = row?.[0] ?? null;
    },
    /** Only what was committed is there to be added to. */
    committed(): void {
      id ??= made;
    },
    async end(result: "done" | "stopped"): Promise<void> {
      if (id === null) return;
      const text = `update ${s}.retention_jobs set result = $2, updated_at = statement_timestamp() where id = $1::bigint and result = 'running'`;
      await home.write("end a run of retention")(text, [id, result]);
    },
  };
}

/** How much it would be; nothing is locked and nothing changes. */
async function rehearse({ home, table }: RetireOptions, keptMs: number): Promise<Ran> {
  const { s } = home;
  const read = home.read(`look at ${table.name}`);
  let count = 0;
  let after: readonly string[] = table.key.map(([, , lowest]) => lowest);
  for (let windows = 0; windows < WINDOWS_MAX; windows++) {
    const [window] = await read(windowSql(s, table, keptMs), [...after]);
    if (!window || window[0] === "true") return { counts: { would_delete: count } };
    const end = window.slice(1) as string[];
    const text = `select count(*)::text from ${s}.${table.table} r where ${keyOf(table)} > ${given(table, 1)}
      and ${keyOf(table)} <= ${given(table, 1 + table.key.length)} and ${table.ended(s, beforeSql(keptMs))}`;
    const [row] = await read(text, [...after, ...end]);
    count += Number(row?.[0]);
    after = end;
  }
  return { counts: { would_delete: count }, notes: [`at least so many: ${WINDOWS_MAX * WINDOW} records were looked at`] };
}
