/**
 * The stage of the recovery tests: PostgreSQL on a clock that only moves when told. The schema has a statement_timestamp() of its own that
 * reads the moment from a table, and the store's connections find it before the server's. Schema and store are emptied and used again, since
 * opening them takes longer than most cases; their time goes on from case to case, so that nothing they remember lies in the future.
 */
import type pg from "pg";
import { onTestFinished } from "vitest";
import { createEvents, type MakegoodEvent } from "../../src/observe/events.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createRecords } from "../../src/recovery/records.ts";
import type { WithHome } from "../../src/store/home.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { atEnd } from "../support/at-end.ts";
import { databaseUrl, emptyTables, freshSchema, keptClient } from "../support/postgres.ts";

/** Where time begins: days around it have their partitions. */
const START_MS = Date.UTC(2026, 0, 1, 12);
/** A store whose time has come so far gives its schema to a new one. */
const OLD_MS = START_MS + 2 * 86_400_000;
/** Between two cases: longer than a store trusts what it read. */
const BETWEEN_MS = 60_000;
/** A long time is passed in so many stops at most: each asks the store whatever a whole process asks it. */
const STOPS_MAX = 40;
/** What follows from one thing without the store is done in fewer turns of the event loop. */
const TURNS = 20;

export interface ManualClock extends Clock {
  /** Moves time and runs what falls due on the way, with all that follows from it; in few stops, so what is due soon after another may wait for it. */
  advance(ms: number): Promise<void>;
}

export type Stage = Awaited<ReturnType<typeof createStage>>;

type Place = Awaited<ReturnType<typeof openPlace>>;

const schemas: string[] = [];
let places: Place[] = [];
let between = keptClient();

atEnd(async () => {
  for (const place of places) await place.close();
  places = [];
  await between.close();
  between = keptClient();
});

export async function createStage() {
  const place = places.pop() ?? (await openPlace());
  const { clock, calls } = place;
  const store = calls.counted(place.store);
  const others: Store[] = [];
  onTestFinished(async () => {
    await calls.idle();
    for (const other of others) await other.close();
    await place.clear();
    if (clock.wallMs() > OLD_MS) await place.close();
    else places.push(place);
  });

  const events = createEvents();
  const heard: MakegoodEvent[] = [];
  events.on((event) => heard.push(event));
  const recovery = createRecords(store.home);
  return {
    ...{ clock, store, recovery, events, heard, ids: createIds(clock) },
    /** Whatever `recovery` has at the moment of a call: a test may put something else there. */
    records: live(recovery),
    /** A second store on the same data, as another process would have it. */
    async another(): Promise<Store & WithHome> {
      const other = calls.counted(await openStore(place.schema, clock, "look"));
      others.push(other);
      return other;
    },
  };
}

/** Open, empty, and nobody else's while a case has it. */
async function openPlace() {
  const client = await between.get();
  const schema = schemas.pop() ?? (await makeSchema(client));
  const calls = callsUnderWay();
  const clock = manualClock(calls.idle, (ms) => setMoment(client, schema, ms));
  await setMoment(client, schema, START_MS);
  const store = await openStore(schema, clock, "look");
  return {
    ...{ schema, store, clock, calls },
    async clear() {
      await empty(client, schema);
      clock.forget();
      await clock.advance(BETWEEN_MS);
    },
    async close() {
      await store.close();
      schemas.push(schema);
    },
  };
}

async function openStore(schema: string, clock: Clock, migrate: "up" | "look") {
  const url = new URL(databaseUrl());
  url.searchParams.set("options", `-c search_path=${schema},pg_catalog`);
  // Its timers (listening, warming up) are no part of a case.
  const own: Clock = { ...clock, after: systemClock.after };
  const store = createPostgresStore({ url: url.href, schema, clock: own, migrate, connectTimeoutMs: 60_000 });
  await store.open();
  return store;
}

/** Columns that take the time by themselves were given the server's own function when their tables were made. */
const DEFAULTS = `select c.relname, a.attname from pg_attrdef d join pg_class c on c.oid = d.adrelid
  join pg_attribute a on a.attrelid = c.oid and a.attnum = d.adnum
  where c.relnamespace = $1::regnamespace and not c.relispartition and pg_get_expr(d.adbin, d.adrelid) = 'statement_timestamp()'`;

async function makeSchema(client: pg.Client): Promise<string> {
  const schema = freshSchema();
  const clock = manualClock(
    async () => {},
    async () => {},
  );
  await (await openStore(schema, clock, "up")).close();
  await client.query(`create table ${schema}.stage_clock (moment timestamptz not null);
    insert into ${schema}.stage_clock values (statement_timestamp());
    create function ${schema}.statement_timestamp() returns timestamptz stable language sql as 'select moment from ${schema}.stage_clock'`);
  const { rows } = await client.query<{ relname: string; attname: string }>(DEFAULTS, [schema]);
  for (const { relname, attname } of rows)
    await client.query(`alter table ${schema}.${relname} alter column ${attname} set default ${schema}.statement_timestamp()`);
  return schema;
}

async function setMoment(client: pg.Client, schema: string, ms: number): Promise<void> {
  const text = `update ${schema}.stage_clock set moment = to_timestamp($1::float8 / 1000)`;
  await client.query({ name: `moment ${schema}`, text, values: [ms] });
}

/** Whatever migrations made, but for the proof that they ran, what a store remembers, and partitions, which go with their tables. */
const TABLES = `select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  and c.relname not like 'migration%' and c.relname not in ('installation', 'stage_clock', 'topic', 'lane')`;

async function empty(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ relname: string }>(TABLES, [schema]);
  const names = rows.map(({ relname }) => relname);
  await emptyTables(client, schema, names);
  // As if each had been deleted: the numbers of its lanes stay.
  await client.query(`update ${schema}.topic set deleted = true, revision = 0, paused = false, disabled_reason = null, breaker_state = 0,
    breaker_until = null, breaker_trips = 0, breaker_reason = null, probe_owner = null, probe_until = null, rest_until = null, held_tenants = '{}'`);
}

type Members = Record<string, unknown>;
type AnyFunction = (...given: unknown[]) => unknown;

/** A copy of an object and of those in it, with other functions in the place of its own. */
function copied<T extends object>(of: T, other: (own: AnyFunction, name: string, of: Members) => AnyFunction): T {
  const one = ([name, member]: [string, unknown]): [string, unknown] => {
    if (typeof member === "function") return [name, other(member as AnyFunction, name, of as Members)];
    return [name, typeof member === "object" && member !== null ? copied(member, other) : member];
  };
  return Object.fromEntries(Object.entries(of).map(one)) as T;
}

function live<T extends object>(of: T): T {
  return copied(
    of,
    (_, name, members) =>
      (...given) =>
        (members[name] as AnyFunction)(...given),
  );
}

/** Counts the calls that were not answered yet: without one, and after a few turns without a new one, nothing happens any more. */
function callsUnderWay() {
  let count = 0;
  let waiting: (() => void)[] = [];
  const ended = (): void => {
    if (--count > 0) return;
    for (const wake of waiting) wake();
    waiting = [];
  };
  const counting =
    (own: AnyFunction): AnyFunction =>
    (...given) => {
      const result = own(...given);
      if (typeof result === "function") return counting(result as AnyFunction);
      if (!(result instanceof Promise)) return result;
      count++;
      return result.finally(ended);
    };
  return {
    counted: <T extends object>(of: T): T => copied(of, counting),
    async idle(): Promise<void> {
      for (let turns = 0; turns < TURNS; turns++) {
        if (count > 0) {
          await new Promise<void>((resolve) => waiting.push(resolve));
          turns = 0;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

function manualClock(idle: () => Promise<void>, moved: (ms: number) => Promise<void>) {
  let now = START_MS;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const due = (until: number) => [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
  async function to(ms: number): Promise<void> {
    if (ms > now) await moved(Math.floor(ms));
    now = Math.max(now, Math.floor(ms));
  }
  const clock: ManualClock = {
    wallMs: () => now,
    monotonicMs: () => now,
    after(ms, run) {
      const timer = { at: now + Math.max(0, ms), run };
      timers.add(timer);
      return { cancel: () => void timers.delete(timer) };
    },
    async advance(ms) {
      await idle();
      const end = now + ms;
      for (let [next] = due(end); next !== undefined; [next] = due(end)) {
        await to(Math.min(end, Math.max(next.at, now + ms / STOPS_MAX)));
        for (const timer of due(now)) if (timers.delete(timer)) timer.run();
        await idle();
      }
      await to(end);
    },
  };
  return { ...clock, forget: () => timers.clear() };
}
