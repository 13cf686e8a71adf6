/**
 * Where single ids are, for a producer's own list. An id that retention took is in the sums of its hour, but a sum does not say whether one
 * id is in it: it is told as retired, and the list of a producer is best compared before its retention ends.
 */
import type { Whereabouts } from "../../conservation.ts";

export const WHEREABOUTS: readonly Whereabouts[] = ["unknown", "live", "delivered", "dead", "resolved", "discarded", "retired"];

/** $1 ids. Numbers as in WHEREABOUTS. */
export const whereaboutsSql = (s: string): string => `select x.id::text, case
    when exists (select from ${s}.attempt a where a.message_id = x.id and a.outcome in (1, 2)) then '2'
    when d.resolution < 3 then (3 + d.resolution)::text else '1' end
  from unnest($1::uuid[]) x(id) left join ${s}.dead_letter d on d.id = x.id
  where exists (select from ${s}.message m where m.id = x.id) or exists (select from ${s}.message_kept k where k.id = x.id)
  union all select x.id::text, '6' from unnest($1::uuid[]) x(id) join ${s}.conservation_day y on y.gone_at is not null
    and y.name = 'message_' || to_char(to_timestamp(('x' || left(replace(x.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) at time zone 'UTC', 'YYYYMMDD')
  where not exists (select from ${s}.message m where m.id = x.id) and not exists (select from ${s}.message_kept k where k.id = x.id)`;
