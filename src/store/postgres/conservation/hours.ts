/**
 * The comparison of hours: what is here of an hour, and what retention took from it, against what was accepted in it: numbers, ids, payloads
 * and money. An hour's bucket in which nothing lives and into which no open transaction can still write is sealed by that, in a chain.
 */
import type { Found } from "../../conservation.ts";
import { addedAmounts, difference, headOf } from "../../shared/sums.ts";
import { IDS_MAX, replaceFound } from "./divergences.ts";
import { type Ask, type Mark, refuseHalfWay } from "./ledger.ts";
import { SLACK } from "./register.ts";
import { bodyOf, hashOf, hourOf, NEXT_XID, xidOf } from "./sums.ts";

export interface Hour {
  readonly hour: string;
  /** What counts as accepted for this reading. */
  readonly from: string;
  readonly accounts: ReadonlyMap<string, Account>;
  readonly sums: Map<string, Sums>;
  /** Up to which second of the hour it has been read. */
  at: number;
}

interface Sums {
  n: bigint;
  hash: bigint;
  body: bigint;
  money: string;
}

interface Account extends Sums {
  readonly topic: string;
  readonly tenant: string;
  readonly clear: boolean;
  readonly archived: Sums;
}

export type Which = "clear" | "unsealed" | "all";

/** `safe`: nothing that is still open can write into an hour that ended before. */
const hoursSql = (s: string, which: Which): string => {
  const wanted = {
    clear:
      "b.sealed is null and b.accepted_n = b.delivered_n + b.resolved_n + b.discarded_n and b.hour + interval '1 hour' <= f.safe",
    unsealed: "b.sealed is null",
    all: "true",
  }[which];
  return `with f as materialized (select coalesce((select p.at from ${s}.conservation_pass p
      where p.next_xid <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint order by p.no desc limit 1) - ${SLACK}, '-infinity') as safe),
    h as materialized (select distinct b.hour from f cross join ${s}.conservation_bucket b where b.hour > $1::timestamptz and ${wanted} order by 1 limit 1)
    select b.hour::text, b.id::text, b.topic, b.tenant, (b.accepted_n = b.delivered_n + b.resolved_n + b.discarded_n and b.hour + interval '1 hour' <= f.safe and b.sealed is null)::text,
      b.accepted_n::text, b.accepted_hash::text, b.accepted_body::text, b.accepted_money::text,
      b.archived_n::text, b.archived_hash::text, b.archived_body::text, b.archived_money::text
    from f cross join h join ${s}.conservation_bucket b on b.hour = h.hour where ${wanted}`;
};

const sumsOf = ([n, hash, body, money]: readonly (string | null)[]): Sums => ({
  n: BigInt(n ?? 0),
  hash: BigInt(hash ?? 0),
  body: BigInt(body ?? 0),
  money: money ?? "0",
});

/** The next hour after this one that has such buckets; null: there is none. */
export async function nextHour(ask: Ask, s: string, mark: Mark, which: Which, after: string): Promise<Hour | null> {
  await ask("set local enable_seqscan = on");
  const rows = await ask(hoursSql(s, which), [after]);
  const [first] = rows;
  if (!first) return null;
  const accounts = new Map(
    rows.map(([, bucket, topic, tenant, clear, ...rest]): [string, Account] => [
      bucket as string,
      {
        topic: topic as string,
        tenant: tenant as string,
        clear: clear === "true",
        ...sumsOf(rest),
        archived: sumsOf(rest.slice(4)),
      },
    ]),
  );
  return { hour: first[0] as string, from: mark.from, accounts, sums: new Map(), at: 0 };
}

/** $1 from when, $2 until when: what is here of each bucket. A body that is in both places is one. */
const readSql = (s: string, from: string): string => {
  const made = "m.created_at >= $1::timestamptz and m.created_at < $2::timestamptz";
  const columns = "m.id, m.lane_id, m.created_at, m.payload";
  return `with ${NEXT_XID}, m as (
      select ${columns} from x cross join ${s}.message m where ${made} and ${xidOf("m")} < ${from}
      union all select ${columns} from ${s}.message_kept m where ${made} and not exists (select from ${s}.message o where o.id = m.id))
    select b.id::text, count(*)::text, sum(${hashOf("m.id")})::text, sum(${bodyOf("m.id", "m.payload")})::text,
      coalesce(sum(case when b.money_field is not null then ${s}.money_of(m.payload, b.money_field) end), 0)::text
    from m join ${s}.lane l on l.id = m.lane_id join ${s}.topic t on t.id = l.topic_id
    join ${s}.conservation_bucket b on b.topic = t.name and b.tenant = l.tenant and b.hour = ${hourOf("m.created_at")} group by b.id`;
};

const SECONDS = 3_600;

/** So many seconds of the hour; true when it is read to its end. */
export async function readSome(ask: Ask, s: string, hour: Hour, seconds: number): Promise<boolean> {
  const to = Math.min(SECONDS, hour.at + seconds);
  const time = (second: number): string => new Date(Date.parse(hour.hour) + second * 1_000).toISOString();
  for (const [bucket, ...rest] of await ask(readSql(s, hour.from), [time(hour.at), time(to)])) {
    const one = sumsOf(rest);
    const sum = hour.sums.get(bucket as string);
    if (!sum) hour.sums.set(bucket as string, one);
    else {
      sum.n += one.n;
      sum.hash += one.hash;
      sum.body += one.body;
      sum.money = addedAmounts(sum.money, one.money);
    }
  }
  await refuseHalfWay(ask, s);
  hour.at = to;
  return to === SECONDS;
}

const NOTHING = (): Sums => ({ n: 0n, hash: 0n, body: 0n, money: "0" });

/** What an account says against what was read of it; null: the same. */
function compared(account: Account, here: Sums): { kind: string; detail: string } | null {
  const { archived } = account;
  return difference({
    ...{ accepted: account.n, here: here.n, gone: archived.n },
    sameIds: here.hash + archived.hash === account.hash,
    samePayloads: here.body + archived.body === account.body,
    money: { accepted: account.money, now: addedAmounts(here.money, archived.money) },
  });
}

/** Ids that were delivered in this hour's day and have no message; only looked for when the numbers say that some are missing. */
const goneSql = (s: string): string => `select distinct a.message_id::text from ${s}.attempt a
  where a.at >= $1::timestamptz and a.at < $1::timestamptz + interval '26 hours' and a.outcome in (1, 2)
    and not exists (select from ${s}.message m where m.id = a.message_id) and not exists (select from ${s}.message_kept k where k.id = a.message_id)
  limit ${IDS_MAX}`;

/** With the hour read: what differs, and seals for what is clear and does not. False: it changed meanwhile and must be read again. */
export async function concludeHour(ask: Ask, s: string, hour: Hour): Promise<boolean> {
  const now = await ask(
    `select id::text, archived_n::text, (sealed is null and accepted_n = delivered_n + resolved_n + discarded_n)::text, accepted_n::text
    from ${s}.conservation_bucket where id = any ($1::int[])`,
    [[...hour.accounts.keys()]],
  );
  const state = new Map(now.map(([id, ...rest]) => [id as string, rest]));
  const found: Found[] = [];
  for (const [bucket, account] of hour.accounts) {
    const [archivedNow, clear, acceptedNow] = state.get(bucket) ?? [];
    if (BigInt(archivedNow ?? -1) !== account.archived.n) return false;
    const { topic, tenant, n } = account;
    const here = hour.sums.get(bucket) ?? NOTHING();
    const off = compared(account, here);
    const missing = Number(n - here.n - account.archived.n);
    const of = { topic, tenantId: tenant, hour: new Date(hour.hour), place: `${hour.hour} ${bucket}` };
    if (off) found.push({ ...off, ...of, count: Math.max(1, Math.abs(missing)), ids: [] });
    else if (account.clear && clear === "true" && BigInt(acceptedNow ?? -1) === n) await seal(ask, s, bucket);
  }
  if (found.some(({ kind }) => kind === "message_gone")) {
    const gone = (await ask(goneSql(s), [hour.hour])).map(([id]) => id as string);
    const only = found.filter(({ kind }) => kind === "message_gone");
    // Which hour an attempt belongs to is only known by its message: they are named where there is one such bucket.
    if (only.length === 1)
      found[found.indexOf(only[0] as Found)] = { ...(only[0] as Found), ids: gone.slice(0, Math.max(1, only[0]?.count ?? 1)) };
  }
  const places = [...hour.accounts.keys()].map((bucket) => `${hour.hour} ${bucket}`);
  await replaceFound(ask, s, "hours", found, { places });
  return true;
}

/** A seal's words, of which its head is made. */
export const SEALED =
  "topic, tenant, extract(epoch from hour)::bigint::text, accepted_n::text, accepted_hash::text, accepted_body::text, trim_scale(accepted_money)::text";

async function seal(ask: Ask, s: string, bucket: string): Promise<void> {
  const [chain] = await ask(`select seal_no::text, head from ${s}.conservation`);
  const [words] = await ask(`select ${SEALED} from ${s}.conservation_bucket where id = $1::int`, [bucket]);
  const no = String(BigInt(chain?.[0] ?? 0) + 1n);
  const head = headOf(chain?.[1] ?? "", [no, bucket, ...(words as string[])]);
  await ask(
    `with i as (insert into ${s}.conservation_seal (no, bucket, topic, tenant, hour, n, hash, body, money, head)
      select $1::bigint, id, topic, tenant, hour, accepted_n, accepted_hash, accepted_body, accepted_money, $2 from ${s}.conservation_bucket where id = $3::int),
    b as (update ${s}.conservation_bucket set sealed = $1::bigint where id = $3::int)
    update ${s}.conservation set seal_no = $1::bigint, head = $2`,
    [no, head, bucket],
  );
}
