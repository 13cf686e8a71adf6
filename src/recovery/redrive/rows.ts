/**
 * The row of a redrive, also under its token: the fence of everything that a runner does. And the counts of it and of its groups.
 */
import type { Row, Run } from "../../store/home.ts";
import { COUNTS, ITEM_STATES, type ItemState, REDRIVE, type Redrive, type RedriveCounts } from "./redrive.ts";

/** A list of a million is frozen or cancelled in one statement. */
export const LIST_MS_MAX = 10 * 60_000;

/** What stands as the canary of a group that needs none. */
export const ALL = 2_147_483_647;

/** Of `redrive r`. */
export async function readRedrive(s: string, run: Run, where: string, values: unknown[]): Promise<Redrive | null> {
  const [row] = await run(`select ${REDRIVE.list} from ${s}.redrive r where ${where}`, values);
  return row ? REDRIVE.of(row) : null;
}

/** Takes the redrive's row, if the token is current: no other call pauses, cancels or claims it until this write is done. */
export function takeUnder(s: string, run: Run, id: string, token: string): Promise<Redrive | null> {
  return readRedrive(s, run, "r.id = $1::uuid and r.token::text = $2 for no key update", [id, token]);
}

/** An item of a group that went from one state to another. */
export interface Move {
  readonly groupNo: number;
  readonly from: ItemState;
  readonly to: ItemState;
}

/** What is sent before a group is judged is of its canary. */
const addSql = (s: string) => {
  const each = (sql: (state: ItemState) => string) => ITEM_STATES.map(sql).join(", ");
  return `with d as materialized (select * from unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
      d(no, ${each((state) => state)})),
    g as (update ${s}.redrive_group g set ${each((state) => `${state} = g.${state} + d.${state}`)},
      canary = greatest(0, g.canary - greatest(0, d.sent)) from d where g.redrive_id = $1::uuid and g.no = d.no)
    update ${s}.redrive r set ${each((state) => `${state} = r.${state} + t.${state}`)}
    from (select ${each((state) => `coalesce(sum(${state}), 0) as ${state}`)} from d) t where r.id = $1::uuid returning ${COUNTS.list}`;
};

/** Changes the counts of a redrive and of its groups; returns the redrive's. */
export async function addCounts(s: string, run: Run, id: string, moves: readonly Move[]): Promise<RedriveCounts> {
  const sums = new Map<number, Record<ItemState, number>>();
  for (const { groupNo, from, to } of moves) {
    const sum = sums.get(groupNo) ?? { waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 0 };
    sum[from]--;
    sum[to]++;
    sums.set(groupNo, sum);
  }
  const changes = ITEM_STATES.map((state) => [...sums.values()].map((sum) => sum[state]));
  const [row] = await run(addSql(s), [id, [...sums.keys()], ...changes], { name: "mg_redrive_counts" });
  return COUNTS.of(row as Row);
}
