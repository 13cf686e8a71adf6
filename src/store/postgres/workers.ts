/**
 * WORKERS in PostgreSQL: what each worker says of itself, a row rewritten in place. The next announcement of any worker
 * removes what is past its time or beyond the limit, except rows that another one is removing: none waits for another's row.
 */
import { LIMITS } from "../../message/limits.ts";
import { silent, WORKER, type WorkerNote } from "../../message/worker-note.ts";
import { clockSql } from "../shared/clock-sql.ts";
import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";

/** Arrays, because a plan may read "in (select … limit)" again for each row, and take more than the limit. */
const announceSql = (s: string, clock: string) => `with
  old as (delete from ${s}.worker where owner = any (array(select owner from ${s}.worker where until <= ${clock} and owner <> $1 limit 100 for update skip locked))),
  over as (delete from ${s}.worker where owner = any (array(select owner from ${s}.worker where owner <> $1 and until > ${clock}
    order by until desc, owner offset ${LIMITS.workersMax - 1} limit 100 for update skip locked)))
insert into ${s}.worker (owner, note, until) values ($1, $2, ${clock} + $3::bigint * interval '1 ms')
on conflict (owner) do update set note = excluded.note, until = excluded.until`;

const readSql = (s: string, clock: string) => `
  (select owner, note from ${s}.worker where until > ${clock} order by until desc limit ${LIMITS.workersMax})
  union all
  (select x.owner, null from (select owner from ${s}.waiter where until > ${clock} union select owner from ${s}.lease where until > ${clock}) x
    where starts_with(x.owner, '${WORKER}') and not exists (select from ${s}.worker w where w.owner = x.owner) limit ${LIMITS.workersMax})`;

export function createWorkers({ connection, s }: Db): Pick<TopicStore, "announce" | "workers"> {
  return {
    async announce({ owner, ...note }, ttlMs, at) {
      const text = ttlMs > 0 ? announceSql(s, clockSql(at?.now)) : `delete from ${s}.worker where owner = $1`;
      await connection.rows("announce a worker", text, ttlMs > 0 ? [owner, JSON.stringify(note), ttlMs] : [owner]);
    },
    async workers(at) {
      const rows = await connection.rows("read workers", readSql(s, clockSql(at?.now)), [], { reads: true });
      return rows.map(([owner, note]) =>
        note === null ? silent(owner as string) : ({ owner, ...JSON.parse(note as string) } as WorkerNote),
      );
    },
  };
}
