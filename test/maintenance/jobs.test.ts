/**
 * Jobs one by one, on real servers: months of audit records, periods of usage, expired locks, what keeps the database from cleaning up, a
 * Redis store against itself; and their numbers, under the seeds' names, too.
 */
import { describe, expect, it } from "vitest";
import type { Evidence } from "../../src/evidence/evidence.ts";
import type { VerifyPart, VerifyPlace } from "../../src/evidence/verify.ts";
import { createMakegood, type Makegood, topic } from "../../src/index.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { auditOf } from "../../src/store/audit.ts";
import { connectRedis } from "../../src/store/redis/index.ts";
import { withClient } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { startRedis } from "../support/redis-server.ts";
import { freshPrefix, openRedisStore } from "../support/redis-store.ts";
import { usageStage } from "../usage/scene.ts";
import { CHARGE, DAY, provenanceRows, type RetentionScene, retentionScene, settledLongAgo, writeAudit } from "./scene.ts";

const UNKNOWN = { messages: null, breakers: null, ageMs: null, up: null };
const numbersOf = ({ events }: Makegood) => createMetrics({ events, version: "0", levels: async () => UNKNOWN });

/** Every record of the archive, of a class. */
async function archived({ archive }: Makegood, name: string): Promise<Record<string, unknown>[]> {
  const texts: string[] = [];
  for (const { id } of (await archive?.list({ class: name, limit: 100 })) ?? []) texts.push((await archive?.read(id)) ?? "");
  return texts.flatMap((text) => text.trimEnd().split("\n")).map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** What evidence says of all of it. */
async function proven({ evidence }: Makegood) {
  const sum = { broken: 0, retired: 0, findings: 0 };
  for (let from: VerifyPlace | null | undefined; from !== null; ) {
    const { report, next }: VerifyPart = await (evidence as Evidence).verify(from ?? undefined);
    sum.broken += report.broken;
    sum.retired += report.retired;
    sum.findings += report.findings.length;
    from = next;
  }
  return sum;
}

describe("audit records", () => {
  const months = async ({ sql }: RetentionScene) =>
    (
      await sql<{ relname: string }>(
        "select relname from pg_class where relname ~ '^audit_record_[0-9]{6}' and relkind = 'r' and relnamespace = current_schema()::regnamespace order by 1",
      )
    ).map(({ relname }) => relname);

  it("a month past its retention is archived record by record and dropped; a held one stays whole, and evidence says retired", async () => {
    await using scene = await retentionScene({ auditKeptMs: 30 * DAY, recovery: false });
    const { mg } = scene;
    for (const id of ["a", "b", "c"]) await writeAudit(mg, id, 100);
    for (const id of ["held", "beside"]) await writeAudit(mg, id, 200, id);
    await writeAudit(mg, "young", 1);
    const by = { actor: "ann", reason: "a case" };
    const hold = await auditOf(mg.store)?.hold({ correlationId: "held" }, by);
    await mg.jobs.run("seal-evidence");
    expect(await mg.jobs.run("prune-audit", { dryRun: true })).toMatchObject({ result: "done", counts: { would_delete: 3 } });
    const before = await months(scene);
    expect(await mg.jobs.run("prune-audit")).toMatchObject({ counts: { deleted: 3, archived: 3 } });
    expect(before.length - (await months(scene)).length).toBe(1);
    expect((await archived(mg, "audit")).map(({ event_id, payload }) => [event_id, payload])).toEqual(
      ["a", "b", "c"].map((id) => [id, JSON.stringify({ eventId: id })]),
    );
    expect(await mg.archive?.verify()).toMatchObject({ rows: 3, faults: [] });
    expect(await auditOf(mg.store)?.get("held")).not.toBeNull();
    expect(await auditOf(mg.store)?.get("beside")).not.toBeNull();
    expect(await proven(mg)).toMatchObject({ broken: 0, findings: 0 });
    expect((await proven(mg)).retired).toBe(3);
    await auditOf(mg.store)?.release(hold?.id ?? "", by);
    expect(await mg.jobs.run("prune-audit")).toMatchObject({ counts: { deleted: 2, archived: 2 } });
    expect(await mg.jobs.run("prune-audit")).toMatchObject({ counts: { deleted: 0 } });
    expect(await proven(mg)).toMatchObject({ broken: 0, findings: 0 });
    expect(await scene.sql("select event_id from audit_event")).toEqual([{ event_id: "young" }]);
  });
});

it("a period of usage goes as a whole, with its quota; one that is used still, or whose message is here, stays", async () => {
  await using stage = await usageStage();
  const { mg, usage, schema } = stage;
  const sql = (text: string) =>
    withClient(async (client) => {
      await client.query(`set search_path = "${schema}"`);
      return (await client.query(text)).rows as Record<string, unknown>[];
    });
  for (const period of ["2024-01", "2024-02", "2024-03"]) {
    const turn = await stage.running({ period });
    if (period !== "2024-02") await usage.finalize({ ...turn, outcome: "completed", usage: { inputTokens: 1, outputTokens: 1 } });
  }
  await stage.running({ period: "2024-03" }).then((turn) => usage.finalize({ ...turn, outcome: "aborted" }));
  expect(await mg.jobs.run("retire-usage-turns", { dryRun: true })).toMatchObject({ counts: { would_delete: 0 } });
  await sql("set session_replication_role = replica; update chat_turns set finalized_at = finalized_at - interval '500 days'");
  // Their messages are here still.
  expect(await mg.jobs.run("retire-usage-turns")).toMatchObject({ counts: { deleted: 0, periods: 0 } });
  await sql(
    "set session_replication_role = replica; update chat_turns set message_id = gen_random_uuid() where period = '2024-03'",
  );
  expect(await mg.jobs.run("retire-usage-turns", { dryRun: true })).toMatchObject({ counts: { would_delete: 2 } });
  expect(await mg.jobs.run("retire-usage-turns")).toMatchObject({ counts: { deleted: 2, periods: 1 } });
  expect(await sql("select distinct period from quota_usage order by 1")).toEqual([{ period: "2024-01" }, { period: "2024-02" }]);
  expect(await sql("select period, state from chat_turns order by 1")).toEqual([
    { period: "2024-01", state: "completed" },
    { period: "2024-02", state: "running" },
  ]);
  expect((await archived(mg, "usage_turns")).map(({ period }) => period)).toEqual(["2024-03", "2024-03"]);
  expect(await usage.verify()).toEqual([]);
});

describe("upkeep of the database", () => {
  it("locks that ran out a day ago go, a batch at a time; what is held and what ran out just now stays", async () => {
    await using scene = await retentionScene({ recovery: false });
    await scene.sql(
      `insert into leader (name, owner, until) select 'old ' || g, 'x', now() - interval '2 days' from generate_series(1, 5) g`,
    );
    await scene.sql(
      "insert into leader (name, owner, until) values ('recent', 'x', now() - interval '1 hour'), ('held', 'x', now() + interval '1 hour')",
    );
    expect(await scene.mg.jobs.run("clean-locks", { dryRun: true })).toMatchObject({ counts: { would_delete: 5 } });
    expect(await scene.mg.jobs.run("clean-locks", { batchSize: 3 })).toMatchObject({ counts: { deleted: 3 }, more: true });
    expect(await scene.mg.jobs.run("clean-locks", { batchSize: 3 })).toMatchObject({ counts: { deleted: 2 }, more: false });
    expect(await scene.sql("select name from leader where name not like 'job:%' order by 1")).toEqual([
      { name: "held" },
      { name: "recent" },
    ]);
  });

  it("a table full of dead rows, and the transaction that keeps them, is a finding until it was cleaned up", {
    timeout: 60_000,
  }, async () => {
    await using scene = await retentionScene({ recovery: false });
    const look = () => scene.mg.jobs.run("watch-bloat");
    expect(await look()).toMatchObject({ result: "done", counts: { bloated_tables: 0 }, notes: [] });
    await scene.sql("create table swollen (n int) with (autovacuum_enabled = off)");
    await withClient(async (client) => {
      await client.query("begin isolation level repeatable read");
      await client.query("select 1");
      await scene.sql("insert into swollen select generate_series(1, 150000)");
      await scene.sql("delete from swollen where n > 10000");
      await until("it is counted", async () => ((await look()).counts.bloated_tables as number) > 0);
      const { counts, notes } = await look();
      expect(counts.oldest_ms).toBeGreaterThan(0);
      expect(notes.join()).toMatch(/table swollen has 140000 dead rows/);
      expect(scene.mg.findings()).toContainEqual(expect.objectContaining({ what: "database_bloat", severity: "degraded" }));
      await client.query("rollback");
    });
    await scene.sql("vacuum swollen");
    await until("it is clean", async () => ((await look()).counts.bloated_tables as number) === 0);
    expect(scene.mg.findings()).toEqual([]);
  });
});

it("REC-38, DF-32: a Redis store against itself: a dry run counts what it would mend, the run mends it, and says who may have done it", async () => {
  const server = await startRedis();
  const redis = await connectRedis(server.url);
  const prefix = freshPrefix();
  const store = await openRedisStore({ redis, prefix });
  await using mg = await createMakegood({ store, log: "silent", topics: [topic("shop/charge", { sink: () => {} })] });
  expect(mg.jobs.list().map(({ name, everyMs }) => [name, everyMs])).toContainEqual(["reconcile", 600_000]);
  for (let i = 0; i < 3; i++) await mg.enqueue("shop/charge", { i });
  const keys = ((await server.ask("KEYS", `*${prefix}*`)) as string[]).map(String);
  await server.ask("DEL", ...keys.filter((key) => /[:}]l:u0:/.test(key)));
  expect(await mg.jobs.run("reconcile", { dryRun: true })).toMatchObject({ result: "done", counts: { would_mend: 3 } });
  expect(await mg.jobs.run("reconcile", { dryRun: true })).toMatchObject({ counts: { would_mend: 3 } });
  const ran = await mg.jobs.run("reconcile");
  expect(ran).toMatchObject({ counts: { mended: 3, quarantined: 0 } });
  expect(ran.notes.join()).toMatch(/look for a program/);
  expect(await mg.jobs.run("reconcile")).toMatchObject({ counts: { mended: 0 }, notes: [] });
  expect(await mg.workOff()).toMatchObject({ delivered: 3 });
  await store.lead("job:reconcile", "elsewhere:1:00000000", 60_000);
  expect(await mg.jobs.run("reconcile")).toMatchObject({ result: "skipped" });
  await redis.close();
});

it("REC-57: what retention deletes is counted under the seeds' names by the jobs themselves", async () => {
  await using scene = await retentionScene({ recovery: false, keptMs: DAY, retention: { dead: DAY }, topics: [CHARGE] });
  const { mg } = scene;
  const metrics = numbersOf(mg);
  await settledLongAgo(mg, ["delivered", "resolved", "open"]);
  await provenanceRows(scene, 4, 91);
  expect(await mg.jobs.run("prune-settled", { dryRun: true })).toMatchObject({ counts: { would_delete: 2 } });
  expect(await mg.jobs.run("prune-settled")).toMatchObject({ error: null, counts: { deleted: 2, archived: 1 } });
  expect(await mg.jobs.run("retire-provenance")).toMatchObject({ counts: { deleted: 4 } });
  const text = await metrics.text();
  expect(text).toMatch(/^m10_archive_retention_deleted_total 1$/m);
  expect(text).toMatch(/^m10_replay_log_retention_deleted_total 4$/m);
  expect(text).toMatch(/^makegood_retired_total\{source="dead"\} 1$/m);
});
