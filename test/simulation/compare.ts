/**
 * Plays the calls of a history, as the memory store saw them, to another store and compares each answer. The first difference ends it.
 */
import { isMakegoodError } from "../../src/message/errors.ts";
import type { BreakerState, TopicRecord } from "../../src/message/topic.ts";
import { idFloor } from "../../src/platform/ids.ts";
import type { Store } from "../../src/store/store.ts";
import type { Action } from "./actions.ts";
import { TOPICS } from "./actions.ts";
import { Judge } from "./judge.ts";
import { Ledger, type Row, scopeOf } from "./ledger.ts";
import type { Call } from "./observed-store.ts";
import { playHistory } from "./simulate.ts";
import { Difference, Twin } from "./twin.ts";
import { START_MS, World } from "./world.ts";

export interface Compared {
  readonly seed: number;
  readonly calls: number;
  /** The call and what was different; null: nothing was. */
  readonly difference: string | null;
}

const DAY_MS = 24 * 3_600_000;
const YEAR_MS = 365 * DAY_MS;
/** Asked so often that only each so many is compared. */
const SELDOM: Readonly<Record<string, number>> = { lanes: 4, "topics.list": 8, "topics.get": 2, "topics.announce": 20 };
const NEVER: ReadonlySet<string> = new Set(["idle", "check", "open", "topics.workers", "list", "counts"]);

/** More ordering keys than anybody looks at at once, delayed, and after them some that are due (N16). */
export function manyKeys(keys: number): Action[] {
  const one = { do: "o", keyed: false, tenant: null, priority: 0 };
  const late = Array.from({ length: keys }, (_, i) => ({ ...one, n: 500_000 + i, orderingKey: `a${i}`, delayMs: 86_400_000 }));
  const send = (sent: typeof late): Action => ({ afterMs: 50, kind: "send", slot: 3, how: "many", topic: TOPICS.keyed, sent });
  const parts = Array.from({ length: Math.ceil(keys / 500) }, (_, i) => send(late.slice(i * 500, (i + 1) * 500)));
  return [...parts, send([1, 2, 3].map((i) => ({ ...one, n: 600_000 + i, orderingKey: `z${i}`, delayMs: 0 })))];
}

/** `store` is open and empty. */
export async function compare(seed: number, steps: number, store: Store): Promise<Compared> {
  const calls: Call[] = [];
  const first = seed % 2 === 1 ? manyKeys(1_100) : [];
  const record = (call: Call): void => void calls.push(call);
  const history = await playHistory({ seed, stormSteps: steps / 2, stepsMax: steps, keptMs: YEAR_MS, first, record });
  if (history.failure) return { seed, calls: 0, difference: `the memory store itself: ${history.failure.text}` };
  const world = new World();
  const ledger = new Ledger();
  const judge = new Judge(world, ledger);
  const twin = new Twin(store, Date.now() - START_MS, ledger);
  const asked = new Map<string, number>();
  let made = 0;
  for (const call of calls) {
    world.nowMs = call.atMs;
    const count = asked.get(call.verb) ?? 0;
    asked.set(call.verb, count + 1);
    if (NEVER.has(call.verb) || count % (SELDOM[call.verb] ?? 1) !== 0) continue;
    made++;
    const difference = await play(call, twin, judge, ledger).catch((error) => {
      if (error instanceof Difference) return error.message;
      throw error;
    });
    if (difference)
      return { seed, calls: made, difference: `call ${made}, ${call.verb} at ${call.atMs - START_MS} ms: ${difference}` };
  }
  return { seed, calls: made, difference: await compareEnd(twin, ledger, world) };
}

// biome-ignore lint/suspicious/noExplicitAny: a recorded call has the arguments and the answer of its own verb
type Recorded = any;

async function play(
  { verb, args, answer, thrown, atMs }: Call,
  twin: Twin,
  judge: Judge,
  ledger: Ledger,
): Promise<string | null> {
  const given = args as Recorded[];
  const got = answer as Recorded;
  const at = twin.at(atMs);
  const { store } = twin;
  switch (verb) {
    case "enqueue": {
      const found = await twin
        .enqueue(given[0], atMs, given[1]?.atomic)
        .catch((error) => (isMakegoodError(error) ? error.code : error));
      if (thrown !== null) return same(found, thrown);
      judge.enqueued(given[0], got, given[1]);
      // Of a call that is refused as a whole only the conflicts are promised.
      const refused = got.some(({ kind }: Recorded) => kind === "conflict");
      const told = (list: Recorded): unknown => (refused ? list.filter(({ kind }: Recorded) => kind === "conflict") : list);
      return Array.isArray(found) ? same(told(found), told(got)) : `refused as ${found}`;
    }
    case "claim":
      await twin.claim(given[0], got, atMs);
      judge.claimed(given[0], got);
      return null;
    case "settle": {
      const found = await twin.settle(given[0], atMs);
      judge.settled(given[0], got);
      return same(found, got);
    }
    case "extend":
      await twin.extend(given[0], given[1], got, atMs);
      judge.extended(given[0], given[1], got);
      return null;
    case "reclaim":
      await twin.reclaim(given[0], got, atMs);
      judge.reclaimed(given[0], got);
      return null;
    case "lanes":
      if (given[0]?.after === undefined && got.length < (given[0]?.limit ?? Number.POSITIVE_INFINITY))
        await twin.lanes(got, atMs);
      return null;
    case "intervene": {
      const id = twin.id(given[0].id);
      // Revisions are each store's own (PostgreSQL also raises them when a message dies): what was right or stale there is so here.
      const stale = given[0].revision !== ledger.entries.get(given[0].id)?.revision;
      const seen = given[0].revision === undefined ? undefined : ((await store.get(id, at))?.revision ?? 0) + (stale ? 1 : 0);
      const found = await store.intervene({ ...given[0], id, revision: seen, ...at });
      judge.intervened(given[0], got);
      const told = ({ kind, status, resolution, message }: Recorded) => [kind, status, resolution, message?.status];
      return same(told(found), told(got));
    }
    case "get":
      return same(shown(await store.get(twin.id(given[0]), at)), shown(got));
    case "prune":
      return same(await store.prune({ ...given[0], ...at }), got);
    case "lead": {
      const found = await store.lead(given[0], given[1], given[2], at);
      // Who led before it was given up is not promised.
      return same([found.held, got.owner === "" ? "" : found.owner], [got.held, got.owner]);
    }
    default:
      return playTopics(verb, given, got, store, at, judge, ledger);
  }
}

async function playTopics(
  verb: string,
  given: Recorded[],
  got: Recorded,
  { topics }: Store,
  at: { readonly now: Date },
  judge: Judge,
  ledger: Ledger,
): Promise<string | null> {
  switch (verb) {
    case "topics.put": {
      const found = await topics.put(given[0], given[1]);
      if (got !== "read_only") judge.topicPut(given[0]);
      return same(topicOf(found), topicOf(got));
    }
    case "topics.pause": {
      const found = await topics.pause(given[0], given[1]);
      if (got) judge.topicHeld(given[0], { paused: given[1] });
      return same(topicOf(found), topicOf(got));
    }
    case "topics.disable":
      await topics.disable(given[0], given[1]);
      judge.topicHeld(given[0], { disabled: true });
      return null;
    case "topics.get":
      return same(topicOf(await topics.get(given[0], at)), topicOf(got));
    case "topics.list":
      return same((await topics.list(at)).map(topicOf), got.map(topicOf));
    case "topics.trip":
      return same(breakerOf(await topics.trip(given[0], given[1], given[2], { ...given[3], ...at })), breakerOf(got));
    case "topics.probe":
      return same(await topics.probe(given[0], given[1], given[2], { ...given[3], ...at }), got);
    case "topics.reset":
      await topics.reset(given[0], given[1]);
      return null;
    case "topics.announce":
      await topics.announce(given[0], given[1], at);
      return null;
    case "topics.allot": {
      const found = await topics.allot(given[0], at);
      return same(
        found.map(({ granted }) => granted),
        got.map(({ granted }: Recorded) => granted),
      );
    }
    case "topics.occupy":
      return same(await topics.occupy(given[0], given[1], given[2], at), got);
    default:
      return ledger.topics.size >= 0 ? null : verb;
  }
}

async function compareEnd(twin: Twin, ledger: Ledger, world: World): Promise<string | null> {
  if (world.failure) return `the ledger: ${world.failure.text}`;
  for (const entry of ledger.entries.values()) {
    const { message, status, attempts, generation, resolution, heldReason, rows, place, lastRow, provenance, lastAct } = entry;
    // Of many that nobody touched a tenth says as much as all of them.
    if (rows === 0 && status === "pending" && place % 10 !== 0) continue;
    const id = twin.id(message.id);
    const view = await twin.store.get(id, twin.at(world.nowMs));
    const expected = [status, attempts, generation, resolution, heldReason, message.payload, message.key];
    const history = await twin.store.history(id);
    const row = history.attempts.at(-1);
    const { outcome, counted, code, error } = row ?? {};
    const act = history.provenance.at(-1);
    const difference =
      same(shown(view), expected) ??
      same(history.attempts.length, rows) ??
      same(row ? [row.attempt, outcome, counted, code, error] : null, rowOf(lastRow)) ??
      same(history.provenance.length, provenance) ??
      same(act ? [act.action, act.actor, act.reason] : null, lastAct && [lastAct.action, lastAct.actor, lastAct.reason]);
    if (difference) return `at the end, ${message.topic} ${message.id}: ${difference}`;
  }
  return (await compareLists(twin, ledger)) ?? compareRetention(twin, ledger, world);
}

/** By topic, tenant and state: what a list and the counts say. */
async function compareLists({ store, back }: Twin, ledger: Ledger): Promise<string | null> {
  const expected = new Map<string, string[]>();
  for (const { message, status, resolution } of ledger.entries.values()) {
    const { topic, tenantId, id } = message;
    const names = [
      { topic, status },
      ...(tenantId === null ? [] : [{ tenantId, status }]),
      ...(resolution ? [{ resolution }] : []),
    ];
    for (const name of names.map((one) => JSON.stringify(one))) expected.set(name, [...(expected.get(name) ?? []), id]);
  }
  for (const [name, ids] of expected) {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.list({ ...JSON.parse(name), limit: 100, cursor });
      found.push(...page.data.map(({ id }) => back(id)));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    if (same(found.sort(), ids.sort())) return `at the end: ${found.length} are listed for ${name}, not ${ids.length}`;
  }
  for (const { topic, status, resolution, count } of await store.counts({ delivered: true })) {
    const there = [...ledger.entries.values()].filter(
      (one) => one.message.topic === topic && one.status === status && one.resolution === resolution,
    );
    if (there.length !== count)
      return `at the end: ${count} are counted for ${topic} ${status} ${resolution}, not ${there.length}`;
  }
  return null;
}

/** Days later: what is settled goes with its key, whatever is not stays with everything that is known of it (I2). */
async function compareRetention(twin: Twin, ledger: Ledger, world: World): Promise<string | null> {
  const { store } = twin;
  const last = [...ledger.entries.values()].reduce((latest, { settledMs }) => Math.max(latest, settledMs ?? 0), 0);
  const early = await store.prune({ keptMs: 3 * DAY_MS, limit: 10_000, ...twin.at(world.nowMs + DAY_MS) });
  if (early > 0) return `I2: retention deleted ${early} before their time`;
  await store.prune({ keptMs: DAY_MS, limit: 10_000, ...twin.at(last + 4 * DAY_MS) });
  await store.prune({ keptMs: DAY_MS, limit: 10_000, ...twin.at(last + 4 * DAY_MS) });
  for (const { message, status, settledMs, rows, provenance, place } of ledger.entries.values()) {
    if (rows === 0 && status === "pending" && place % 10 !== 0) continue;
    const view = await store.get(twin.id(message.id), twin.at(last + 4 * DAY_MS));
    const kept = settledMs === null;
    // What a lease names stays until that lease is over, and it never is here.
    if (!kept && view !== null && ledger.leases.size > 0) continue;
    if (kept !== (view !== null))
      return `I2: ${message.topic} ${message.id} is ${status}, and retention ${kept ? "deleted" : "kept"} it`;
    if (!kept) continue;
    const { attempts, provenance: acts } = await store.history(twin.id(message.id));
    const lost = same([view?.status, attempts.length, acts.length], [status, rows, provenance]);
    if (lost) return `I2: after retention ${message.topic} ${message.id} ${lost}`;
  }
  return compareKeys(twin, ledger, last + 4 * DAY_MS);
}

/** A key protects as long as its message lives. */
async function compareKeys(twin: Twin, ledger: Ledger, atMs: number): Promise<string | null> {
  for (const { message, settledMs } of ledger.entries.values()) {
    if (message.key === null || ledger.dedupe.get(scopeOf(message) as string) !== message.id) continue;
    const id = idFloor(atMs).slice(0, 13) + message.id.slice(13);
    const [found] = await twin.enqueue([{ ...message, id, directTry: undefined }], atMs);
    const there = settledMs === null || (await twin.store.get(twin.id(message.id), twin.at(atMs))) !== null;
    const expected = there ? ["duplicate", message.id] : ["accepted", id];
    const difference = same([found?.kind, found?.id], expected);
    if (difference) return `I7: the key of ${message.topic} ${message.id} (settled at ${settledMs}) ${difference}`;
  }
  return null;
}

const rowOf = (row: Row | null) => row && [row.attempt, row.outcome, row.counted, row.code, row.error];

const shown = (view: Recorded): unknown[] | null =>
  view && [view.status, view.attempts, view.generation, view.resolution, view.heldReason, view.payload, view.key];

const breakerOf = ({ state, trips, tenants, probeInMs }: BreakerState) => [
  state,
  trips,
  [...tenants].map(({ tenantId }) => tenantId).sort((a, b) => (a < b ? -1 : 1)),
  Math.round(probeInMs / 10),
];

/** Without the revision: whether a pause raises it is not promised, and the stores differ. */
const topicOf = (record: TopicRecord | "read_only" | null) =>
  record && record !== "read_only"
    ? [record.name, record.paused, record.disabledReason, record.leaseMs, record.breaker.state]
    : record;

function same(found: unknown, expected: unknown): string | null {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  return a === b ? null : `answered ${a}, not ${b}`;
}
