/**
 * Retention of usage: a quota period leaves as a whole, its turns together with the quota that they add up to, so that what is left still adds
 * up. Only once every turn of it has ended long ago and its messages are gone; a period that is used meanwhile stays.
 */
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob, Ran } from "../../platform/job.ts";
import type { Home, Inside, Row } from "../../store/home.ts";
import { CHUNK_ROWS_MAX, chainLock, chainLockSql, chunkSql } from "../../store/shared/archive-sql.ts";

export interface RetireTurnsOptions {
  readonly home: Home;
  readonly events: Events;
  readonly keptMs: number | null;
  readonly archives: boolean;
}

const EVERY_MS = 24 * 3_600_000;
const PERIODS_MAX = 200;
const NAME = "usage_turns";
const NIL = "'00000000-0000-0000-0000-000000000000'::uuid";
const SCOPE = `t.tenant_id = $1::uuid and coalesce(t.user_id, ${NIL}) = $2::uuid and t.period = $3`;

export function retireTurns({ home, events, keptMs, archives }: RetireTurnsOptions): MaintenanceJob {
  const { s } = home;
  const before = `statement_timestamp() - ${Math.round(keptMs ?? 0)}::bigint * interval '1 ms'`;
  const ended = `t.state <> 'running' and t.finalized_at < ${before}`;
  const here = `exists (select from ${s}.message m where m.id = t.message_id) or exists (select from ${s}.message_kept m where m.id = t.message_id)`;
  const scopes = `select tenant_id::text, coalesce(user_id, ${NIL})::text, period, count(*)::text from ${s}.chat_turns t
    group by tenant_id, coalesce(user_id, ${NIL}), period having bool_and(${ended}) and not bool_or(${here}) order by 1, 2, 3 limit ${PERIODS_MAX}`;

  /** 0: it is used again. */
  async function retire({ run }: Inside, scope: Row): Promise<{ rows: number; bytes: number }> {
    const of = scope.slice(0, 3);
    const quota = `${s}.quota_usage where tenant_id = $1::uuid and user_id = $2::uuid and period = $3`;
    await run(`select 1::text from ${quota} for update`, of);
    await run(`select 1::text from ${s}.chat_turns t where ${SCOPE} for update`, of);
    const [still] = await run(`select bool_and(${ended} and not (${here}))::text from ${s}.chat_turns t where ${SCOPE}`, of);
    if (still?.[0] !== "true") return { rows: 0, bytes: 0 };
    await run(chainLockSql, [chainLock(s, NAME)]);
    let [rows, bytes] = [0, 0];
    for (let taken = CHUNK_ROWS_MAX; taken === CHUNK_ROWS_MAX; rows += taken) {
      const lines = `select t.turn_id as sort, t.turn_id::text as id, t.finalized_at as at, row_to_json(t)::text as line from ${s}.chat_turns t
        where t.tenant_id = $3::uuid and coalesce(t.user_id, ${NIL}) = $4::uuid and t.period = $5 order by t.turn_id offset ${rows} limit ${CHUNK_ROWS_MAX}`;
      const [chunk] = await run(chunkSql(s, lines), [NAME, archives, ...of]);
      taken = Number(chunk?.[1] ?? 0);
      bytes += Number(chunk?.[2] ?? 0);
    }
    await run(`delete from ${s}.chat_turns t where ${SCOPE}`, of);
    await run(`delete from ${quota}`, of);
    return { rows, bytes };
  }

  return {
    name: "retire-usage-turns",
    about: "archives and deletes turns and quotas of periods past their retention",
    rehearses: true,
    everyMs: EVERY_MS,
    where: "leader",
    async run(signal, { dryRun, fence }): Promise<Ran> {
      const read = home.read("look at usage turns");
      const [there] = await read("select (to_regclass($1) is not null)::text", [`${s}.chat_turns`]);
      if (keptMs === null || there?.[0] !== "true") return { counts: {}, notes: ["there is nothing to retire"] };
      const found = await read(scopes, [], { patienceMs: 300_000 });
      if (dryRun) return { counts: { would_delete: found.reduce((sum, row) => sum + Number(row[3]), 0) } };
      const total = { deleted: 0, bytes: 0, periods: 0 };
      for (const scope of found) {
        if (signal.aborted) break;
        const { rows, bytes } = await home.transaction("retire usage turns", (inside) => retire(inside, scope), fence);
        total.deleted += rows;
        total.bytes += bytes;
        total.periods += rows > 0 ? 1 : 0;
      }
      if (total.deleted > 0) {
        if (archives) events.emit({ type: "archived", class: NAME, count: total.deleted, bytes: total.bytes });
        events.emit({ type: "retired", class: NAME, count: total.deleted });
      }
      return { counts: total, more: found.length === PERIODS_MAX && total.periods > 0 };
    },
  };
}
