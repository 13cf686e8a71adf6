/**
 * The stage of the recovery tests: PostgreSQL on a clock that only moves when told. The schema has a statement_timestamp() of its own that
 * reads the moment from a table, and the store's connections find it before the server's. A schema is emptied and used again, since making
 * one takes longer than most cases; the store on it is new in each, so that it remembers nothing of another case's time.
 */
import type pg from "pg";
import { onTestFinished } from "vitest";
import { startMaintenance } from "../../src/maintenance/maintenance.ts";
import { createEvents, type MakegoodEvent } from "../../src/observe/events.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import type { MaintenanceJob } from "../../src/platform/job.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createRecords } from "../../src/recovery/records.ts";
import type { WithHome } from "../../src/store/home.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { atEnd } from "../support/at-end.ts";
import { databaseUrl, emptyTables, freshSchema, keptClient } from "../support/postgres.ts";

/** Where each case begins: days around it have their partitions. */
const START_MS = Date.UTC(2026, 0, 1, 12);
/** What follows from one thing without the store is done in fewer turns of the event loop. */
const TURNS = 20;

export interface ManualClock extends Clock {
  /** Moves time, running what falls due on the way, each with all that follows from it. */
  advance(ms: number): Promise<void>;
  /** As a process that was asleep: at the end everything that fell due runs once. */
  leap(ms: number): Promise<void>;
}

export type Stage = Awaited<ReturnType<typeof createStage>>;

const schemas: string[] = [];
let between = keptClient();
atEnd(async () => {
  await between.close();
  between = keptClient();
});

export async function createStage() {
  const calls = callsUnderWay();
  const client = await between.get();
  const schema = schemas.pop() ?? (await makeSchema(client));
  await setMoment(client, schema, START_MS);
  const clock = manualClock(calls.idle, (ms) => setMoment(client, schema, ms));
  const store = calls.counted(await openStore(schema, clock, "look"));
  const others: Store[] = [];
  onTestFinished(async () => {
    await calls.idle();
    for (const each of [store, ...others]) await each.close();
    await empty(client, schema);
    schemas.push(schema);
  });

  const events = createEvents();
  const heard: MakegoodEvent[] = [];
  events.on((event) => heard.push(event));
  const recovery = createRecords(store.home);
  const ids = createIds(clock);
  return {
    ...{ clock, store, recovery, events, heard, ids },
    /** The jobs of a process, each run when it says; leadership is taken as in `create`. */
    maintain: (jobs: readonly MaintenanceJob[], owner = `process-${ids()}`) =>
      startMaintenance({ store, owner, clock, random: { next: () => 0.5 }, events, jobs, name: "recovery" }),
    /** What `recovery` does at the moment of each call: a test may put something else in its place. */
    records: calledThrough(recovery, (call) => call()),
    /** A second store on the same data, as another process would have it. */
    async another(): Promise<Store & WithHome> {
      const other = calls.counted(await openStore(schema, clock, "look"));
      others.push(other);
      return other;
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

/** Whatever migrations made, but for the proof that they ran, and partitions, which go with their tables. */
const TABLES = `select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p')
  and not c.relispartition and c.relname not like 'migration%' and c.relname not in ('installation', 'stage_clock')`;

async function empty(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ relname: string }>(TABLES, [schema]);
  await emptyTables(
    client,
    schema,
    rows.map(({ relname }) => relname),
  );
}

type Call = () => unknown;

/** The same object, each call of a function in it (and in what it holds and returns) made by `around`. */
function calledThrough<T extends object>(target: T, around: (call: Call) => unknown): T {
  return new Proxy(target, {
    get(of, name) {
      const member: unknown = Reflect.get(of, name);
      if (typeof member === "object" && member !== null) return calledThrough(member, around);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => {
        const result = around(() => (Reflect.get(of, name) as (...all: unknown[]) => unknown).apply(of, given));
        return typeof result === "function" ? (...more: unknown[]) => around(() => result(...more)) : result;
      };
    },
  });
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
  return {
    counted: <T extends object>(target: T): T =>
      calledThrough(target, (call) => {
        const result = call();
        if (!(result instanceof Promise)) return result;
        count++;
        return result.finally(ended);
      }),
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

function manualClock(idle: () => Promise<void>, moved: (ms: number) => Promise<void>): ManualClock {
  let now = START_MS;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const due = (until: number) => [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
  async function to(ms: number): Promise<void> {
    if (ms > now) await moved(ms);
    now = Math.max(now, ms);
  }
  return {
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
        timers.delete(next);
        await to(next.at);
        next.run();
        await idle();
      }
      await to(end);
    },
    async leap(ms) {
      await idle();
      await to(now + ms);
      for (const timer of due(now)) {
        timers.delete(timer);
        timer.run();
      }
      await idle();
    },
  };
}
