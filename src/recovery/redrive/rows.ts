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

const addSql = (s: string, from: ItemState) => {
  const each = (sql: (state: ItemState) => string) => ITEM_STATES.map(sql).join(", ");
  const gone = (state: ItemState) => (state === from ? "- count(*)" : "");
  return `with d as materialized (select no, ${each((state) => `count(*) filter (where became = '${state}') ${gone(state)} as ${state}`)}
      from unnest($2::int[], $3::text[]) m(no, became) group by no),
    g as (update ${s}.redrive_group g set ${each((state) => `${state} = g.${state} + d.${state}`)},
      canary = greatest(0, g.canary - greatest(0, d.sent)) from d where g.redrive_id = $1::uuid and g.no = d.no)
    update ${s}.redrive r set ${each((state) => `${state} = r.${state} + t.${state}`)}
    from (select ${each((state) => `coalesce(sum(${state}), 0) as ${state}`)} from d) t where r.id = $1::uuid returning ${COUNTS.list}`;
};

interface Moved {
  readonly groupNo: number;
  readonly to: ItemState;
}

/** Of items that were `from`: what is sent before a group is judged is of its canary. Returns the redrive's counts. */
export async function addCounts(
  s: string,
  run: Run,
  id: string,
  from: ItemState,
  moved: readonly Moved[],
): Promise<RedriveCounts> {
  const values = [id, moved.map(({ groupNo }) => groupNo), moved.map(({ to }) => to)];
  const [row] = await run(addSql(s, from), values, { name: `mg_redrive_no_more_${from}` });
  return COUNTS.of(row as Row);
}
