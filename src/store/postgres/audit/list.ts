/**
 * AUDIT LIST: in the order of commits, by the numbers that tamper evidence gives (decision 0036). Sequences are given out before a commit, so
 * a reader that went on from one missed what a longer transaction committed below it. What has no number yet gets one here, at the end.
 */
import type { AuditFilter, AuditPage, StoredAudit } from "../../audit.ts";
import { numberRows, unnumberedSql } from "../../shared/evidence-rows.ts";
import type { Row } from "../connection.ts";
import type { Db } from "../db.ts";
import { runOf } from "../run-of.ts";

/** Records that one page looks through at most: a rare value is found over several pages, none of which takes long. */
const LOOKED_AT_MAX = 20_000;
const NUMBERED_AT_ONCE = 5_000;
/** PostgreSQL's code of a standby, which writes nothing. */
const READ_ONLY = "25006";

export function createAuditList({ connection, s }: Db, columns: string, stored: (row: Row) => StoredAudit) {
  const read = (text: string, values: unknown[] = []) => connection.rows("list audit records", text, values, { reads: true });

  /** By the columns with an index of their own all of it is searched; by the others a window of it. */
  const pageSql = (windowed: boolean): string => `select ${columns}
    from ${s}.evidence_leaf l join ${s}.audit_record r on r.seq = l.id and r.recorded_at = l.at
    where l.source = 1 and l.pos > $1::bigint ${windowed ? "and l.pos <= $10::bigint" : "and $10::bigint is null"}
      and ($2::text is null or r.audit_type = $2) and ($3::text is null or r.correlation_id = $3)
      and ($4::text is null or r.actor = $4) and ($5::text is null or r.resource = $5) and ($6::text is null or r.outcome = $6)
      and ($7::timestamptz is null or r.occurred_at >= $7) and ($8::timestamptz is null or r.occurred_at < $8)
    order by l.pos limit $9::int`;

  const windowSql = `select max(w.pos)::text, count(*)::text from (select l.pos from ${s}.evidence_leaf l
    where l.source = 1 and l.pos > $1::bigint order by l.pos limit ${LOOKED_AT_MAX}) w`;

  async function page(filter: AuditFilter): Promise<AuditPage> {
    const { auditType = null, correlationId = null, actor = null, resource = null, outcome = null, limit, after = "0" } = filter;
    const times = [filter.since?.toISOString() ?? null, filter.until?.toISOString() ?? null];
    const windowed = correlationId === null;
    const [edge] = windowed ? await read(windowSql, [after]) : [];
    if (windowed && !edge?.[0]) return { records: [], next: null };
    const values = [after, auditType, correlationId, actor, resource, outcome, ...times, limit, edge?.[0] ?? null];
    const records = (await read(pageSql(windowed), values)).map(stored);
    const more = records.length === limit ? (records.at(-1)?.position ?? null) : null;
    return { records, next: more ?? (Number(edge?.[1] ?? 0) === LOOKED_AT_MAX ? (edge?.[0] ?? null) : null) };
  }

  /** False: there was nothing, or this server only reads. */
  async function number(): Promise<boolean> {
    const [open] = await read(unnumberedSql(s));
    if (open?.[0] !== "true") return false;
    try {
      const work = connection.transaction("number audit records", (client) => numberRows(runOf(client), s, NUMBERED_AT_ONCE));
      return (await work) > 0;
    } catch (error) {
      if ((error as { code?: unknown }).code === READ_ONLY) return false;
      throw error;
    }
  }

  return async function list(filter: AuditFilter): Promise<AuditPage> {
    const found = await page(filter);
    if (found.next !== null || !(await number())) return found;
    return page(filter);
  };
}
