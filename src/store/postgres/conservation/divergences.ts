/**
 * What does not add up, as it was last seen: each look at a place replaces what was found there before, so that what is mended goes away and
 * what is not keeps the time at which it was found.
 */
import type { Divergence, Found } from "../../conservation.ts";
import { epoch, fromEpoch } from "../../shared/clock-sql.ts";
import type { Ask } from "./ledger.ts";

export const IDS_MAX = 100;
const SHOWN_MAX = 1_000;
const DETAILS_MAX = 5;

/** Which part of a scope was looked at; absent: all of it. */
export type Part = { readonly after: string; readonly to: string } | { readonly places: readonly string[] };

export async function replaceFound(ask: Ask, s: string, scope: string, found: readonly Found[], part?: Part): Promise<void> {
  const [where, values] = !part
    ? ["", []]
    : "places" in part
      ? ["and place = any ($2::text[])", [part.places]]
      : ["and place > $2 and place <= $3", [part.after, part.to]];
  const before = await ask(
    `delete from ${s}.conservation_divergence where scope = $1 ${where} returning kind, topic, tenant, found_at::text`,
    [scope, ...values],
  );
  const key = (...of: (string | null | undefined)[]): string => JSON.stringify(of.map((one) => one ?? null));
  const since = new Map(before.map(([kind, topic, tenant, at]) => [key(kind, topic, tenant), at]));
  for (const one of found) {
    const { kind, topic = null, tenantId = null, hour = null, count, ids, detail, place = "" } = one;
    const values = [scope, kind, topic, tenantId, hour, place, count, ids.slice(0, IDS_MAX), detail];
    await ask(
      `insert into ${s}.conservation_divergence (scope, kind, topic, tenant, hour, place, count, ids, detail, found_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10::timestamptz, statement_timestamp()))`,
      [...values, since.get(key(kind, topic, tenantId)) ?? null],
    );
  }
}

/** Those of one kind and bucket as one, however many looks they were found in. */
export async function readFound(ask: Ask, s: string): Promise<{ divergences: Divergence[]; total: number }> {
  const [sum] = await ask(`select coalesce(sum(count), 0)::text from ${s}.conservation_divergence`);
  const rows =
    await ask(`select kind, topic, tenant, ${epoch("hour")}, sum(count)::text, coalesce(array_to_string((array_agg(distinct detail order by detail) filter (where detail is not null))[1:${DETAILS_MAX}], '; '), ''), ${epoch("min(found_at)")},
      (select array_to_string(array(select i from ${s}.conservation_divergence x cross join unnest(x.ids) i
        where (x.kind, x.scope) = (d.kind, d.scope) and (x.topic, x.tenant, x.hour) is not distinct from (d.topic, d.tenant, d.hour) order by i limit ${IDS_MAX}), ','))
    from ${s}.conservation_divergence d group by scope, kind, topic, tenant, hour order by min(found_at), kind limit ${SHOWN_MAX}`);
  const divergences = rows.map(
    ([kind, topic, tenant, hour, count, detail, at, ids]): Divergence => ({
      kind: kind as string,
      topic: topic ?? null,
      tenantId: tenant || null,
      hour: fromEpoch(hour),
      count: Number(count),
      ids: ids ? ids.split(",") : [],
      detail: detail || null,
      foundAt: fromEpoch(at) as Date,
    }),
  );
  return { divergences, total: Number(sum?.[0] ?? 0) };
}
