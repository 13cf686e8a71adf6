/** AUDIT HOLDS: who keeps which records past their retention, and why; a hold is placed and released, and its line stays. */
import type { AuditHold, AuditStore } from "../../audit.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import type { Row } from "../connection.ts";
import type { Db } from "../db.ts";

const COLUMNS = `h.id::text, h.event_id, h.correlation_id, h.reason, h.placed_by, extract(epoch from h.placed_at)::text, h.released_by,
  extract(epoch from h.released_at)::text, h.release_reason`;

const moment = (seconds: string | null | undefined): Date | null =>
  seconds === null || seconds === undefined ? null : new Date(Number(seconds) * 1_000);

function holdOf(row: Row): AuditHold {
  const [id, eventId = null, correlationId = null, reason, placedBy, placedAt, releasedBy = null, releasedAt, why = null] = row;
  return {
    ...{ id: id as string, eventId, correlationId, reason: reason as string, placedBy: placedBy as string },
    ...{ placedAt: moment(placedAt) as Date, releasedBy, releasedAt: moment(releasedAt), releaseReason: why },
  };
}

export function createHolds({ connection, s }: Db): Pick<AuditStore, "hold" | "release" | "holds"> {
  const run = (text: string, values: unknown[]) => connection.rows("hold audit records", text, values);
  return {
    async hold(target, { actor, reason }, at = {}) {
      const one = "eventId" in target ? target.eventId : null;
      const all = "correlationId" in target ? target.correlationId : null;
      // A correlation id may be held before its first record comes.
      const [row] = await run(
        `with h as (insert into ${s}.audit_hold (event_id, correlation_id, reason, placed_by, placed_at)
          select $1, $2, $3, $4, ${clockSql(at.now)} where $1::text is null or exists (select from ${s}.audit_event e
            join ${s}.audit_record r on r.recorded_at = e.recorded_at and r.seq = e.seq where e.event_id = $1) returning *)
        select ${COLUMNS} from h`,
        [one, all, reason, actor],
      );
      return row ? holdOf(row) : null;
    },
    async release(id, { actor, reason }, at = {}) {
      const [row] = await run(
        `with h as (update ${s}.audit_hold set released_by = $2, release_reason = $3, released_at = ${clockSql(at.now)}
          where id = $1::bigint and released_at is null returning *) select ${COLUMNS} from h`,
        [id, actor, reason],
      );
      return row ? holdOf(row) : null;
    },
    async holds({ active, limit, after = null }) {
      const rows = await run(
        `select ${COLUMNS} from ${s}.audit_hold h where ($1::bigint is null or h.id < $1) and (not $2::boolean or h.released_at is null)
        order by h.id desc limit $3::int`,
        [after, active, limit],
      );
      return rows.map(holdOf);
    },
  };
}
