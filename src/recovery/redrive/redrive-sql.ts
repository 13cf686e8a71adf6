/**
 * What people and runners do to a redrive as a whole: read, change, claim, keep. One runner at a time holds it, by a token that
 * the next claim makes stale.
 */

import { isUuid } from "../../platform/ids.ts";
import type { Home, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { beginObserving, byPerson } from "../confidence/outcomes-sql.ts";
import { badCursor, idCursor, type Page, type Paged, paged, pageLimit } from "../pages.ts";
import type { NewProvenance } from "../provenance.ts";
import { record } from "../provenance-sql.ts";
import { type ItemState, type Redrive, type RedriveClaim, type RedriveItem, type RedriveStatus, SKIPPED } from "./redrive.ts";
import { ITEM_COLUMNS, itemOf, LIST_MS_MAX, REDRIVE_COLUMNS, readRedrive, redriveOf, stateCode } from "./rows.ts";

/** Only from one of `from`; `version` (asked first): only from that one. */
export interface Change {
  readonly from: readonly RedriveStatus[];
  readonly version?: number | undefined;
  readonly status: RedriveStatus;
  readonly reason: string | null;
  /** What was repaired before it goes on. */
  readonly repair?: string | null | undefined;
}

type Changed =
  | { readonly kind: "done" | "wrong_state" | "version_conflict"; readonly redrive: Redrive }
  | { readonly kind: "not_found" };

export interface Keep {
  readonly leaseMs?: number | undefined;
  readonly state?: string | undefined;
  readonly release?: boolean | undefined;
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
    `update ${s}.redrive set status = $2, status_reason = $3, repair = coalesce($4, repair), version = version + 1, ended_at = ${ended ? clock : "null"}
      ${status === "running" ? `, started_at = coalesce(started_at, ${clock})` : ""} where id = $1::uuid`,
    [id, status, reason, request.repair ?? null],
  );
  if (status === "running") await beginObserving(s, run, id, byPerson(lines), clock);
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

export function createRedriveRun(home: Home) {
  const { s } = home;
  const run = home.read("read redrives");
  return {
    get: async (id: string) => (isUuid(id) ? readRedrive(s, run, id) : null),
    /** The one that was started under this key. */
    async find(idempotencyKey: string) {
      const [row] = await run(`select ${REDRIVE_COLUMNS} from ${s}.redrive r where r.request_key = $1`, [idempotencyKey]);
      return row ? redriveOf(row) : null;
    },
    /** Newest first, by id. */
    async list({ status, limit, cursor }: Page & { readonly status?: RedriveStatus | undefined }) {
      if (cursor !== undefined && !isUuid(cursor)) throw badCursor();
      const text = `select ${REDRIVE_COLUMNS} from ${s}.redrive r where ($1::uuid is null or r.id < $1::uuid) and ($2::text is null or r.status = $2)
        order by r.id desc limit $3::int`;
      const rows = (await run(text, [cursor ?? null, status ?? null, pageLimit(limit) + 1])).map(redriveOf);
      return paged(rows, limit, (last) => last.redriveId);
    },
    /** In the order of the list. */
    async items(
      id: string,
      { state, limit, cursor }: Page & { readonly state?: ItemState | undefined },
    ): Promise<Paged<RedriveItem>> {
      if (!isUuid(id)) return { data: [], nextCursor: null };
      const after = cursor === undefined ? "0" : idCursor(cursor);
      const fits = state === undefined ? "" : `and i.state = ${stateCode(state)}`;
      const text = `select ${ITEM_COLUMNS} from ${s}.redrive_item i where i.redrive_id = $1::uuid and i.n > $2::bigint ${fits} order by i.n limit $3::int`;
      const rows = (await run(text, [id, after, pageLimit(limit) + 1])).map(itemOf);
      return paged(rows, limit, (last) => String(last.n));
    },
    /**
     * Raises the version. Cancelling skips what waits; `running` sets startedAt the first time, `done` and `cancelled` set endedAt. A
     * runner's lease is not touched.
     */
    async change(id: string, request: Change, provenance: readonly NewProvenance[], at?: At): Promise<Changed> {
      if (!isUuid(id)) return { kind: "not_found" };
      return home.transaction("change a redrive", (inside) => change(s, inside.run, id, request, provenance, at?.now));
    },
    /**
     * A redrive with work and no live lease: running, or ended, paused or stopped with items sent whose ending is open. The one that was
     * worked on longest ago first. A lease lives until `leaseMs` have passed, not at that moment.
     */
    async claim(owner: string, leaseMs: number, at?: At): Promise<RedriveClaim | null> {
      const [row] = await home.write("claim a redrive")(claimSql(s, clockSql(at?.now)), [owner, leaseMs]);
      return row ? { redrive: redriveOf(row), token: row.at(-1) as string } : null;
    },
    /** False: the token is stale. `state` is kept for the process that claims next; a token whose lease ran out holds until another claims. */
    async keep(id: string, token: string, { leaseMs, state, release }: Keep, at?: At) {
      if (!isUuid(id)) return false;
      const clock = clockSql(at?.now);
      const text = `update ${s}.redrive set worked_at = ${clock}, state = coalesce($3, state),
          lease_until = case when $4::float8 is null then lease_until else ${clock} + $4::float8 * interval '1 ms' end,
          token = ${release ? "null" : "token"} where id = $1::uuid and token::text = $2 returning 1`;
      const values = [id, token, state ?? null, leaseMs ?? null];
      return (await home.write("keep a redrive")(text, values)).length > 0;
    },
    /** The next waiting items in order, with their messages where asked for. */
    async next(id: string, limit: number, bodies: boolean) {
      if (!isUuid(id)) return [];
      const text = `select ${ITEM_COLUMNS} from ${s}.redrive_item i where i.redrive_id = $1::uuid and i.state = 0 order by i.n limit $2::int`;
      const items = (await run(text, [id, Math.max(0, limit)])).map(itemOf);
      const views = bodies
        ? await home.messages(
            run,
            items.map((item) => item.messageId),
          )
        : [];
      const byId = new Map(views.map((view) => [view.id, view]));
      return items.map((item) => ({ item, message: byId.get(item.messageId) ?? null }));
    },
  };
}
