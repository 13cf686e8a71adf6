/**
 * Conservation as a whole: the witness outside of the store, usage beside it, the same answer in every process, an open transaction, clocks of
 * producers that are wrong, and a pass that is killed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createMakegood, type Makegood } from "../../src/index.ts";
import type { MakegoodEvent } from "../../src/observe/events.ts";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { heldBack } from "../../src/store/postgres/conservation/held-back.ts";
import { makegood, removeWorkspaces, workspace } from "../cli/support.ts";
import { terminal } from "../cli/terminal.ts";
import { startableDist } from "../support/build.ts";
import { beginTransaction, databaseUrl, openStore } from "../support/postgres.ts";
import { usageStage } from "../usage/scene.ts";
import { MONEY } from "./cases.ts";
import { type VerifyScene, verifyScene } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });
const DAY = 24 * 3_600_000;
let scene: VerifyScene;
let directory: string;
let witness: string;
let mg: Makegood;
const events: MakegoodEvent[] = [];

beforeAll(async () => {
  scene = await verifyScene();
  directory = await mkdtemp(join(tmpdir(), "makegood-witness-"));
});
beforeEach(async () => {
  await scene.empty();
  witness = join(directory, `${scene.id()}.ndjson`);
  events.length = 0;
  mg = await makegoodWith(witness);
});
afterAll(async () => {
  await removeWorkspaces();
  await scene.close();
  await rm(directory, { recursive: true });
});

const makegoodWith = (path: string) =>
  createMakegood({
    store: scene.store,
    sharedStore: true,
    log: "silent",
    verify: { witness: path },
    onEvent: (event) => void events.push(event),
  });

/** Everything that was accepted before is counted in. */
async function counted(reach: "whole" | "slice" = "whole") {
  await scene.verify();
  return mg.verify.run({ reach });
}

const kinds = (report: { divergences: readonly { kind: string }[] }) => report.divergences.map(({ kind }) => kind);
/** What a copy of the server's files would bring back; the accounts of buckets are the same, because nothing else is in them. */
const RESTORED = ["conservation", "conservation_pass"];

describe("the witness", () => {
  it("finds a restore to an hour ago, and a store that went on from there", async () => {
    await scene.accept(3);
    expect(await counted()).toMatchObject({ state: "whole" });
    for (const table of RESTORED) await scene.client.query(`create table kept_${table} as select * from ${table}`);
    await scene.accept(4);
    expect(await counted()).toMatchObject({ state: "whole", totals: { accepted: 7 } });
    for (const table of RESTORED) {
      await scene.harm(`delete from ${table}`);
      await scene.harm(`insert into ${table} select * from kept_${table}`);
      await scene.harm(`drop table kept_${table}`);
    }
    const report = await mg.verify.run({ reach: "whole" });
    expect(report.state).toBe("broken");
    expect(kinds(report)).toContain("behind_witness");
    expect(mg.findings()).toMatchObject([{ what: "conservation_broken" }]);
    // As many passes later the number is the same, and the past is another one.
    const seen = JSON.parse((await readFile(witness, "utf8")).trim().split("\n").at(-1)!).pass;
    while ((await mg.verify.run({ reach: "whole" })).pass <= seen);
    await scene.harm("update conservation set accepted_n = 70");
    await scene.harm("update conservation_pass set accepted_n = 70 where no = (select max(no) from conservation_pass)");
    expect(kinds(await mg.verify.run({ reach: "whole" }))).toContain("witness_differs");
  });

  it("finds a shard whose witness is ahead, among lines of other shards and a line that was cut off", async () => {
    await scene.accept(2);
    expect(await counted()).toMatchObject({ state: "whole", reason: null });
    const [line] = (await readFile(witness, "utf8")).trim().split("\n").slice(-1);
    const said = JSON.parse(line!);
    await writeFile(witness, `${line}\n${JSON.stringify({ ...said, installation: scene.id(), pass: 9_000 })}\n{"inst`);
    expect(await mg.verify.run({ reach: "whole" })).toMatchObject({ state: "whole" });
    await writeFile(witness, `${JSON.stringify({ ...said, pass: said.pass + 50, accepted: 90 })}\n`);
    const report = await mg.verify.run({ reach: "whole" });
    expect(kinds(report)).toEqual(["behind_witness"]);
    expect(report.divergences[0]).toMatchObject({ count: 88 });
  });

  it("that cannot be read or written makes it not proven, and nothing is whole without a pass", async () => {
    mg = await makegoodWith(join(directory, "nowhere", "w.ndjson"));
    expect(await mg.verify.last()).toBeNull();
    await mg.verify.run({ reach: "whole" });
    expect(await mg.verify.run({ reach: "whole" })).toMatchObject({
      state: "unknown",
      reason: expect.stringContaining("cannot be written"),
    });
    expect(mg.findings()).toMatchObject([{ what: "conservation_not_proven", severity: "degraded" }]);
    expect(events.filter(({ type }) => type === "conservation").at(-1)).toMatchObject({ state: "unknown", divergences: 0 });
  });
});

describe("DX-3: usage", () => {
  it("debits are events are deliveries, and each difference is found", async () => {
    await using stage = await usageStage();
    const finalized = async () => {
      const turn = await stage.running();
      await stage.usage.finalize({ ...turn, outcome: "completed", usage: { inputTokens: 900, outputTokens: 100 } });
      return turn.turnId;
    };
    await finalized();
    const changed = await finalized();
    const lost = await finalized();
    await stage.running();
    const look = async () => kinds(await stage.mg.verify.run({ reach: "whole" })).filter((kind) => kind === "usage_unbalanced");
    expect(await look()).toEqual([]);
    const harm = async (sql: string, values: unknown[]) => {
      await scene.client.query(`set search_path = "${stage.schema}"`);
      await scene.harm(sql, values).finally(() => scene.client.query(`set search_path = "${scene.schema}"`));
    };
    await harm("delete from message where id = (select message_id from chat_turns where turn_id = $1::uuid)", [lost]);
    await harm("update chat_turns set credits = credits + 1 where turn_id = $1::uuid", [changed]);
    const report = await stage.mg.verify.run({ reach: "whole" });
    const found = report.divergences.filter(({ kind }) => kind === "usage_unbalanced");
    expect(found.find(({ ids }) => ids.length > 0)?.ids.map((id) => id.replaceAll("-", ""))).toEqual(
      expect.arrayContaining([changed, lost]),
    );
    expect(found.some(({ detail }) => /credits spent, and its turns add up to/.test(detail ?? ""))).toBe(true);
    // A slice looks at less, and keeps what it did not look at.
    const sliced = await stage.mg.verify.run({ reach: "slice", budgetMs: 100 });
    expect(sliced.divergences.filter(({ kind }) => kind === "usage_unbalanced")).toHaveLength(found.length);
  });
});

describe("time", () => {
  it("an open transaction is no loss, however old its messages are when it commits", async () => {
    await scene.accept(2);
    expect(await counted()).toMatchObject({ state: "whole" });
    const { tx, commit } = await beginTransaction();
    const anHourAgo = new Date(Date.now() - 59 * 60_000);
    const [id] = [scene.id()];
    const { newMessage } = await import("../../src/testing/store-conformance/fixtures.ts");
    await scene.store.enqueue([newMessage(id!)], { tx: tx as never, now: anHourAgo });
    expect(await mg.verify.run({ reach: "whole" })).toMatchObject({ divergences: [], totals: { accepted: 2 } });
    await commit();
    expect(await counted()).toMatchObject({ state: "whole", totals: { accepted: 3, live: 3 } });
    await scene.harm("delete from ready where id = $1", [id]);
    expect(kinds(await counted())).toEqual(["no_state"]);
  });

  it("what a transaction that was open before the first pass kept from it is counted, however old it is by then", async () => {
    const { tx, commit } = await beginTransaction();
    await tx.query("select pg_current_xact_id()");
    await scene.accept(2, {}, new Date(Date.now() - 3 * 3_600_000));
    await scene.settle(await scene.claim(2));
    expect(await mg.verify.run({ reach: "whole" })).toMatchObject({ divergences: [], totals: { accepted: 0 } });
    await commit();
    expect(await counted()).toMatchObject({ state: "whole", totals: { accepted: 2, delivered: 2 } });
  });

  it("one that stays open is named, and after ten minutes nothing is proven until it ends", async () => {
    expect(await counted()).toMatchObject({ state: "whole" });
    const { tx, rollback } = await beginTransaction();
    await tx.query("set application_name = 'month-end'");
    const { rows } = await tx.query("select pg_current_xact_id()::text as xid, pg_backend_pid() as pid");
    // Other files' older ones come first.
    const oldest = () => scene.client.query("select pg_snapshot_xmin(pg_current_snapshot())::text as xid");
    while ((await oldest()).rows[0].xid !== rows[0].xid) await sleep(systemClock, 20);
    const named = `a transaction of month-end (pid ${rows[0].pid}, idle in transaction) is open for`;
    await scene.accept(2);
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: scene.schema };
    await sleep(systemClock, 1_100);
    const young = await terminal(["verify"], { env });
    expect(young).toMatchObject({ code: 0, stdout: expect.stringContaining("0 accepted = ") });
    expect(young.stdout).toContain(`not shown by this: A${named.slice(1)}`);
    await scene.store.conservation.conclude({}, { now: new Date(Date.now() + 11 * 60_000) });
    const old = await terminal(["verify", "--last"], { env });
    expect(old).toMatchObject({ code: 5, stdout: expect.stringContaining(`conservation is not proven: ${named} 11 minutes: `) });
    // As the metric reads it, which the alert is about.
    expect((await scene.client.query("select state from conservation")).rows).toEqual([{ state: "unknown" }]);
    await mg.verify.last();
    expect(mg.findings()).toMatchObject([{ what: "conservation_not_proven", reason: expect.stringContaining(named) }]);
    await rollback();
    expect(await counted()).toMatchObject({ state: "whole", reason: null, totals: { accepted: 2 } });
  });

  it("one that this role may not see is known by the passes that it was open in", async () => {
    const { tx, rollback } = await beginTransaction();
    await tx.query("select pg_current_xact_id()");
    await mg.verify.run({ reach: "whole" });
    await scene.harm("update conservation_pass set at = at - interval '15 minutes'");
    const role = `blind_${scene.schema}`;
    await scene.client.query(`create role ${role}; grant usage on schema "${scene.schema}" to ${role};
      grant select on all tables in schema "${scene.schema}" to ${role}`);
    try {
      await scene.client.query(`set role ${role}`);
      const ask = async (text: string) => (await scene.client.query({ text, rowMode: "array" })).rows;
      const held = await heldBack(ask, `"${scene.schema}"`);
      expect(held).toMatchObject({ unproven: true, words: expect.stringContaining("may not see is open for 15 minutes") });
    } finally {
      await scene.client.query(`reset role; drop owned by ${role}; drop role ${role}`);
      await rollback();
    }
  });

  it("clocks of producers that are days off put messages into the hour of the store's clock", async () => {
    const of = (days: number) => createIds({ ...systemClock, wallMs: () => systemClock.wallMs() + days * DAY })();
    await scene.accept(1, { id: of(-1) });
    await scene.accept(1, { id: of(5) });
    await scene.accept(1, { topic: MONEY, payload: '{"amount_micro":1e2}' });
    const report = await counted();
    expect(report).toMatchObject({ state: "whole", totals: { accepted: 3, live: 3 } });
    const { rows } = await scene.client.query("select distinct hour from conservation_bucket");
    expect(rows).toHaveLength(1);
    expect((await scene.client.query("select sum(accepted_money)::text as sum from conservation_bucket")).rows).toEqual([
      { sum: "100" },
    ]);
  });
});

describe("passes", () => {
  it("in two processes at once count everything once, and both say the same", async () => {
    await scene.accept(500);
    const other = await openStore({ schema: scene.schema });
    await Promise.all([1, 2, 3].flatMap(() => [scene.store, other].map((store) => store.conservation.pass({ reach: "full" }))));
    await scene.verify();
    const reports = await Promise.all([scene.store, other].map((store) => store.conservation.report()));
    expect(reports[0]).toMatchObject({ state: "whole", totals: { accepted: 500, live: 500 } });
    expect(reports[1]).toEqual(reports[0]);
    await other.close();
  });

  it("that fail leave nothing proven, though the one before found everything whole; the next one does", async () => {
    await scene.accept(2);
    expect(await counted()).toMatchObject({ state: "whole" });
    await scene.client.query("alter table conservation_day rename to conservation_day_away");
    await expect(mg.verify.run({ reach: "whole" })).rejects.toThrow("conservation_day");
    await scene.client.query("alter table conservation_day_away rename to conservation_day");
    expect(await mg.verify.last()).toMatchObject({ state: "unknown", reason: expect.stringContaining("conservation_day") });
    expect(await mg.verify.last()).toMatchObject({ state: "unknown" });
    expect(mg.findings()).toMatchObject([{ what: "conservation_not_proven" }]);
    const another = await makegoodWith(witness);
    expect(await another.verify.run({ reach: "whole" })).toMatchObject({ state: "whole" });
    await another.close();
    expect(await mg.verify.last()).toMatchObject({ state: "whole", reason: null });
    expect(mg.findings()).toEqual([]);
  });

  it("killed at any point are continued by the next one", async () => {
    await scene.accept(3_000);
    const door = pathToFileURL(join(await startableDist(), "store/postgres/index.js")).href;
    const program = `import { createPostgresStore } from ${JSON.stringify(door)};
      const store = createPostgresStore({ url: process.env.TEST_DATABASE_URL, schema: ${JSON.stringify(scene.schema)} });
      await store.open(); console.log("open"); for (;;) await store.conservation.pass({ reach: "full" });`;
    for (const afterMs of [30, 120]) {
      const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
      await once(child.stdout, "data");
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    expect(await counted()).toMatchObject({ state: "whole", totals: { accepted: 3_000, live: 3_000 } });
  });

  it("in slices within a budget come to the same end, and say not proven until then", async () => {
    await scene.accept(2_500);
    await scene.verify();
    await scene.settle(await scene.claim(1_200));
    await scene.harm("delete from ready where id in (select id from ready order by id desc limit 3)");
    for (let i = 0; i < 40; i++) {
      const report = await mg.verify.run({ reach: "slice", budgetMs: 30 });
      if (report.state === "broken" && report.totals?.delivered === 1_200) break;
    }
    expect(await mg.verify.last()).toMatchObject({
      state: "broken",
      divergencesTotal: 3,
      totals: { delivered: 1_200, live: 1_300 },
    });
  });
});

describe("makegood verify", () => {
  it("says whole, broken or not proven by its exit code, and where a producer's ids are", async () => {
    const ids = await scene.accept(3);
    await scene.settle(await scene.claim(1));
    await scene.verify();
    const cwd = await workspace();
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: scene.schema };
    const whole = await makegood(cwd, ["verify"], env);
    expect(whole.stderr).toBe("");
    expect(whole.code).toBe(0);
    expect(whole.stdout).toContain("conservation is whole\n3 accepted = 1 delivered + 0 resolved + 0 discarded + 2 live\n");
    const list = [ids[0], JSON.stringify({ id: ids[1], total: 3 }), "", `"${ids[2]}"`].join("\n");
    const known = await makegood(cwd, ["verify", "--last", "--json", "--against", "-"], env, list);
    expect(JSON.parse(known.stdout).against).toEqual({
      counts: { unknown: 0, retired: 0, live: 2, delivered: 1, dead: 0, resolved: 0, discarded: 0 },
      ids: 3,
      unknown: [],
    });
    const stray = scene.id();
    await writeFile(join(cwd, "ids.txt"), `${stray}\nno id at all\n`);
    const unknown = await makegood(cwd, ["verify", "--last", "--against", "ids.txt"], env);
    expect(unknown).toMatchObject({ code: 1, stderr: `  unknown: ${stray}\n  unknown: no id at all\n` });
    await scene.harm("delete from ready where id = (select id from ready limit 1)");
    const broken = await makegood(cwd, ["verify", "--full"], env);
    expect(broken.code).toBe(1);
    expect(broken.stderr).toMatch(
      /^\nno_state: 1 \(test\/plain, .*\)\n {2}accepted, and neither waiting .*\n {2}[0-9a-f-]{36}\n {2}what to do: /,
    );
    const lost = await makegood(cwd, ["verify", "--json"], { ...env, MAKEGOOD_WITNESS: join(cwd, "no", "w") });
    expect(lost.code).toBe(1);
    await scene.empty();
    await makegood(cwd, ["verify"], env);
    const unproven = await makegood(cwd, ["verify"], { ...env, MAKEGOOD_WITNESS: cwd });
    expect(unproven).toMatchObject({ code: 5, stdout: expect.stringContaining("conservation is not proven: witness: ") });
    const away = await makegood(cwd, ["verify"], { ...env, DATABASE_URL: "postgres://nobody@127.0.0.1:9/none" });
    expect(away).toMatchObject({ code: 5, stderr: expect.stringContaining("nothing was done") });
  });
});
