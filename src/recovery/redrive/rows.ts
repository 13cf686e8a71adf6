/**
 * Rows of redrives and their items, and the row of a redrive under its token: the fence of everything that a runner does.
 */

import type { Row, Run } from "../../store/home.ts";
import { epoch, fromEpoch } from "../../store/shared/clock-sql.ts";
import { number } from "../rows.ts";
import { type ItemState, type Redrive, type RedriveCounts, type RedriveItem, readSelect } from "./redrive.ts";

/** A list of a million is frozen or cancelled in one statement. */
export const LIST_MS_MAX = 10 * 60_000;

export const ITEM_STATES: readonly ItemState[] = ["waiting", "sent", "healed", "failed", "skipped"];
export const stateCode = (state: ItemState): number => ITEM_STATES.indexOf(state);

/** Of `redrive r`. */
export const REDRIVE_COLUMNS = `r.id::text, r.request_key, r.status, r.status_reason, r.mode, r.action, r.candidate_id::text, r.actor, r.reason, r.selection,
  r.plan, r.version::text, r.state, ${epoch("r.created_at")}, ${epoch("r.started_at")}, ${epoch("r.ended_at")},
  r.selected::text, r.waiting::text, r.sent::text, r.healed::text, r.failed::text, r.skipped::text`;

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
  };
}

/** Of `redrive_item i`. */
export const ITEM_COLUMNS = `i.n::text, i.message_id::text, i.generation::text, i.revision::text, i.group_id::text, i.state::text, i.reason,
  i.carrier_id::text, ${epoch("i.sent_at")}, ${epoch("i.ended_at")}`;

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

/** Adds to the counts of a redrive; returns them all. */
export async function addCounts(s: string, run: Run, id: string, more: Partial<RedriveCounts>): Promise<RedriveCounts> {
  const { waiting = 0, sent = 0, healed = 0, failed = 0, skipped = 0 } = more;
  const [row] = await run(
    `update ${s}.redrive r set waiting = r.waiting + $2::bigint, sent = r.sent + $3::bigint, healed = r.healed + $4::bigint,
        failed = r.failed + $5::bigint, skipped = r.skipped + $6::bigint where r.id = $1::uuid
      returning r.selected::text, r.waiting::text, r.sent::text, r.healed::text, r.failed::text, r.skipped::text`,
    [id, waiting, sent, healed, failed, skipped],
  );
  return countsOf(row as Row);
}
