/**
 * Conservation of the Redis store (docs/decisions/0035): a pass counts in what was accepted, compares ids, compares buckets and seals them, in steps of which each is
 * one script. Each is complete: a pass that is cut off anywhere leaves nothing half done, and two may run at once.
 */
import type { Conservation, PassOptions, Whereabouts } from "../../conservation.ts";
import type { Db } from "../db.ts";
import { countIn } from "./count.ts";
import { GIVE_UP } from "./count-scripts.ts";
import { type Account, type Accounts, compareAccounts, isClear, readAccounts } from "./hours.ts";
import { type Books, concludeIn, NOW, numberOf, positionNow, positionThen, readBooks, reportOf, setBooks } from "./report.ts";
import { NOTE } from "./report-scripts.ts";
import { checkSeals, fromTail, type SealWalk } from "./seals.ts";
import { newRound, type Round, walkSome } from "./walk.ts";
import { WHEREABOUTS } from "./walk-script.ts";

/** How many ids a range begins with; it follows what the last one took. */
const IDS = { first: 200, min: 20, max: 2_000 };
/** Redis does nothing else while a script runs. */
const SLICE_MS = 10;
const HOUR_S = 3_600;
/** Producers' clocks are seldom further off; where they are, a bucket is read over all ids. */
const SKEW_S = 2 * HOUR_S;
const ASKED_MAX = 1_000;

interface Walking {
  readonly round: Round;
  readonly before: Accounts;
  readonly beganMs: number;
}

/** Buckets of an hour that are to be sealed. */
interface Sealing {
  readonly accounts: ReadonlyMap<string, Account>;
  readonly round: Round;
  readonly whole: boolean;
}

export function createRedisConservation(db: Db): Conservation {
  const books = db.keys.key("books");
  let size = IDS.first;
  let spentMs = 0;
  let born = "";
  let walking: Walking | null = null;
  let sealing: Sealing[] = [];
  let chain: SealWalk | null = null;
  let fields = new Map<string, string>();

  async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
    const began = db.clock.monotonicMs();
    const value = await work();
    const ms = db.clock.monotonicMs() - began;
    spentMs += ms;
    return { value, ms };
  }

  /** Ranges until `over`, at least one; true: the round is at its end. */
  async function walk(round: Round, over: () => boolean): Promise<boolean> {
    do {
      const { ms } = await timed(() => walkSome(db, round, size, (topic) => fields.get(topic)));
      const fitting = ms < SLICE_MS / 3 ? size * 2 : ms > SLICE_MS ? size >> 1 : size;
      size = Math.max(IDS.min, Math.min(IDS.max, fitting));
    } while (!round.done && !over());
    return round.done;
  }

  async function begin(reach: Round["reach"], full: boolean): Promise<Walking> {
    const { value: before } = await timed(() => readAccounts(db));
    fields = new Map([...before.all.values()].flatMap(({ topic, field }) => (field === undefined ? [] : [[topic, field]])));
    if (!full) for (const [number, { sealed }] of before.all) if (sealed !== null) before.all.delete(number);
    return { round: newRound(reach), before, beganMs: (await readBooks(db)).nowMs };
  }

  /** A round at its end: what it found, and the accounts. */
  async function conclude({ round, before, beganMs }: Walking, signal?: AbortSignal): Promise<void> {
    await countIn(db, signal);
    const state = await readBooks(db);
    const of = { before: before.all, round, nowMs: state.nowMs, known: scopesOf(state), whole: true, signal };
    await timed(() => compareAccounts(db, of));
    for (const seen of round.lost) round.found.add(seen);
    await round.found.write(db, "ids", true);
    const open = [...before.all.values()].filter(({ accepted, ended }) => accepted.n > ended.n);
    const oldest = open.reduce((least, { hour }) => Math.min(least, hour * 1_000), state.nowMs);
    await setBooks(db, { rolled: beganMs, oldest, ...(round.reach === "all" ? { counted: NOW } : {}) });
    if (round.reach === "all") await giveUp(state);
  }

  /** What the version before accepted and two whole rounds have not met went before it could be counted. */
  async function giveUp(state: Books): Promise<void> {
    const uncounted = numberOf(state, "uncounted");
    if (uncounted > 0 && uncounted === numberOf(state, "uncounted_before")) await db.run(GIVE_UP, [books], []);
    await setBooks(db, { uncounted_before: uncounted });
  }

  async function passWhole(full: boolean, signal?: AbortSignal): Promise<void> {
    const over = (): boolean => signal?.aborted === true;
    // What the version before accepted is counted in the first round, and compared in the second.
    for (let late = true, rounds = 0; late && rounds < 2 && !over(); rounds++) {
      const one = await begin("all", full);
      if (!(await walk(one.round, over))) return;
      await conclude(one, signal);
      late = one.round.late > 0;
    }
    chain = null;
    while (!over() && !(await chainSome()));
  }

  async function passSlice(over: (part: number) => () => boolean, signal?: AbortSignal): Promise<void> {
    const state = await readBooks(db);
    const wanted = state.fields.has("counted") && numberOf(state, "uncounted") === 0 ? "live" : "all";
    if (walking?.round.reach !== wanted) walking = null;
    walking ??= await begin(wanted, false);
    if (await walk(walking.round, over(0.6))) {
      await conclude(walking, signal);
      if (sealing.length === 0) sealing = clearHours((await readAccounts(db)).all, state.nowMs);
      walking = null;
    } else await walking.round.found.write(db, "ids", false);
    while (sealing.length > 0 && !over(0.9)()) await sealSome(over(0.9), signal);
    await chainSome();
  }

  /** The next hour: first the ids that were made about then, and all ids where that is not all of it. */
  async function sealSome(over: () => boolean, signal?: AbortSignal): Promise<void> {
    const { accounts, round, whole } = sealing[0] as Sealing;
    if (!(await walk(round, over))) return;
    const state = await readBooks(db);
    const of = { before: accounts, round, nowMs: state.nowMs, known: scopesOf(state), whole, signal };
    const unsure = await compareAccounts(db, of);
    sealing.shift();
    if (unsure.length > 0)
      sealing.push({ accounts: new Map(unsure.map((one) => [one.number, one])), round: newRound("all"), whole: true });
  }

  async function chainSome(): Promise<boolean> {
    const state = await readBooks(db);
    const text = (name: string): string => state.fields.get(name) ?? "";
    const end = {
      seals: numberOf(state, "seals"),
      head: text("head"),
      tail: numberOf(state, "tail"),
      tailHead: text("tail_head"),
    };
    chain ??= fromTail(end);
    const at = chain;
    const { value: ended } = await timed(() => checkSeals(db, at, end));
    if (ended) chain = null;
    return ended;
  }

  async function pass({ reach, budgetMs = Number.POSITIVE_INFINITY, signal }: PassOptions): Promise<void> {
    const began = spentMs;
    const over = (part: number) => (): boolean => spentMs - began >= budgetMs * part || signal?.aborted === true;
    const state = await readBooks(db);
    if (state.born !== born || !state.fields.has("began")) [born, walking, sealing, chain] = [state.born, null, [], null];
    // Whatever it takes: what is not counted in stays in memory.
    await countIn(db, signal);
    if (reach === "slice") await passSlice(over, signal);
    else await passWhole(reach === "full", signal);
    await db.run(NOTE, [books], []);
  }

  return {
    pass,
    conclude: (beside) => concludeIn(db, beside),
    report: async () => reportOf(await readBooks(db)),
    position: async () => positionNow(db, await readBooks(db)),
    async positionAt(no) {
      const key = db.keys.key("books:passes");
      return positionThen(db, no, (await db.command("read a pass", key, ["HGET", key, String(no)])) as string | null);
    },
    async whereabouts(ids) {
      const all: Whereabouts[] = [];
      for (let from = 0; from < ids.length; from += ASKED_MAX) {
        const some = ids.slice(from, from + ASKED_MAX).map((id) => id.toLowerCase());
        const [goneTo = "", ...states] = (await db.run(WHEREABOUTS, some.map(db.keys.message), [])) as string[];
        all.push(
          ...some.map((id, i) => PLACES[states[i] as string] ?? (states[i] === "" && id <= goneTo ? "retired" : "unknown")),
        );
      }
      return all;
    },
  };
}

const PLACES: Readonly<Record<string, Whereabouts>> = {
  ...{ p: "live", i: "live", d: "delivered", o: "dead", r: "resolved", x: "discarded" },
};

/** In which scopes something was found before. */
const scopesOf = ({ found }: Books): ReadonlySet<string> =>
  new Set((found as string[]).filter((_, i) => i % 2 === 0).map((place) => place.split("\u0000", 1)[0] as string));

const idAt = (seconds: number): string => {
  const digits = Math.max(0, seconds * 1_000)
    .toString(16)
    .padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
};

function clearHours(all: ReadonlyMap<string, Account>, nowMs: number): Sealing[] {
  const hours = new Map<number, Map<string, Account>>();
  for (const account of all.values()) {
    if (!isClear(account, nowMs)) continue;
    const of = hours.get(account.hour) ?? new Map<string, Account>();
    hours.set(account.hour, of.set(account.number, account));
  }
  return [...hours.entries()].map(([hour, accounts]) => {
    const range = { after: idAt(hour - SKEW_S), upto: idAt(hour + HOUR_S + SKEW_S) };
    return { accounts, round: newRound("all", range), whole: false };
  });
}
