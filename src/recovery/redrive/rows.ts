/**
 * Rows of redrives and their items, and the row of a redrive under its token: the fence of everything that a runner does.
 */

import type { Row, Run } from "../../store/home.ts";
import { epoch, fromEpoch } from "../../store/shared/clock-sql.ts";
import { number } from "../rows.ts";
import { type ItemState, type Redrive, type RedriveCounts, type RedriveGroup, type RedriveItem, readSelect } from "./redrive.ts";

/** A list of a million is frozen or cancelled in one statement. */
export const LIST_MS_MAX = 10 * 60_000;

export const ITEM_STATES: readonly ItemState[] = ["waiting", "sent", "healed", "failed", "skipped"];
export const stateCode = (state: ItemState): number => ITEM_STATES.indexOf(state);

/** Of `redrive r`. */
export const REDRIVE_COLUMNS = `r.id::text, r.request_key, r.status, r.status_reason, r.mode, r.action, r.candidate_id::text, r.actor, r.reason, r.selection,
  r.plan, r.version::text, r.state, ${epoch("r.created_at")}, ${epoch("r.started_at")}, ${epoch("r.ended_at")},
  r.selected::text, r.waiting::text, r.sent::text, r.healed::text, r.failed::text, r.skipped::text,
  case when r.token is not null and r.lease_until > statement_timestamp() then r.owner end`;

const countsOf = (row: Row): RedriveCounts => ({
  selected: Number(row[0]),
  waiting: Number(row[1]),
  sent: Number(row[2]),
  healed: Number(row[3]),
  failed: Number(row[4]),
  skipped: Number(row[5]),
});

export function redriveOf(row: Row): Redrive {
  return {
    redriveId: row[0] as string,
    idempotencyKey: row[1] as string | null,
    status: row[2] as Redrive["status"],
    statusReason: row[3] as string | null,
    mode: row[4] as Redrive["mode"],
    action: row[5] as string | null,
    candidateId: number(row[6]),
    actor: row[7] as string,
    reason: row[8] as string,
    select: readSelect(row[9] as string),
    plan: row[10] as string,
    version: Number(row[11]),
    state: row[12] as string | null,
    createdAt: fromEpoch(row[13]) as Date,
    startedAt: fromEpoch(row[14]),
    endedAt: fromEpoch(row[15]),
    counts: countsOf(row.slice(16)),
    runner: row[22] as string | null,
  };
}

/** Of `redrive_item i`. */
export const ITEM_COLUMNS = `i.n::text, i.message_id::text, i.generation::text, i.revision::text, i.group_id::text, i.state::text, i.reason,
  i.carrier_id::text, ${epoch("i.sent_at")}, ${epoch("i.ended_at")}, i.group_no::text`;

export function itemOf(row: Row): RedriveItem {
  return {
    n: Number(row[0]),
    messageId: row[1] as string,
    generation: Number(row[2]),
    revision: Number(row[3]),
    groupId: number(row[4]),
    state: ITEM_STATES[Number(row[5])] as ItemState,
    reason: row[6] as string | null,
    carrierId: row[7] as string | null,
    sentAt: fromEpoch(row[8]),
    endedAt: fromEpoch(row[9]),
  };
}

export async function readRedrive(s: string, run: Run, id: string): Promise<Redrive | null> {
  const [row] = await run(`select ${REDRIVE_COLUMNS} from ${s}.redrive r where r.id = $1::uuid`, [id]);
  return row ? redriveOf(row) : null;
}

/** Takes the redrive's row, if the token is current: no other call pauses, cancels or claims it until this write is done. */
export async function takeUnder(s: string, run: Run, id: string, token: string): Promise<Redrive | null> {
  const text = `select ${REDRIVE_COLUMNS} from ${s}.redrive r where r.id = $1::uuid and r.token::text = $2 for no key update`;
  const [row] = await run(text, [id, token]);
  return row ? redriveOf(row) : null;
}

/** What stands as the canary of a group that needs none. */
export const ALL = 2_147_483_647;

/** Of `redrive_group g`. */
export const GROUP_COLUMNS = `(g.waiting + g.sent + g.healed + g.failed + g.skipped)::text, g.waiting::text, g.sent::text, g.healed::text,
  g.failed::text, g.skipped::text, g.no::text, g.group_id::text, g.topic, g.code, g.verdict, g.reason, g.canary::text, g.base_healed::text, g.base_failed::text`;

export function redriveGroupOf(row: Row): RedriveGroup {
  return {
    ...countsOf(row),
    no: Number(row[6]),
    groupId: number(row[7]),
    topic: row[8] as string,
    errorCode: row[9] as string | null,
    verdict: row[10] as RedriveGroup["verdict"],
    reason: row[11] as string | null,
    canary: Number(row[12]),
    base: { healed: Number(row[13]), failed: Number(row[14]) },
  };
}

/** An item of a group that went from one state to another. */
export interface Move {
  readonly groupNo: number;
  readonly from: ItemState;
  readonly to: ItemState;
}

/** Changes the counts of a redrive and of its groups; returns the redrive's. What is sent before a group is judged is of its canary. */
export async function addCounts(s: string, run: Run, id: string, moves: readonly Move[]): Promise<RedriveCounts> {
  const sums = new Map<number, Record<ItemState, number>>();
  for (const { groupNo, from, to } of moves) {
    const sum = sums.get(groupNo) ?? { waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 0 };
    sum[from]--;
    sum[to]++;
    sums.set(groupNo, sum);
  }
  const columns = ITEM_STATES.map((state) => [...sums.values()].map((sum) => sum[state]));
  const [row] = await run(
    `with d as materialized (select * from unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
        d(no, waiting, sent, healed, failed, skipped)),
      g as (update ${s}.redrive_group g set waiting = g.waiting + d.waiting, sent = g.sent + d.sent, healed = g.healed + d.healed,
        failed = g.failed + d.failed, skipped = g.skipped + d.skipped, canary = greatest(0, g.canary - greatest(0, d.sent))
        from d where g.redrive_id = $1::uuid and g.no = d.no)
      update ${s}.redrive r set waiting = r.waiting + t.waiting, sent = r.sent + t.sent, healed = r.healed + t.healed,
        failed = r.failed + t.failed, skipped = r.skipped + t.skipped
      from (select coalesce(sum(waiting), 0) as waiting, coalesce(sum(sent), 0) as sent, coalesce(sum(healed), 0) as healed,
        coalesce(sum(failed), 0) as failed, coalesce(sum(skipped), 0) as skipped from d) t where r.id = $1::uuid
      returning r.selected::text, r.waiting::text, r.sent::text, r.healed::text, r.failed::text, r.skipped::text`,
    [id, [...sums.keys()], ...columns],
    { name: "mg_redrive_counts" },
  );
  return countsOf(row as Row);
}
