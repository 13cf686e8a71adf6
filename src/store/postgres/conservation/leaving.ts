/**
 * Sealing before it goes: what retention takes away is written into the accounts in the same transaction, so that "accepted" is not forgotten
 * with a day. A day that holds less than was accepted into it is a divergence at that moment, the last at which it can be seen.
 */
import type { Queryable } from "../connection.ts";
import type { Going, Leaving } from "../statements/prune.ts";
import { replaceFound } from "./divergences.ts";
import { asking, holdMark } from "./ledger.ts";
import { registerDay } from "./register.ts";
import { endedOf, hashOf, judged } from "./sums.ts";
import { settleSql } from "./walk.ts";

export const sealLeaving: Leaving = async (client: Queryable, s: string, going: Going, day) => {
  const ask = asking(client);
  // No pass has been made here: there are no accounts yet.
  const mark = await holdMark(ask, s);
  if (!mark) return;
  await ask("set local enable_seqscan = on");
  if (day !== undefined || mark.phase === 0) await registerDay(ask, s, mark, day ?? null);
  let [n, hash] = [0n, 0n];
  await going.each(async (rows) => {
    const ended =
      await ask(`select o.id::text, (${endedOf(s, "o.id")})::text from ${s}.conservation_open o join ${rows} m on m.id = o.id
      left join ${s}.dead_letter d on d.id = o.id`);
    if (ended.length > 0) await ask(settleSql(s), [ended.map(([id]) => id), ended.map(([, how]) => how)]);
    const [sum] = await ask(`with r as materialized (${judged(s, rows)}),
      u as (update ${s}.conservation_bucket b set archived_n = b.archived_n + g.n, archived_hash = b.archived_hash + g.hash,
          archived_body = b.archived_body + g.body, archived_money = b.archived_money + g.money
        from (select bucket, count(*) as n, sum(hash) as hash, sum(body) as body, coalesce(sum(money), 0) as money from r group by bucket) g
        where b.id = g.bucket)
      select count(*)::text, coalesce(sum(hash), 0)::text from r`);
    n += BigInt(sum?.[0] ?? 0);
    hash += BigInt(sum?.[1] ?? 0);
  });
  if (day === undefined) return;
  const [kept] = await ask(
    `select count(*)::text, coalesce(sum(${hashOf("m.id")}), 0)::text from ${s}.${day} m join ${s}.message_kept k on k.id = m.id`,
  );
  n += BigInt(kept?.[0] ?? 0);
  hash += BigInt(kept?.[1] ?? 0);
  const [known] = await ask(
    `update ${s}.conservation_day set gone_at = statement_timestamp() where name = $1 returning n::text, hash::text`,
    [day],
  );
  const whole = known ? BigInt(known[0] as string) === n && BigInt(known[1] as string) === hash : n === 0n;
  if (whole) return;
  const detail = `${known?.[0] ?? 0} were accepted into ${day}, and ${n} were in it when it went`;
  const missing = Math.max(1, Math.abs(Number(BigInt(known?.[0] ?? 0) - n)));
  await replaceFound(ask, s, "gone-days", [{ kind: "message_gone", count: missing, ids: [], detail, place: day }], {
    places: [day],
  });
};
