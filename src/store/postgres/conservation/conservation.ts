/**
 * Conservation of the PostgreSQL store (docs/decisions/0035): a pass counts in what was accepted, compares ids, compares hours and seals
 * them, in steps of which each is a transaction of its own. A pass that is cut off anywhere is continued by the next, in any process.
 */
import { errorText } from "../../../message/errors.ts";
import type { Conservation, PassOptions, Whereabouts } from "../../conservation.ts";
import type { Db } from "../db.ts";
import { checkAccounts, checkDays, checkSeals, type SealWalk } from "./checks.ts";
import { concludeHour, type Hour, nextHour, readSome, type Which } from "./hours.ts";
import { type Ask, asking, createStep, HalfWay, type Mark, NO_ID } from "./ledger.ts";
import { lookAhead, registerSome } from "./register.ts";
import { concludeIn, positionOf, positionSql, reportIn } from "./report.ts";
import { skimSome, walkSome } from "./walk.ts";
import { WHEREABOUTS, whereaboutsSql } from "./whereabouts.ts";

/** How many ids a slice begins with, and seconds of an hour; both follow what the last slice took. */
const IDS_FIRST = 2_000;
const IDS = { min: 200, max: 20_000 };
/** Ids of which only those are looked at that differ. */
const WIDE_FIRST = 20_000;
const WIDE = { min: 2_000, max: 100_000 };
const ACCOUNTS = { min: 50, max: 50_000 };
const SECONDS = { min: 5, max: 3_600 };
/** A slice should take no longer, so that nothing waits long behind the mark. */
const SLICE_MS = 40;
const PASSES_KEPT = 20_000;
const BEGINNING = "-infinity";

export function createPostgresConservation(db: Db): Conservation {
  const { s } = db;
  const step = createStep(db);
  const monotonicMs = (): number => db.clock.monotonicMs();
  let size = IDS_FIRST;
  let seconds = 60;
  let spentMs = 0;
  let reading: Hour | null = null;
  let wide = WIDE_FIRST;
  let differed = false;
  let accounts = { after: "0", size: 500 };
  let seals: SealWalk = { no: "0", head: "" };

  /** A step, and what it took of the server's time: to wait for another pass costs the server nothing. */
  async function timed<T>(work: (ask: Ask, mark: Mark) => Promise<T>): Promise<{ value: T; ms: number }> {
    let ms = 0;
    const value = await step(async (ask, mark) => {
      const began = monotonicMs();
      const result = await work(ask, mark);
      ms = monotonicMs() - began;
      return result;
    });
    spentMs += ms;
    return { value, ms };
  }

  const fitting = (before: number, ms: number, { min, max }: { min: number; max: number }): number =>
    Math.max(min, Math.min(max, ms < SLICE_MS / 3 ? before * 2 : ms > SLICE_MS ? Math.floor(before / 2) : before));

  async function compareHours(which: Which, over: () => boolean): Promise<void> {
    for (let after = BEGINNING; !over(); ) {
      reading ??= (await timed((ask, mark) => nextHour(ask, s, mark, which, after))).value;
      const hour = reading;
      if (!hour) return;
      while (hour.at < SECONDS.max) {
        if (over()) return;
        const { ms } = await timed((ask) => readSome(ask, s, hour, seconds));
        seconds = fitting(seconds, ms, SECONDS);
      }
      reading = null;
      // Read again with the next pass, if retention took something of it meanwhile.
      await timed((ask) => concludeHour(ask, s, hour));
      after = hour.hour;
    }
  }

  /** Ids, until `over` and at least one range: which are where, and closer where that differs. True: the round is at its end. */
  async function skim(over: () => boolean): Promise<boolean> {
    do {
      const { value, ms } = await timed((ask, mark) => skimSome(ask, s, mark, wide, differed));
      differed = value === "differs";
      if (value === "last") return true;
      if (value !== "known") wide = fitting(wide, ms, WIDE);
      else if (wide > WIDE.min) wide = Math.max(WIDE.min, Math.floor(wide / 4));
      else if ((await timed((ask, mark) => walkSome(ask, s, mark, WIDE.min, "walk"))).value) return true;
    } while (!over());
    return false;
  }

  /** Accounts from where the last look ended, or all of them. */
  async function checkSomeAccounts(whole: boolean, over: () => boolean): Promise<void> {
    if (whole) accounts.after = "0";
    do {
      const { value, ms } = await timed((ask) => checkAccounts(ask, s, accounts.after, accounts.size));
      accounts = { after: value ?? "0", size: fitting(accounts.size, ms, ACCOUNTS) };
      if (value === null) return;
    } while (!over());
  }

  async function walkDeep(over: () => boolean): Promise<boolean> {
    do {
      const { value, ms } = await timed((ask, mark) => walkSome(ask, s, mark, size, "deep"));
      size = fitting(size, ms, IDS);
      if (value) return true;
    } while (!over());
    return false;
  }

  async function checkChain(whole: boolean, over: () => boolean): Promise<void> {
    if (whole) seals = { no: "0", head: "" };
    for (let ended = false; !ended; ) {
      ended = (await timed((ask) => checkSeals(ask, s, seals))).value;
      if (ended) seals = { no: "0", head: "" };
      else if (!whole || over()) return;
    }
  }

  async function pass({ reach, budgetMs = Number.POSITIVE_INFINITY, signal }: PassOptions): Promise<void> {
    let began = spentMs;
    /** Each part of a pass leaves some of the time to the next. */
    const over = (part: number) => (): boolean => spentMs - began >= budgetMs * part || signal?.aborted === true;
    const whole = reach !== "slice";
    await timed((ask, mark) => lookAhead(ask, s, mark));
    while ((await timed((ask, mark) => registerSome(ask, s, mark))).value) if (over(1)()) break;
    // What changed is counted in beside it: it follows the traffic, and the comparison must not wait for it.
    began = spentMs;
    if (whole) await timed((ask) => ask(`update ${s}.conservation set walk_at = '${NO_ID}', deep_at = '${NO_ID}'`));
    const rolled = whole ? await walkDeep(over(1)) : await skim(over(0.5));
    if (whole && rolled) await timed((ask) => ask(`update ${s}.conservation set rolled_at = deep_rolled_at`));
    if (!whole) await walkDeep(over(0.6));
    await checkSomeAccounts(whole, over(0.75));
    await timed((ask) => checkDays(ask, s));
    await checkChain(whole, over(1));
    if (whole) reading = null;
    await compareHours(reach === "full" ? "all" : whole ? "unsealed" : "clear", over(1));
    await note();
  }

  /** The pass has a number, and what the store says at that number stays. */
  const note = () =>
    timed((ask) =>
      ask(`with c as (update ${s}.conservation set pass = pass + 1, passed_at = clock_timestamp() returning *),
      d as (delete from ${s}.conservation_pass where no < (select pass from ${s}.conservation) - ${PASSES_KEPT})
      insert into ${s}.conservation_pass (no, at, next_xid, accepted_n, accepted_hash, seal_no, head)
      select c.pass, c.passed_at, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, c.accepted_n, c.accepted_hash, c.seal_no, c.head from c`),
    );

  const conclude: Conservation["conclude"] = (beside, at) => step((ask, mark) => concludeIn(ask, s, mark, beside, at));

  /** Reads without the mark: an answer must not wait for a pass. */
  const look: Ask = async (text, values = []) => [...(await db.connection.rows("verify", text, values, { reads: true }))];
  return {
    async pass(options) {
      try {
        await pass(options);
      } catch (thrown) {
        if (!(thrown instanceof HalfWay)) throw thrown;
        await conclude({ retention: { found: [], unknown: errorText(thrown) } }).catch(() => undefined);
        throw thrown;
      }
    },
    conclude,
    // In one snapshot: a pass may conclude between two statements.
    report: () =>
      db.connection.transaction("verify", async (client) => {
        await client.query("set transaction isolation level repeatable read read only");
        return reportIn(asking(client), s);
      }),
    position: async () => positionOf(await look(positionSql(s, `(select max(no) from ${s}.conservation_pass)`))),
    positionAt: async (no) => positionOf(await look(positionSql(s, "$1::bigint"), [no])),
    async whereabouts(ids) {
      const found = new Map((await look(whereaboutsSql(s), [ids])).map(([id, state]) => [id, WHEREABOUTS[Number(state)]]));
      return ids.map((id): Whereabouts => found.get(id.toLowerCase()) ?? "unknown");
    },
  };
}
