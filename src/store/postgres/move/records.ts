/**
 * The seam for moving records on PostgreSQL. A row is read as the JSON that the server makes of it in one fixed form, and put under its own id
 * if that is free; what the database makes by itself from a row (counts, notes for sealing) it makes here again.
 */
import type { MovableRecords, RecordTable, Standing } from "../../movable-records.ts";
import { ensureMonths, monthOf } from "../audit/months.ts";
import type { Queryable } from "../connection.ts";
import type { Db } from "../db.ts";
import { migrateUp } from "../migrate.ts";
import { runOf } from "../run-of.ts";
import { USAGE_SET } from "../usage/migrations/list.ts";
import { LINK_COLUMNS, LINKS, linksOpen, TABLES, type TableSpec } from "./tables.ts";

const PAGE_ROWS = 200;
const PAGE_BYTES = 4_194_304;
const PATIENT = { patienceMs: 120_000 };
/** The same bytes of the same row, however a server is set up. */
const ONE_FORM = "set local timezone = 'UTC'; set local bytea_output = 'hex'; set local extra_float_digits = 1";

/** Columns with their types. */
type Columns = ReadonlyMap<string, string>;

const specOf = ({ name }: Pick<RecordTable, "name">): TableSpec | undefined => TABLES.find((one) => one.name === name);
const tableOf = ({ table, name }: TableSpec): string => table ?? name;
const of = (alias: string, columns: readonly string[]): string => columns.map((one) => `${alias}.${one}`).join(", ");
/** Of no columns at all: always the same. */
const sameIn = (columns: readonly string[]): string =>
  columns.length === 0 ? "true" : `(${of("t", columns)}) is not distinct from (${of("r", columns)})`;
const records = (s: string, spec: TableSpec): string => `json_populate_recordset(null::${s}.${tableOf(spec)}, $1::text::json)`;
const jsonOf = (rows: readonly string[]): string => `[${rows.join(",")}]`;

const pageSql = (s: string, spec: TableSpec, columns: readonly string[], types: Columns, more: string) => {
  const keys = of("t", spec.key);
  const texts = spec.key.map((one, i) => `t.${one}::text as k${i}`).join(", ");
  const after = spec.key.map((one, i) => `$${i + 1}::text::${types.get(one)}`).join(", ");
  return `select j, ${spec.key.map((_, i) => `k${i}`).join(", ")} from (
    select q.*, sum(octet_length(j)) over (order by n) - octet_length(j) as before from (
      select row_to_json(r)::text as j, ${texts}, row_number() over (order by ${keys}) as n
      from ${spec.from?.(s) ?? `${s}.${tableOf(spec)}`} t cross join lateral (select ${of("t", columns)}) r
      where ${spec.where ?? "true"}${more} and ($1::text is null or (${keys}) > (${after})) order by ${keys} limit ${PAGE_ROWS}) q) w
    where before <= ${PAGE_BYTES} order by n`;
};

const putSql = (s: string, spec: TableSpec, columns: readonly string[]) =>
  `insert into ${s}.${tableOf(spec)} as t (${columns.join(", ")}) overriding system value
    select ${of("r", columns)} from ${records(s, spec)} r
    on conflict ${spec.merged ? `(${spec.key.join(", ")}) do update set ${spec.merged}` : "do nothing"} returning 1`;

/** A dead letter that ingest has counted meanwhile keeps what it has. */
const linkSql = (s: string, spec: TableSpec) => `update ${s}.dead_letter t
  set group_id = r.group_id, ingested_attempts = r.ingested_attempts, grouped_xid = pg_current_xact_id()
  from ${records(s, spec)} r where t.id = r.id and t.group_id is null and t.ingested_attempts is null returning 1`;

/** Rows that have a leaf, or get one in their turn as old ones, are not to be sealed as new ones. */
const sealedSql = (s: string, spec: TableSpec, id: string) => `delete from ${s}.evidence_pending p using ${records(s, spec)} r
  where p.source = ${spec.source} and p.id = r.${id}
    and (exists (select from ${s}.evidence_leaf l where l.source = p.source and l.id = p.id)
      or exists (select from ${s}.evidence_source o where o.source = p.source and p.id <= o.until_id))`;

const compareSql = (s: string, spec: TableSpec, columns: readonly string[]) =>
  `select (t.${spec.key[0]} is null)::text, (${sameIn(columns)})::text, (${sameIn(spec.fixed ?? columns)})::text,
    case when t.${spec.key[0]} is not null then row_to_json(x)::text end
  from ${records(s, spec)} r left join ${s}.${tableOf(spec)} t on ${spec.key.map((one) => `t.${one} = r.${one}`).join(" and ")}
  cross join lateral (select ${of("t", columns)}) x`;

export function createMovableRecords(db: Db, schema: string): MovableRecords {
  const { connection, s } = db;
  const known = new Map<string, Columns>();

  const within = <T>(work: (run: ReturnType<typeof runOf>) => Promise<T>): Promise<T> =>
    connection.transaction("move records", async (client: Queryable) => {
      await client.query(ONE_FORM);
      const run = runOf(client);
      return work((text, values) => run(text, values, PATIENT));
    });
  const ask = (text: string, values: unknown[]) => connection.rows("move records", text, values, { reads: true });

  /** Empty: there is no such table. */
  async function columnsOf(spec: TableSpec): Promise<Columns> {
    const found = known.get(spec.name);
    if (found) return found;
    const rows = await ask(
      `select attname, format_type(atttypid, null) from pg_attribute
      where attrelid = to_regclass($1) and attnum > 0 and not attisdropped order by attnum`,
      [`${s}.${tableOf(spec)}`],
    );
    const isCarried = (name: string) => (spec.name === LINKS ? LINK_COLUMNS.includes(name) : !spec.made?.includes(name));
    const columns = new Map(
      rows.map(([name, type]) => [name as string, type as string]).filter(([name]) => isCarried(name as string)) as [
        string,
        string,
      ][],
    );
    if (columns.size > 0) known.set(spec.name, columns);
    return columns;
  }

  const sequence = (spec: TableSpec) => `pg_get_serial_sequence('${s}.${tableOf(spec)}', '${spec.numbered}')::regclass`;

  async function describe(spec: TableSpec): Promise<RecordTable[]> {
    const columns = [...(await columnsOf(spec)).keys()];
    if (columns.length === 0) return [];
    const [row] = spec.numbered ? await ask(`select pg_sequence_last_value(${sequence(spec)})::text`, []) : [];
    return [{ kind: spec.kind, name: spec.name, columns, last: row?.[0] ?? null }];
  }

  const wanted: MovableRecords["wanted"] = (kinds) => {
    const proves = kinds.includes("audit") && kinds.includes("recovery");
    return new Set(TABLES.filter(({ kind, proof }) => kinds.includes(kind) && (proves || !proof)).map(({ name }) => name));
  };

  return {
    wanted,
    isLast: (name) => name === LINKS,
    isState: (name) => specOf({ name })?.merged !== undefined,
    async tables(kinds) {
      const names = wanted(kinds);
      const found: RecordTable[] = [];
      for (const spec of TABLES.filter(({ name }) => names.has(name))) found.push(...(await describe(spec)));
      return found;
    },
    async read(table, after, all) {
      const spec = specOf(table) as TableSpec;
      const more = spec.name === LINKS && !all ? ` and ${linksOpen(s)}` : "";
      const text = pageSql(s, spec, table.columns, await columnsOf(spec), more);
      const values = after === null ? spec.key.map(() => null) : (JSON.parse(after) as string[]);
      const rows = await within((run) => run(text, values));
      const last = rows.at(-1);
      return { rows: rows.map(([row]) => row as string), next: last ? JSON.stringify(last.slice(1)) : null };
    },
    async knows(table) {
      const spec = specOf(table);
      if (!spec) return false;
      const columns = await columnsOf(spec);
      return columns.size === 0 ? spec.kind === "usage" : table.columns.every((one) => columns.has(one));
    },
    async count(table) {
      const spec = specOf(table) as TableSpec;
      if ((await columnsOf(spec)).size === 0) return 0;
      const [row] = await ask(`select count(*)::text from ${s}.${tableOf(spec)} t where ${spec.where ?? "true"}`, []);
      return Number(row?.[0]);
    },
    async prepare(table) {
      const spec = specOf(table) as TableSpec;
      if (spec.kind === "usage" && (await columnsOf(spec)).size === 0) await migrateUp(connection, schema, USAGE_SET);
      if (!spec.numbered || table.last === null) return;
      const number = `greatest($1::text::bigint, coalesce(pg_sequence_last_value(${sequence(spec)}), 1))`;
      await within((run) => run(`select setval(${sequence(spec)}, ${number})`, [table.last]));
    },
    async put(table, rows) {
      const spec = specOf(table) as TableSpec;
      const json = jsonOf(rows);
      if (spec.monthOf) {
        const moments = rows.map((row) => Date.parse((JSON.parse(row) as Record<string, string>)[spec.monthOf as string] ?? ""));
        await ensureMonths(connection, s, [...new Set(moments.map((ms) => monthOf(ms)))]);
      }
      return within(async (run) => {
        const put = await run(spec.name === LINKS ? linkSql(s, spec) : putSql(s, spec, table.columns), [json]);
        if (spec.source) await run(sealedSql(s, spec, spec.numbered ?? "seq"), [json]);
        // A state is there before anything comes.
        return spec.merged ? 0 : put.length;
      });
    },
    async compare(table, rows) {
      const spec = specOf(table) as TableSpec;
      const standing: { -readonly [K in keyof Standing]: Standing[K] } = { same: 0, movedOn: 0, absent: 0, wrong: 0 };
      if ((await columnsOf(spec)).size === 0) return { ...standing, absent: rows.length, there: [] };
      const found = await within((run) => run(compareSql(s, spec, table.columns), [jsonOf(rows)]));
      const there: string[] = [];
      for (const [absent, same, fixed, row] of found) {
        standing[absent === "true" ? "absent" : same === "true" ? "same" : fixed === "true" ? "movedOn" : "wrong"]++;
        if (row) there.push(row);
      }
      return { ...standing, there };
    },
  };
}
