/**
 * What is compared without reading messages: that every day which should be here is here, that the accounts agree with the ids that are
 * open, and that the chain of seals is as it was made.
 */
import type { Found } from "../../conservation.ts";
import { headOf } from "../../shared/sums.ts";
import { replaceFound } from "./divergences.ts";
import { SEALED } from "./hours.ts";
import type { Ask } from "./ledger.ts";

/** A day's table that is gone, and retention did not take it. */
export async function checkDays(ask: Ask, s: string): Promise<void> {
  const rows = await ask(
    `select d.name, d.n::text from ${s}.conservation_day d where d.gone_at is null and not exists (
      select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = d.name)`,
    [s.replaceAll('"', "")],
  );
  const found = rows.map(
    ([name, n]): Found => ({
      kind: "day_dropped",
      count: Number(n),
      ids: [],
      detail: `${name} held ${n} accepted messages and is gone, and retention did not take it`,
      place: name as string,
    }),
  );
  await replaceFound(ask, s, "days", found);
}

/**
 * What the accounts say is open, against the ids that are; and no account may have given away more than it took. The next so many accounts
 * after one: those that are not sealed, and those that have open ids. Gives back the last of them; null: there are no more.
 */
export async function checkAccounts(ask: Ask, s: string, after: string, size: number): Promise<string | null> {
  const rows = await ask(
    `with recursive
    h(bucket) as (
      (select bucket from ${s}.conservation_open where bucket > $1::int order by bucket limit 1)
      union all select (select o.bucket from ${s}.conservation_open o where o.bucket > h.bucket order by o.bucket limit 1) from h where h.bucket is not null),
    w as materialized (select id from ((select id from ${s}.conservation_bucket where sealed is null and id > $1::int order by id limit $2::int)
      union (select bucket from h where bucket is not null limit $2::int)) x order by id limit $2::int)
    select b.id::text, b.topic, b.tenant, b.hour::text, b.accepted_n::text, (b.delivered_n + b.resolved_n + b.discarded_n)::text,
      o.n::text, b.archived_n::text, (select max(id) from w)::text, (select count(*) from w)::text
    from (select true) one left join (w join ${s}.conservation_bucket b on b.id = w.id
      cross join lateral (select count(*) as n, coalesce(sum(o.hash), 0) as hash from ${s}.conservation_open o where o.bucket = b.id) o)
      on b.accepted_n - b.delivered_n - b.resolved_n - b.discarded_n <> o.n
      or b.accepted_hash - b.settled_hash <> o.hash or b.archived_n > b.delivered_n + b.resolved_n + b.discarded_n
      or (b.archived_n = b.accepted_n and (b.archived_hash, b.archived_body, b.archived_money) <> (b.accepted_hash, b.accepted_body, b.accepted_money))
    order by b.id`,
    [after, size],
  );
  const [last, count] = rows[0]?.slice(8) ?? [];
  const next = Number(count ?? 0) < size ? null : (last as string);
  const wrong = rows.filter(([bucket]) => bucket !== null);
  const found = wrong.map(
    ([bucket, topic, tenant, hour, accepted, settled, open, archived]): Found => ({
      kind: "account_unbalanced",
      topic: topic as string,
      tenantId: tenant as string,
      hour: new Date(hour as string),
      count: Math.max(1, Math.abs(Number(accepted) - Number(settled) - Number(open))),
      ids: [],
      detail: `${accepted} accepted, ${settled} settled, ${open} open, ${archived} gone with retention`,
      place: (bucket as string).padStart(12, "0"),
    }),
  );
  const part = { after: after === "0" ? "" : after.padStart(12, "0"), to: next === null ? "~" : next.padStart(12, "0") };
  await replaceFound(ask, s, "accounts", found, part);
  return next;
}

const SEALS = 5_000;

export interface SealWalk {
  no: string;
  head: string;
}

/** Seals after this one, and the buckets that they are of: each link, and each bucket as it was sealed. True when it was the last part. */
export async function checkSeals(ask: Ask, s: string, at: SealWalk): Promise<boolean> {
  const columns = SEALED.replace(/accepted_(n|hash|body|money)/g, "x.$1").replace(/\b(topic|tenant|hour)\b/g, "x.$1");
  const now = SEALED.replace(/accepted_(n|hash|body|money)/g, "b.accepted_$1").replace(/\b(topic|tenant|hour)\b/g, "b.$1");
  const rows = await ask(
    `select x.no::text, x.bucket::text, x.head, ${columns}, b.sealed::text, ${now} from ${s}.conservation_seal x
    left join ${s}.conservation_bucket b on b.id = x.bucket where x.no > $1::bigint order by x.no limit ${SEALS}`,
    [at.no],
  );
  const [end] = await ask(`select seal_no::text, head from ${s}.conservation`);
  const after = at.no;
  const found: Found[] = [];
  const wrong = (place: string, words: readonly (string | null)[], detail: string): void => {
    const [topic = null, tenant = null, hour] = words;
    const of = { topic, tenantId: tenant, hour: hour ? new Date(Number(hour) * 1_000) : null };
    found.push({ kind: "seal_edited", ...of, count: 1, ids: [], detail, place: place.padStart(20, "0") });
  };
  let last = at;
  for (const [no, bucket, head, ...rest] of rows) {
    const [words, sealed, held] = [rest.slice(0, 7) as string[], rest[7] ?? null, rest.slice(8)];
    const expected = headOf(last.head, [no as string, bucket as string, ...words]);
    if (BigInt(no as string) !== BigInt(last.no) + 1n) wrong(no as string, words, `seals between ${last.no} and ${no} are gone`);
    else if (head !== expected) wrong(no as string, words, `seal ${no} is not as it was made`);
    if (held[0] === null || held[0] === undefined) wrong(no as string, words, `the bucket of seal ${no} is gone`);
    else if (sealed === no && JSON.stringify(held) !== JSON.stringify(words))
      wrong(no as string, words, `the bucket was sealed with ${words[3]} messages and says ${held[3]}, or its sums differ`);
    last = { no: no as string, head: head as string };
  }
  at.no = last.no;
  at.head = last.head;
  const done = rows.length < SEALS;
  if (done && (end?.[0] !== at.no || end?.[1] !== at.head))
    wrong(end?.[0] ?? "0", [], `the chain of seals ends at ${at.no}, and ${end?.[0]} were made`);
  const to = done ? "9".repeat(20) : at.no.padStart(20, "0");
  await replaceFound(ask, s, "seals", found, { after: after === "0" ? "" : after.padStart(20, "0"), to });
  return done;
}
