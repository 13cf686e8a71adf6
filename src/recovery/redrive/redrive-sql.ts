/**
 * What people and runners do to a redrive as a whole: read, change, claim, keep. One runner at a time holds it, by a token that
 * the next claim makes stale.
 */
import { isUuid } from "../../platform/ids.ts";
import type { NewProvenance } from "../records-types.ts";
import { type Redrive, type RedriveStatus, type RedriveStore, SKIPPED } from "./redrive.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import { messageView, viewSql } from "../../store/postgres/statements/view.ts";
import { badCursor, idCursor, paged, pageLimit } from "../pages.ts";
import { record } from "../provenance-sql.ts";
import { ITEM_COLUMNS, itemOf, REDRIVE_COLUMNS, readRedrive, redriveOf, stateCode } from "./rows.ts";
import { inTransaction, LIST_MS_MAX, type RecoveryDb, type Run, reader } from "../../store/postgres/home.ts";

interface Change {
  readonly from: readonly RedriveStatus[];
  readonly version?: number | undefined;
  readonly status: RedriveStatus;
  readonly reason: string | null;
}

async function change(s: string, run: Run, id: string, request: Change, lines: readonly NewProvenance[], now: Date | undefined) {
  const clock = clockSql(now);
  const [row] = await run(`select ${REDRIVE_COLUMNS} from ${s}.redrive r where r.id = $1::uuid for no key update`, [id]);
  if (!row) return { kind: "not_found" } as const;
  const redrive = redriveOf(row);
  if (request.version !== undefined && request.version !== redrive.version) return { kind: "version_conflict", redrive } as const;
  if (!request.from.includes(redrive.status)) return { kind: "wrong_state", redrive } as const;
  const { status, reason } = request;
  if (status === "cancelled") {
    const text = `with i as (update ${s}.redrive_item set state = 4, reason = '${SKIPPED.cancelled}', ended_at = ${clock}
        where redrive_id = $1::uuid and state = 0 returning 1)
      update ${s}.redrive r set waiting = r.waiting - c.n, skipped = r.skipped + c.n from (select count(*) as n from i) c where r.id = $1::uuid`;
    await run(text, [id], { patienceMs: LIST_MS_MAX });
  }
  const ended = status === "done" || status === "cancelled";
  await run(
    `update ${s}.redrive set status = $2, status_reason = $3, version = version + 1, ended_at = ${ended ? clock : "null"}
      ${status === "running" ? `, started_at = coalesce(started_at, ${clock})` : ""} where id = $1::uuid`,
    [id, status, reason],
  );
  await record(s, run, lines, { now });
  return { kind: "done", redrive: (await readRedrive(s, run, id)) as Redrive } as const;
}

const claimSql = (
  s: string,
  clock: string,
) => `update ${s}.redrive r set token = gen_random_uuid(), owner = $1, worked_at = ${clock},
    lease_until = ${clock} + $2::float8 * interval '1 ms'
  where r.id = (select w.id from ${s}.redrive w where (w.status = 'running' or w.sent > 0) and w.status <> 'planned'
      and (w.token is null or w.lease_until <= ${clock}) order by w.worked_at nulls first, w.id limit 1 for no key update skip locked)
  returning ${REDRIVE_COLUMNS}, r.token::text`;

export function createRedriveRun(
  db: RecoveryDb,
): Pick<RedriveStore, "get" | "find" | "list" | "items" | "change" | "claim" | "keep" | "next"> {
  const { s } = db;
  const run = reader(db, "read redrives");
  return {
    get: async (id) => (isUuid(id) ? readRedrive(s, run, id) : null),
    async find(idempotencyKey) {
      const [row] = await run(`select ${REDRIVE_COLUMNS} from ${s}.redrive r where r.request_key = $1`, [idempotencyKey]);
      return row ? redriveOf(row) : null;
    },
    async list({ status, limit, cursor }) {
      if (cursor !== undefined && !isUuid(cursor)) throw badCursor();
      const text = `select ${REDRIVE_COLUMNS} from ${s}.redrive r where ($1::uuid is null or r.id < $1::uuid) and ($2::text is null or r.status = $2)
        order by r.id desc limit $3::int`;
      const rows = (await run(text, [cursor ?? null, status ?? null, pageLimit(limit) + 1])).map(redriveOf);
      return paged(rows, limit, (last) => last.redriveId);
    },
    async items(id, { state, limit, cursor }) {
      if (!isUuid(id)) return { data: [], nextCursor: null };
      const after = cursor === undefined ? "0" : idCursor(cursor);
      const fits = state === undefined ? "" : `and i.state = ${stateCode(state)}`;
      const text = `select ${ITEM_COLUMNS} from ${s}.redrive_item i where i.redrive_id = $1::uuid and i.n > $2::bigint ${fits} order by i.n limit $3::int`;
      const rows = (await run(text, [id, after, pageLimit(limit) + 1])).map(itemOf);
      return paged(rows, limit, (last) => String(last.n));
    },
    async change(id, request, provenance, at) {
      if (!isUuid(id)) return { kind: "not_found" };
      return inTransaction(db, "change a redrive", (inside) => change(s, inside.run, id, request, provenance, at?.now));
    },
    async claim(owner, leaseMs, at) {
      const [row] = await db.connection.rows("claim a redrive", claimSql(s, clockSql(at?.now)), [owner, leaseMs]);
      return row ? { redrive: redriveOf(row), token: row.at(-1) as string } : null;
    },
    async keep(id, token, { leaseMs, state, release }, at) {
      if (!isUuid(id)) return false;
      const clock = clockSql(at?.now);
      const text = `update ${s}.redrive set worked_at = ${clock}, state = coalesce($3, state),
          lease_until = case when $4::float8 is null then lease_until else ${clock} + $4::float8 * interval '1 ms' end,
          token = ${release ? "null" : "token"} where id = $1::uuid and token::text = $2 returning 1`;
      const values = [id, token, state ?? null, leaseMs ?? null];
      return (await db.connection.rows("keep a redrive", text, values)).length > 0;
    },
    async next(id, limit, bodies) {
      if (!isUuid(id)) return [];
      const text = `select ${ITEM_COLUMNS} from ${s}.redrive_item i where i.redrive_id = $1::uuid and i.state = 0 order by i.n limit $2::int`;
      const items = (await run(text, [id, Math.max(0, limit)])).map(itemOf);
      const views = bodies ? (await run(viewSql(s), [items.map((item) => item.messageId)])).map(messageView) : [];
      const byId = new Map(views.map((view) => [view.id, view]));
      return items.map((item) => ({ item, message: byId.get(item.messageId) ?? null }));
    },
  };
}
