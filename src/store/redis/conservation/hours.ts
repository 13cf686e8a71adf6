/**
 * The comparison of buckets: what is here of each, and what went with retention, against what was accepted, and the accounts against the ids that are open. Only
 * what did not change while it was read is compared. A bucket of an hour that has ended, in which nothing lives, is sealed by that.
 */
import { hash as digest } from "node:crypto";
import { moneyOf } from "../../shared/money.ts";
import { addedAmounts, difference, headOf } from "../../shared/sums.ts";
import type { Db } from "../db.ts";
import { hourOf } from "./count.ts";
import { Findings, type Seen } from "./found.ts";
import { READ_MONEY } from "./money-script.ts";
import { FORGIVE, READ_ACCOUNTS, SEAL } from "./seal-scripts.ts";
import { plus, type Round, type Sums } from "./walk.ts";

const PAGE = 200;
/** An hour that ended less long ago may still get something from a clock that was set back a little. */
const SETTLED_MS = 60_000;

export interface Account {
  readonly number: string;
  readonly topic: string;
  readonly tenant: string;
  readonly hour: number;
  readonly field: string | undefined;
  readonly accepted: Sums;
  readonly money: string;
  /** Delivered, resolved and discarded. */
  readonly ended: Pick<Sums, "n" | "hash">;
  readonly gone: Sums;
  readonly sealed: string | null;
}

type Fields = readonly (string | null)[];

export function accountOf(number: string, fields: Fields): Account {
  const [topic, tenant, hour, field, an, ah, ab, am, dn, rn, xn, sh, gn, gh, gb, sealed] = fields;
  const accepted = { n: Number(an ?? 0), hash: Number(ah ?? 0), body: Number(ab ?? 0) };
  return {
    ...{ number, topic: topic ?? "", tenant: tenant ?? "", hour: Number(hour ?? 0), field: field ?? undefined },
    ...{ accepted, money: am ?? "0", sealed: sealed ?? null },
    // What is sealed has all ended, and its fields are gone.
    ended: sealed ? accepted : { n: Number(dn ?? 0) + Number(rn ?? 0) + Number(xn ?? 0), hash: Number(sh ?? 0) },
    gone: { n: Number(gn ?? 0), hash: Number(gh ?? 0), body: Number(gb ?? 0) },
  };
}

export interface Accounts {
  readonly all: Map<string, Account>;
  /** Names of buckets into which something is still to be counted. */
  readonly coming: ReadonlySet<string>;
}

export const nameOf = ({ topic, tenant, hour }: Account): string => `${topic}\u0000${tenant}\u0000${hour}`;

export async function readAccounts(db: Db): Promise<Accounts> {
  const all = new Map<string, Account>();
  const coming = new Set<string>();
  let cursor = "0";
  do {
    const [next, names, page] = (await db.run(READ_ACCOUNTS, [db.keys.key("books:names")], [cursor, PAGE])) as [
      string,
      string[],
      [string, Fields][],
    ];
    cursor = next;
    for (const name of names) coming.add(name);
    for (const [number, fields] of page) all.set(number, accountOf(number, fields));
  } while (cursor !== "0");
  return { all, coming };
}

export const isClear = ({ accepted, ended, sealed, hour }: Account, nowMs: number): boolean =>
  sealed === null && accepted.n === ended.n && hour * 1_000 + 3_600_000 + SETTLED_MS <= nowMs;

const NOTHING: Sums = { n: 0, hash: 0, body: 0 };
const hashOf = (id: string): number => Number.parseInt(digest("sha1", id, "hex").slice(0, 13), 16);

/** Those of the lost whose hashes are what this account lacks; null: they are not. */
function explained({ topic, hour, accepted, gone }: Account, here: Sums, lost: readonly Seen[]): string[] | null {
  const missing = accepted.n - here.n - gone.n;
  const off = plus(accepted.hash, -plus(here.hash, gone.hash));
  const of = lost.filter((one) => one.topic === topic).map(({ id }) => id as string);
  const timed = of.filter((id) => Math.floor(Number.parseInt(id.replace("-", "").slice(0, 12), 16) / 3_600_000) * 3_600 === hour);
  for (const ids of [timed, of, ...of.map((id) => [id])])
    if (ids.length === missing && ids.reduce((sum, id) => plus(sum, hashOf(id)), 0) === off) return ids;
  return null;
}

/** What of a bucket is here in money; only asked for when payloads differ. */
async function moneyHere(db: Db, { topic, number, field }: Account): Promise<string> {
  let sum = "0";
  for (const state of "piodrx") {
    let after = "";
    do {
      const reply = await db.run(READ_MONEY, [db.keys.key(`s:${state}:${topic}`)], [state, topic, number, after, PAGE]);
      const [to, ...payloads] = reply as string[];
      sum = addedAmounts(sum, ...payloads.map((payload) => moneyOf(payload, field as string)));
      after = to as string;
    } while (after !== "");
  }
  return sum;
}

/** What an account says against what the round has read of it; null: the same. `forgiven`: the version before took it. */
async function compared(db: Db, account: Account, round: Round): Promise<Seen | "forgiven" | null> {
  const { number, accepted, gone, topic, tenant, hour, field, money } = account;
  const here = round.here.get(number) ?? NOTHING;
  const samePayloads = plus(here.body, gone.body) === accepted.body;
  const sameIds = plus(here.hash, gone.hash) === accepted.hash;
  const counts = { accepted: BigInt(accepted.n), here: BigInt(here.n), gone: BigInt(gone.n) };
  const priced = !samePayloads && sameIds && field !== undefined && gone.n === 0;
  const now = priced ? { accepted: money, now: await moneyHere(db, account) } : null;
  const off = difference({ ...counts, sameIds, samePayloads, money: now });
  if (!off) return null;
  const of = { topic, tenantId: tenant, hour: new Date(hour * 1_000) };
  const missing = accepted.n - here.n - gone.n;
  if (off.kind === "message_gone") {
    const ids = explained(account, here, round.lost);
    if (ids) {
      for (const id of ids)
        round.lost.splice(
          round.lost.findIndex((one) => one.id === id),
          1,
        );
      return { ...off, ...of, id: null, ids, count: missing };
    }
    const sums = [plus(accepted.hash, -plus(here.hash, gone.hash)), plus(accepted.body, -plus(here.body, gone.body))];
    if ((await db.run(FORGIVE, [db.keys.key("books")], [number, missing, ...sums])) === 1) return "forgiven";
  }
  return { ...off, ...of, id: null, count: Math.max(1, Math.abs(missing)) };
}

/** An account against the ids that are open of it. */
function unbalanced({ number, accepted, ended, gone, topic, tenant, hour }: Account, round: Round): Seen | null {
  const open = round.open.get(number) ?? NOTHING;
  const same = accepted.n - ended.n === open.n && plus(accepted.hash, -ended.hash) === open.hash && gone.n <= ended.n;
  if (same) return null;
  const detail = `${accepted.n} accepted, ${ended.n} settled, ${open.n} open, ${gone.n} gone with retention`;
  const count = Math.max(1, Math.abs(accepted.n - ended.n - open.n));
  return { kind: "account_unbalanced", id: null, topic, tenantId: tenant, hour: hourOf(hour * 1_000), count, detail };
}

async function seal(db: Db, account: Account): Promise<void> {
  const { number, topic, tenant, hour, accepted, money, gone } = account;
  const books = db.keys.key("books");
  const [seals, before] = (await db.command("seal", books, ["HMGET", books, "seals", "head"])) as (string | null)[];
  const no = String(Number(seals ?? 0) + 1);
  const words = wordsOf({ number, topic, tenant, hour, accepted, money });
  const text = `${headOf(before ?? "", [no, ...words])} ${number} ${JSON.stringify(words)}`;
  await db.run(SEAL, [books], [number, accepted.n, gone.n, no, text]);
}

export const wordsOf = (of: Pick<Account, "number" | "topic" | "tenant" | "hour" | "accepted" | "money">): string[] => {
  const { n, hash, body } = of.accepted;
  return [of.number, of.topic, of.tenant, String(of.hour), String(n), String(hash), String(body), addedAmounts(of.money)];
};

export interface Comparison {
  /** As they were before the round; only these are compared. */
  readonly before: ReadonlyMap<string, Account>;
  readonly round: Round;
  readonly nowMs: number;
  /** Scopes in which something was found before. */
  readonly known: ReadonlySet<string>;
  /** Whether the round was over all ids: what is missing is missing. */
  readonly whole: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Of a round that is at its end. Answers with those that differ where the round did not see everything. */
export async function compareAccounts(db: Db, of: Comparison): Promise<Account[]> {
  const { before, round, nowMs, known, whole, signal } = of;
  const { all, coming } = await readAccounts(db);
  const unsure: Account[] = [];
  const write = async (scope: string, seen: Seen | null): Promise<void> => {
    if (!seen && !known.has(scope)) return;
    const found = new Findings();
    if (seen) found.add(seen);
    await found.write(db, scope, true);
  };
  for (const then of before.values()) {
    const account = all.get(then.number);
    if (signal?.aborted) break;
    if (!account || coming.has(nameOf(account)) || account.accepted.n !== then.accepted.n) continue;
    const { number, ended, gone } = account;
    const open = whole && account.sealed === null && ended.n === then.ended.n ? unbalanced(account, round) : null;
    if (whole && ended.n === then.ended.n) await write(`account ${number}`, open);
    if (round.reach !== "all" || gone.n !== then.gone.n) continue;
    const off = await compared(db, account, round);
    if (off && !whole) unsure.push(account);
    else if (off !== "forgiven") await write(`hour ${number}`, off);
    if (!off && !open && isClear(account, nowMs)) await seal(db, account);
  }
  return unsure;
}
