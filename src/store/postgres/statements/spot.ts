/**
 * Where a claim begins that asks for a part of a lane: the row there by the count of what is due, found without reading the lane. Of a long
 * lane only the rows around a moment are counted, and the moment is one at which many of them became due.
 */

/** So many rows on either side of the moment. A lane of no more is counted as a whole. */
const AROUND = 1_000;
/** So many pages of the table are looked through for a row of the lane. */
const PAGES = 16;

interface Rows {
  readonly table: string;
  /** Which of its rows, as `r`, all of one lane. */
  readonly where: string;
  /** What they are ordered by, `due` first. */
  readonly columns: readonly string[];
  readonly clock: string;
}

/**
 * The columns of that row, none where nothing is due. `part` from 0 to 1 says which of the rows that are counted, with `limit` from it on where
 * there are as many; its later digits are as good as another number, and say which moment: that of a row in pages by chance, because a burst
 * has as many pages as a trickle of as many rows, or else one between the first and the last.
 */
export function spotOf({ table, where, columns, clock }: Rows, part: string, limit: string): string {
  const due = `from ${table} r where ${where} and r.due <= ${clock}`;
  const sorted = (way: "" | " desc") => `order by ${columns.map((column) => `r.${column}${way}`).join(", ")}`;
  const all = columns.join(", ");
  const of = columns.map((column) => `r.${column}`).join(", ");
  return `with
    q as (select digits, floor(digits * pg_relation_size('${table}') / current_setting('block_size')::int)::bigint as page
      from (select ${part} * 1024 - floor(${part} * 1024) as digits) d),
    m as (select coalesce(
      (select r.due ${due} and r.ctid >= (select format('(%s,0)', page)::tid from q) and r.ctid < (select format('(%s,0)', page + ${PAGES})::tid from q) limit 1),
      (select r.due ${due} ${sorted("")} limit 1) + digits * (
        (select r.due ${due} ${sorted(" desc")} limit 1) - (select r.due ${due} ${sorted("")} limit 1))) as moment from q),
    w as materialized (
      (select ${of} ${due} and r.due >= (select moment from m) ${sorted("")} limit ${AROUND})
      union all (select ${of} ${due} and r.due < (select moment from m) ${sorted(" desc")} limit ${AROUND}))
    select ${all} from w order by ${all}
    offset (select greatest(0, least(floor(${part} * count(*)), count(*) - ${limit}))::bigint from w) limit 1`;
}
