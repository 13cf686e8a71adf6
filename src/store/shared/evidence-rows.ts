/**
 * What tamper evidence covers, and how a row becomes a leaf: its salt and its fields, each with its length before it, so that no two rows
 * have the same bytes. The form is part of every proof that was ever given out and never changes; SQL and `rowContent` make the same bytes.
 */
import type { EvidenceName } from "../evidence.ts";
import type { Run } from "../home.ts";

export interface EvidenceSource {
  readonly name: EvidenceName;
  readonly number: number;
  readonly table: string;
  readonly id: string;
  readonly at: string;
  /** Member → SQL of its text, of a row `t`, in the order of the leaf. */
  readonly fields: Readonly<Record<string, string>>;
}

const moment = (column: string) => `to_char(t.${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
const texts = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, `t.${name}::text`]));

export const EVIDENCE_SOURCES: readonly EvidenceSource[] = [
  {
    ...{ name: "audit", number: 1, table: "audit_record", id: "seq", at: "recorded_at" },
    fields: {
      ...texts("seq"),
      recorded_at: moment("recorded_at"),
      ...texts("event_id", "audit_type", "correlation_id"),
      occurred_at: moment("occurred_at"),
      ...texts("actor", "resource", "outcome", "payload"),
    },
  },
  {
    ...{ name: "provenance", number: 2, table: "provenance", id: "id", at: "at" },
    fields: { ...texts("id"), at: moment("at"), ...texts("message_id", "actor", "action", "reason") },
  },
  {
    ...{ name: "recovery_provenance", number: 3, table: "recovery_provenance", id: "id", at: "at" },
    fields: {
      ...texts("id"),
      at: moment("at"),
      ...texts("group_id", "candidate_id", "redrive_id", "event", "actor", "actor_type", "reason", "rule", "action"),
      ...texts("confidence_before", "confidence_after", "duration_ms", "details"),
    },
  },
];

export const AUDIT_SOURCE = EVIDENCE_SOURCES[0] as EvidenceSource;

const formOf = ({ name }: EvidenceSource): string => `makegood/${name}/1`;
const counted = (text: string | null): string => (text === null ? "-," : `${Buffer.byteLength(text)}:${text},`);

/** The bytes that stand behind the salt in a leaf. */
export function rowContent(source: EvidenceSource, fields: readonly (string | null)[]): Buffer {
  return Buffer.from([formOf(source), ...fields].map(counted).join(""), "utf8");
}

/** The leaf of the row `t` under this salt. */
export function leafSql(source: EvidenceSource, salt: string): string {
  const parts = Object.values(source.fields).map((sql) => `coalesce(octet_length(${sql}) || ':' || ${sql} || ',', '-,')`);
  const content = [`'${counted(formOf(source))}'`, ...parts].join(" || ");
  return `sha256('\\x00'::bytea || uuid_send(${salt}) || convert_to(${content}, 'UTF8'))`;
}

/** Of the row that `p` (id, at) names; in audit its month is found by `at`. */
export const joinSql = (s: string, { table, id, at, number }: EvidenceSource): string =>
  `left join ${s}.${table} t on t.${id} = p.id${number === 1 ? ` and t.${at} = p.at` : ""}`;

/** A row that was noted and is not there: what a leaf says then fits no row. */
const NOTHING = "sha256('\\x00'::bytea)";

const numberSql = (s: string, source: EvidenceSource, picked: string): string => `with p as materialized (${picked}),
  c as materialized (select p.id, p.at, t.${source.id} is null as missing, case when t.salt is null then gen_random_uuid() end as made, t.salt
    from p ${joinSql(s, source)}),
  i as (insert into ${s}.evidence_leaf (source, pos, id, at, leaf, salt, gone)
    select ${source.number}, $1::bigint - 1 + row_number() over (order by p.id), p.id, p.at,
      case when p.missing then ${NOTHING} else ${leafSql(source, "coalesce(p.salt, p.made)")} end,
      case when not p.missing then p.made end, case when p.missing then 0 end
    from c p ${joinSql(s, source)})
  select count(*)::text, max(id)::text from c`;

/** At once, in one statement: each may be a record of a mebibyte. */
const SLICE = 1_000;

/**
 * Gives committed rows their numbers, at most `limit`; in a transaction of its own or the caller's. The state's row is held until that ends,
 * so numbers become visible in their order, and a reader that goes on from one misses nothing. Returns how many.
 */
export async function numberRows(run: Run, s: string, limit: number): Promise<number> {
  const [state] = await run(`select next_pos::text from ${s}.evidence_state for update`);
  const first = Number(state?.[0]);
  let next = first;
  for (const source of EVIDENCE_SOURCES) {
    const { number, table, id, at } = source;
    const [old] = await run(`select done_id::text, until_id::text from ${s}.evidence_source where source = ${number}`);
    const [doneId, untilId] = [old?.[0] ?? "0", old?.[1] ?? "0"];
    const ofOld = `select ${id} as id, ${at} as at from ${s}.${table} where ${id} > $3::bigint and ${id} <= $4::bigint order by ${id} limit $2::int`;
    for (let after = doneId; BigInt(after) < BigInt(untilId) && next - first < limit; ) {
      const slice = Math.min(SLICE, limit - (next - first));
      const [row] = await run(numberSql(s, source, ofOld), [next, slice, after, untilId]);
      next += Number(row?.[0]);
      after = Number(row?.[0]) < slice ? untilId : (row?.[1] as string);
      await run(`update ${s}.evidence_source set done_id = $1::bigint where source = ${number}`, [after]);
    }
    const fresh = `delete from ${s}.evidence_pending where source = ${number} and id in
      (select id from ${s}.evidence_pending where source = ${number} order by id limit $2::int) returning id, at`;
    for (let came = SLICE; came === SLICE && next - first < limit; ) {
      const slice = Math.min(SLICE, limit - (next - first));
      const [row] = await run(numberSql(s, source, fresh), [next, slice]);
      came = Number(row?.[0]);
      next += came;
    }
  }
  if (next > first) await run(`update ${s}.evidence_state set next_pos = $1::bigint`, [next]);
  return next - first;
}

/** Whether any row waits for its number. */
export const unnumberedSql = (s: string): string =>
  `select (exists (select from ${s}.evidence_pending) or exists (select from ${s}.evidence_source where done_id < until_id))::text`;
