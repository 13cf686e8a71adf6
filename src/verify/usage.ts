/**
 * Usage: what was debited, what was reported and what is delivered are the same (DX-3, I12). Each turn that ended has its event with the
 * credits that were debited, each event its turn, and each quota the sum of its turns; that the events are delivered is the store's own account.
 */
import type { Beside, Found } from "../store/conservation.ts";
import type { Home, Run } from "../store/home.ts";
import type { Place } from "./verify.ts";

const IDS_MAX = 100;
const TURNS = 5_000;
const FIRST = { tenant: "00000000-0000-0000-0000-000000000000", turn: "00000000-0000-0000-0000-000000000000" };

/**
 * $1 tenant, $2 turn to begin after. An event that retention has taken is not missing: its day is gone. Columns: which turn, how it differs.
 */
const turnsSql = (s: string): string => `with t as materialized (select * from ${s}.chat_turns
    where (tenant_id, turn_id) > ($1::uuid, $2::uuid) order by tenant_id, turn_id limit ${TURNS}),
  e as (select t.tenant_id, t.turn_id, t.credits, t.message_id, coalesce(m.payload, k.payload) as payload
    from t left join ${s}.message m on m.id = t.message_id left join ${s}.message_kept k on k.id = t.message_id where t.state <> 'running')
  select (select tenant_id::text || ' ' || turn_id::text from t order by tenant_id desc, turn_id desc limit 1), (select count(*) from t)::text, e.turn_id::text,
    case when e.payload is null then 'its event is gone' else e.credits::text || ' credits were debited, and its event says ' || coalesce(e.payload::json ->> 'settled_credits', 'none') end
  from (select true) one left join e on case when e.payload is null then not exists (select from ${s}.conservation_day d where d.gone_at is not null
      and d.name = 'message_' || to_char(to_timestamp(('x' || left(replace(e.message_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) at time zone 'UTC', 'YYYYMMDD'))
    else e.payload::json ->> 'settled_credits' is distinct from e.credits::text end`;

/** Turns that retention has taken are still in the quota: where all are here the sums must be equal, and never more than it says. */
const quotasSql = (s: string): string => `with t as (
    select t.tenant_id, coalesce(t.user_id, '00000000-0000-0000-0000-000000000000') as user_id, t.period, b.value ->> 0 as bucket,
      count(*) filter (where t.state <> 'running') as settled, coalesce(sum(t.credits), 0) as credits,
      count(*) filter (where t.state = 'running') as running, coalesce(sum(t.reserved_credits) filter (where t.state = 'running'), 0) as reserved
    from ${s}.chat_turns t cross join lateral json_array_elements(t.buckets::json) b group by 1, 2, 3, 4)
  select q.tenant_id::text, q.period || ' ' || q.bucket, q.spent_credits::text, coalesce(t.credits, 0)::text, q.reserved_credits::text, coalesce(t.reserved, 0)::text
  from ${s}.quota_usage q left join t on (t.tenant_id, t.user_id, t.period, t.bucket) = (q.tenant_id, q.user_id, q.period, q.bucket)
  where coalesce(t.settled, 0) > q.turns_settled or coalesce(t.running, 0) <> q.turns_running or coalesce(t.reserved, 0) <> q.reserved_credits
    or coalesce(t.credits, 0) > q.spent_credits or (coalesce(t.settled, 0) = q.turns_settled and coalesce(t.credits, 0) <> q.spent_credits)
  order by 1, 2 limit ${IDS_MAX}`;

/** Places of what is found: turns by their ids, up to the last one, and quotas behind them, which only a look at everything compares. */
const placeOf = ({ tenant, turn }: typeof FIRST): string => `${tenant} ${turn}`;
const LAST = "z";
const QUOTAS = "~";

export function usagePlace(home: Home): Place {
  const { s } = home;
  const run: Run = home.read("verify usage");
  let after = FIRST;

  /** A window of turns, or all of them: what was found, and which part it was. */
  async function turns(all: boolean): Promise<Required<Pick<Beside, "found" | "part">>> {
    const found: Found[] = [];
    if (all) after = FIRST;
    const part = { after: placeOf(after), to: LAST };
    for (;;) {
      const rows = await run(turnsSql(s), [after.tenant, after.turn]);
      const [last, count] = rows[0] ?? [];
      const [tenant = FIRST.tenant, turn = FIRST.turn] = (last ?? "").split(" ");
      const ended = Number(count ?? 0) < TURNS;
      after = ended ? FIRST : { tenant, turn };
      part.to = ended ? LAST : placeOf(after);
      const wrong = rows.flatMap(([, , id, detail]) => (id ? [{ id, detail }] : []));
      const ids = wrong.map(({ id }) => id);
      const detail = `turn ${ids[0]}: ${wrong[0]?.detail}`;
      if (ids.length > 0)
        found.push({ kind: "usage_unbalanced", count: ids.length, ids: ids.slice(0, IDS_MAX), detail, place: part.to });
      if (ended || !all) return { found, part };
    }
  }

  async function quotas(): Promise<Found[]> {
    return (await run(quotasSql(s))).map(([tenant, bucket, spent, debited, reserved, held]): Found => {
      const detail = `quota ${bucket}: ${spent} credits spent, and its turns add up to ${debited}; ${reserved} reserved, and its turns to ${held}`;
      return { kind: "usage_unbalanced", tenantId: tenant as string, count: 1, ids: [], detail, place: QUOTAS };
    });
  }

  return {
    name: "usage",
    async look(reach): Promise<Beside> {
      const [there] = await run("select to_regclass($1)::text", [`${s}.chat_turns`]);
      if (!there?.[0]) return { found: [], unknown: null };
      const all = reach !== "slice";
      const { found, part } = await turns(all);
      return all ? { found: [...found, ...(await quotas())], unknown: null } : { found, part, unknown: null };
    },
  };
}
