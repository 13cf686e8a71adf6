/**
 * I2, I9: every job that the scheduler has, on data for it: run once, run by two at once, and killed before each of its statements and run
 * again, it comes to the same; under a leadership that has ended it changes nothing, and neither does a dry run. What is unresolved stays.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JobReport } from "../../src/maintenance/run-job.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl } from "../support/postgres.ts";
import type { RetentionScene } from "./scene.ts";
import { createWorld, EXPECTED } from "./world.ts";

type Seen = Record<string, unknown> | undefined;
const NAMES = Object.keys(EXPECTED);
const BATCH = { batchSize: 5 };
/** Every statement in a soak, every fifth here. */
const STEP = process.env.MAKEGOOD_SOAK === "1" ? 1 : 5;
const KILLS_MAX = 600;
const results = new Map<string, Seen>();

const seen = async ({ sql }: RetentionScene, name: string): Promise<Seen> => (await sql(EXPECTED[name]?.see ?? ""))[0];

const prepare = ({ sql }: RetentionScene, name: string) => sql(EXPECTED[name]?.before ?? "select 1");

/** Until it says that there is no more to do. */
async function runThrough(run: () => Promise<JobReport>): Promise<void> {
  for (let more = true; more; ) {
    const report = await run();
    expect(report).toMatchObject({ result: "done", error: null });
    more = report.more;
  }
}

/** From this statement on every connection is cut: for the server the process is dead. */
let left = Number.POSITIVE_INFINITY;
const { query } = pg.Client.prototype;
const cutting = function (this: pg.Client, ...args: unknown[]) {
  if (left-- <= 0) (this as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  return (query as (...all: unknown[]) => unknown).apply(this, args);
};
beforeAll(() => {
  pg.Client.prototype.query = cutting as typeof query;
});
afterAll(() => {
  pg.Client.prototype.query = query;
});

/** What nobody may take away: the open dead letters, the replayed ones and what was lost and came back. */
async function unresolvedStay({ mg, sql }: RetentionScene): Promise<void> {
  expect(
    await sql(
      "select key from message_kept where key like 'open %' union select key from message where key like 'open %' order by 1",
    ),
  ).toEqual([{ key: "open 4" }, { key: "open 5" }]);
  expect(await mg.archive?.verify()).toMatchObject({ faults: [] });
  const { divergences } = await mg.verify.run({ reach: "full" });
  expect(divergences).toEqual([]);
}

describe("every job", () => {
  let world: RetentionScene;
  beforeAll(async () => {
    world = await createWorld();
  }, 60_000);
  afterAll(() => world[Symbol.asyncDispose]());

  it("is listed, and is in the table of what is expected", () => {
    expect(
      world.mg.jobs
        .list()
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...NAMES].sort());
    for (const { about, name } of world.mg.jobs.list()) expect(about, name).not.toBe("");
  });

  it("changes nothing under a leadership that has ended, nor in a dry run; then does its work, once", {
    timeout: 120_000,
  }, async () => {
    const store = createPostgresStore({ url: databaseUrl(), schema: world.schema });
    // A holder that believes in a term that nobody gave.
    store.lead = async (_, owner) => ({ held: true, owner, term: "999999999" });
    const stale = await world.another({ store });
    for (const { name, where, rehearses } of world.mg.jobs.list()) {
      await prepare(world, name);
      const before = await seen(world, name);
      const { nothing } = EXPECTED[name] ?? {};
      // A pass of verify is shared with any caller that asks, so it is led and not fenced: its one row is locked at each step (decision 0034).
      if (where === "leader" && !nothing && name !== "verify") {
        expect((await stale.jobs.run(name, BATCH)).result, name).toBe("stopped");
        expect(await seen(world, name), name).toEqual(before);
      }
      if (rehearses) {
        const { counts, result } = await world.mg.jobs.run(name, { dryRun: true });
        expect(result, name).toBe("done");
        if (!nothing)
          expect(
            Object.values(counts).some((count) => count > 0),
            name,
          ).toBe(true);
        expect(await seen(world, name), name).toEqual(before);
      }
      await runThrough(() => world.mg.jobs.run(name, BATCH));
      const after = await seen(world, name);
      if (nothing) expect(after, name).toEqual(before);
      else expect(after, name).not.toEqual(before);
      results.set(name, after);
      await runThrough(() => world.mg.jobs.run(name, BATCH));
      expect(await seen(world, name), name).toEqual(after);
    }
    await unresolvedStay(world);
  });

  it("run by two processes at once comes to what one run comes to", { timeout: 120_000 }, async () => {
    await using twin = await createWorld();
    const both = [twin.mg, await twin.another()];
    for (const name of NAMES) {
      await prepare(twin, name);
      await Promise.all(both.map((mg) => runThrough(() => mg.jobs.run(name, { ...BATCH, skipLeaderElection: true }))));
      expect(await seen(twin, name), name).toEqual(results.get(name));
    }
    await unresolvedStay(twin);
  });

  it("killed before each of its statements, and run again, comes to what an undisturbed run comes to", {
    timeout: 240_000,
  }, async () => {
    await using victim = await createWorld();
    for (const name of NAMES) {
      await prepare(victim, name);
      let kills = 0;
      for (let cut = true; cut; kills += STEP) {
        expect(kills, name).toBeLessThan(KILLS_MAX);
        left = kills;
        await victim.mg.jobs.run(name, BATCH).catch(() => undefined);
        cut = left < 0;
        left = Number.POSITIVE_INFINITY;
        if (cut && EXPECTED[name]?.later) await victim.sql(EXPECTED[name].later);
      }
      await runThrough(() => victim.mg.jobs.run(name, BATCH));
      expect(await seen(victim, name), `${name} after ${kills} kills`).toEqual(results.get(name));
    }
    await unresolvedStay(victim);
  });
});
