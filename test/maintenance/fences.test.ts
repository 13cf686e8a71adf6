/**
 * I9 and REC-48: what a led job writes is refused at commit once its leadership has ended, locks are their holder's, and a retention that
 * is killed with SIGKILL before any of its statements has archived and deleted each record once or not at all (fault 4, DX-4).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { createMakegood } from "../../src/create.ts";
import { reject, topic } from "../../src/index.ts";
import { createLocks } from "../../src/maintenance/locks.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { type Home, homeOf } from "../../src/store/home.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { startableDist } from "../support/build.ts";
import { killedAtItsWord } from "../support/killed-at-its-word.ts";
import { databaseUrl } from "../support/postgres.ts";
import { type Process, startScript, until } from "../support/processes.ts";
import { DAY, provenanceRows, type RetentionScene, retentionScene, writeAudit } from "./scene.ts";

/** Each statement in a soak. */
const STEP = process.env.MAKEGOOD_SOAK === "1" ? 1 : 4;
const FROZEN_CHILD = fileURLToPath(new URL("./frozen-child.mjs", import.meta.url));
const CHILD = fileURLToPath(new URL("./retire-child.mjs", import.meta.url));

describe("a leadership that has ended", () => {
  it("a leader that is frozen past its lease, between its last statement and its commit, writes nothing", async () => {
    await using scene = await retentionScene();
    const { store } = scene.mg;
    const home = homeOf(store) as Home;
    const write = (term: string, ms: number) =>
      home.transaction(
        "a chore",
        async ({ run }) => {
          await run(`insert into ${home.s}.provenance (message_id, actor, action) values (gen_random_uuid(), 'leader', 'x')`);
          await sleep(ms);
        },
        { name: "upkeep", owner: "a", term },
      );
    const { term } = await store.lead("upkeep", "a", 60_000);
    await write(term, 0);
    expect(await scene.count("provenance")).toBe(1);
    await store.lead("upkeep", "a", 200);
    await expect(write(term, 400)).rejects.toMatchObject({ code: "leadership_lost" });
    // Nor when it leads again, or another one does: that is another term.
    const again = await store.lead("upkeep", "a", 60_000);
    expect(BigInt(again.term)).toBeGreaterThan(BigInt(term));
    await expect(write(term, 0)).rejects.toMatchObject({ code: "leadership_lost" });
    expect(await scene.count("provenance")).toBe(1);
    expect(await scene.count("led_write")).toBe(0);
  });

  it("REC-47, REC-48: locks are acquired by one, extended and released by their holder, taken over and cleaned when they ran out", async () => {
    await using scene = await retentionScene();
    const { store, events } = scene.mg;
    const [a, b] = ["host:1:0000000a", "host:2:0000000b"].map((holder) =>
      createLocks(store, holder, { clock: systemClock, events }),
    ) as [ReturnType<typeof createLocks>, ReturnType<typeof createLocks>];
    const lock = await a.acquire("m10:reconcile_dl");
    expect(await b.acquire("m10:reconcile_dl")).toBeNull();
    expect(await a.acquire("m10:reconcile_dl")).not.toBeNull();
    expect(await lock?.extend()).toBe(true);
    await lock?.release();
    const short = await b.acquire("m10:reconcile_dl", 100);
    await sleep(200);
    expect((await a.acquire("m10:reconcile_dl"))?.fence.owner).toBe("host:1:0000000a");
    expect(await short?.extend()).toBe(false);
    const asked = async (text: string) =>
      Object.values((await scene.sql<Record<string, unknown>>(`select ${text} as x`))[0] as object)[0];
    expect(await asked("acquire_lock('view', 'c', 300)")).toBe(true);
    expect(await asked("acquire_lock('view', 'd', 300)")).toBe(false);
    expect(await asked("release_lock('view', 'd')")).toBe(false);
    expect(await asked("extend_lock('view', 'c', 300)")).toBe(true);
    const [{ term }] = (await scene.sql<{ term: string }>("select term from leader where name = 'view'")) as [{ term: string }];
    expect(await asked("release_lock('view', 'c')")).toBe(true);
    expect(await asked("cleanup_expired_locks()")).toBe("1");
    expect(await asked("acquire_lock('view', 'd', 300)")).toBe(true);
    const [{ term: later }] = (await scene.sql<{ term: string }>("select term from leader where name = 'view'")) as [
      { term: string },
    ];
    expect(BigInt(later)).toBeGreaterThan(BigInt(term));
  });
});

const charge = topic("shop/charge", { sink: () => reject("no such customer") });

/** A led job, where it is frozen, and what must have come of it in the end. */
const FROZEN = [
  {
    ...{ job: "prune-audit", leadership: "maintenance", seedFirst: true, freezeAt: "archive_chunk" },
    async seed({ mg }: RetentionScene) {
      for (const id of ["a", "b", "c"]) await writeAudit(mg, id, 100);
    },
    async ended({ sql, count, mg }: RetentionScene) {
      const left = await sql("select 1 from pg_tables where schemaname = current_schema() and tablename ~ '_leaving$'");
      if (left.length + (await count("audit_event")) > 0) return false;
      expect(await mg.archive?.verify()).toMatchObject({ chunks: 1, rows: 3, faults: [] });
      return true;
    },
  },
  {
    // The first run of each process is not led, so it must find nothing.
    ...{ job: "recovery_ingest", leadership: "recovery", seedFirst: false, freezeAt: "insert into \\S+recovery_occurrence" },
    async seed({ mg }: RetentionScene) {
      await mg.enqueue("shop/charge", { amount: 1 });
      await mg.workOff();
    },
    async ended({ count }: RetentionScene) {
      if ((await count("recovery_occurrence")) === 0) return false;
      expect(await count("recovery_occurrence")).toBe(1);
      expect(await count("recovery_group", "occurrences = 1")).toBe(1);
      return true;
    },
  },
];

describe("a leader that SIGSTOP freezes past its lease, and a second process", () => {
  it.each(FROZEN)("fault 4: $job: its late write is refused, nothing is done twice", { timeout: 180_000 }, async (which) => {
    const options = { auditKeptMs: 30 * DAY };
    await using scene = await retentionScene({ ...options, topics: [charge], recovery: false });
    const start = (freezeAt: string | null) =>
      startScript(FROZEN_CHILD, { url: databaseUrl(), schema: scene.schema, options, freezeAt });
    const leads = (one: Process) => one.fact(({ type, name }) => type === "leads" && name === which.leadership);
    if (which.seedFirst) await which.seed(scene);
    const first = await start(which.freezeAt);
    await leads(first);
    if (!which.seedFirst) {
      await first.fact(({ type, name }) => type === "ran" && name === which.job);
      await which.seed(scene);
    }
    await first.fact(({ type }) => type === "frozen");
    // In a soak its lease runs out by itself; here the row says that it has.
    if (process.env.MAKEGOOD_SOAK !== "1")
      await scene.sql("update leader set until = clock_timestamp() - interval '1 ms' where name in ('maintenance', 'recovery')");
    const second = await start(null);
    await leads(second);
    first.signal("SIGCONT");
    expect(await first.fact(({ type, name }) => type === "job" && name === which.job)).toMatchObject({ result: "stopped" });
    await until("the second one has done it", () => which.ended(scene));
    await Promise.all([first.end("SIGKILL"), second.end("SIGKILL")]);
    expect(await which.ended(scene)).toBe(true);
  });
});

describe("a retention that is killed", () => {
  it("before any of its statements: each record was archived and deleted once, or neither", { timeout: 120_000 }, async () => {
    await using scene = await retentionScene();
    await provenanceRows(scene, 25, 91);
    const dist = await startableDist();
    const points: string[] = [];
    for (let n = 1; n <= 60; n += STEP) {
      const end = await killedAtItsWord(CHILD, {
        dist,
        url: databaseUrl(),
        schema: scene.schema,
        job: "retire-provenance",
        stopBefore: n,
      });
      points.push(end.type === "done" ? "done" : String(end.before));
      // What the dead client had open is undone in the server's own time.
      const [sum] = await scene.sql<{ there: string; gone: string }>(
        "select (select count(*) from provenance) as there, (select coalesce(sum(rows), 0) from archive_chunk) as gone",
      );
      expect(Number(sum?.there) + Number(sum?.gone), points.at(-1)).toBe(25);
      if (end.type === "done") break;
    }
    await until("all went", async () => {
      await scene.mg.jobs.run("retire-provenance");
      return (await scene.count("provenance")) === 0;
    });
    expect(await scene.mg.archive?.verify()).toMatchObject({ rows: 25, faults: [] });
    expect(points.length).toBeGreaterThan(3);
  });
});

it("DX-4: a retention that is shorter than the replay window is refused at the start", async () => {
  const start = (replayWindowMs: number, retention = {}) =>
    createMakegood({ store: createMemoryStore(), log: "silent", keptMs: 10 * DAY, retention, replayWindowMs });
  await expect(start(11 * DAY)).rejects.toMatchObject({
    code: "invalid_config",
    message: expect.stringMatching(/delivered are kept/),
  });
  await expect(start(8 * DAY, { occurrences: 7 * DAY })).rejects.toThrow(/occurrences are kept/);
  await (await start(10 * DAY)).close();
});
