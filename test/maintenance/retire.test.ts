/**
 * Retention that archives first (REC-20, REC-24, REC-54, REC-56): what is past its time and settled goes, in batches, each archived and deleted in
 * one transaction; what is unresolved stays whatever its age. On a real PostgreSQL, also with two at once.
 */
import { mkdtemp, readdir, readFile, rm, truncate } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Makegood } from "../../src/create.ts";
import { reject, topic } from "../../src/index.ts";
import type { PruneArchive } from "../../src/store/store.ts";
import { CHARGE, DAY, provenanceRows, type RetentionScene, retentionScene, settledLongAgo } from "./scene.ts";

/** Every record of the archive, by class, as it can be read again. */
async function archived(mg: Makegood, name: string): Promise<Record<string, unknown>[]> {
  const lines: string[] = [];
  for (let after = 0; ; ) {
    const page = (await mg.archive?.list({ class: name, limit: 100, after })) ?? [];
    for (const { id } of page) lines.push(...((await mg.archive?.read(id)) ?? "").trimEnd().split("\n"));
    if (page.length < 100) return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    after = page.at(-1)?.id as number;
  }
}

const verified = (mg: Makegood) => mg.archive?.verify();

describe("records past their retention", () => {
  it("REC-24: 501 and 1,001 old lines of provenance are archived and deleted, none lost, none twice", async () => {
    await using scene = await retentionScene();
    await provenanceRows(scene, 3, 89);
    let total = 0;
    for (const rows of [501, 1_001]) {
      total += rows;
      await provenanceRows(scene, rows, 91);
      const rehearsed = await scene.mg.jobs.run("retire-provenance", { dryRun: true });
      expect(rehearsed).toMatchObject({ result: "done", dryRun: true, counts: { would_delete: rows } });
      expect(await scene.count("provenance")).toBe(rows + 3);
      const report = await scene.mg.jobs.run("retire-provenance");
      expect(report).toMatchObject({ result: "done", counts: { deleted: rows, archived: rows } });
      expect(await scene.count("provenance")).toBe(3);
      expect(scene.events).toContainEqual(expect.objectContaining({ type: "retired", class: "provenance", count: rows }));
    }
    const lines = await archived(scene.mg, "provenance");
    expect(new Set(lines.map(({ id }) => id)).size).toBe(total);
    expect(lines).toHaveLength(total);
    const chunks = await scene.sql<{ rows: number }>("select rows from archive_chunk order by id");
    expect(chunks.map((chunk) => chunk.rows)).toEqual([501, 1_000, 1]);
    expect(await scene.sql("select class, archived::int, deleted::int, result from retention_jobs order by id")).toEqual([
      { class: "provenance", archived: 501, deleted: 501, result: "done" },
      { class: "provenance", archived: 1_001, deleted: 1_001, result: "done" },
    ]);
    expect(await verified(scene.mg)).toMatchObject({ rows: total, unread: 0, faults: [] });
  });

  it("REC-20: settled dead letters are archived with the day that goes; an open one stays, and everything is accounted for", async () => {
    const refused = topic("shop/charge", { sink: () => reject("no such customer") });
    await using scene = await retentionScene({ topics: [refused], recovery: false });
    const { mg } = scene;
    const ids: string[] = [];
    for (const amount of [1, 2, 3]) ids.push((await mg.enqueue("shop/charge", { amount })).id);
    await mg.workOff();
    const [open = "", resolved = "", discarded = ""] = ids;
    await mg.store.intervene({ id: resolved, action: "resolve", actor: "ann", reason: "paid by hand" });
    await mg.store.intervene({ id: discarded, action: "discard", actor: "ann", reason: "a test" });
    const told: { class: string; rows: number }[] = [];
    const archive = { classes: ["dead"], told: (chunk) => void told.push(chunk) } satisfies PruneArchive;
    const at = (days: number) => ({ now: new Date(Date.now() + days * DAY) });
    const kept = { keptMs: 7 * DAY, deadKeptMs: 90 * DAY, limit: 10_000, archive };
    expect(await mg.store.prune({ ...kept, ...at(89) })).toBe(0);
    expect(await mg.store.prune({ ...kept, ...at(95) })).toBe(2);
    const lines = await archived(mg, "dead");
    expect(lines.map(({ id }) => id).toSorted()).toEqual([resolved, discarded].toSorted());
    expect(JSON.stringify(lines)).toContain("no such customer");
    expect(told.reduce((rows, one) => rows + one.rows, 0)).toBe(2);
    expect(await verified(mg)).toMatchObject({ rows: 2, faults: [] });
    expect(await mg.store.get(open)).toMatchObject({ status: "dead", resolution: "open" });
    expect(await mg.store.get(resolved)).toBe(null);
    expect((await mg.verify.run({ reach: "full" })).divergencesTotal).toBe(0);
  });

  it("a message that comes late for a day that left is accepted, delivered and goes, beside attempts that stayed", async () => {
    await using scene = await retentionScene({ topics: [CHARGE], recovery: false });
    const { mg, count } = scene;
    await settledLongAgo(mg, ["delivered", "open"]);
    const prune = () => mg.store.prune({ keptMs: DAY, limit: 10_000 });
    expect(await prune()).toBe(1);
    expect(await count("attempt_old")).toBe(1);
    await settledLongAgo(mg, ["delivered"]);
    expect(await count("attempt_old")).toBe(0);
    expect(await prune()).toBe(1);
    expect(await count("attempt")).toBe(1);
    expect((await mg.verify.run({ reach: "full" })).divergencesTotal).toBe(0);
  });

  it("two runs at once: each record goes once, and a second one by hand reports that it was skipped", async () => {
    await using scene = await retentionScene();
    await provenanceRows(scene, 3_000, 91);
    const other = await scene.another();
    const both = await Promise.all([
      scene.mg.jobs.run("retire-provenance", { skipLeaderElection: true, batchSize: 100 }),
      other.jobs.run("retire-provenance", { skipLeaderElection: true, batchSize: 100 }),
    ]);
    for (const report of both) expect(report).toMatchObject({ result: "done", error: null });
    await scene.mg.jobs.run("retire-provenance");
    expect(await scene.count("provenance")).toBe(0);
    expect(new Set((await archived(scene.mg, "provenance")).map(({ id }) => id)).size).toBe(3_000);
    expect(await verified(scene.mg)).toMatchObject({ rows: 3_000, faults: [] });
    await scene.mg.store.lead("job:retire-provenance", "elsewhere:1:00000000", 60_000);
    expect(await other.jobs.run("retire-provenance")).toMatchObject({ result: "skipped", counts: {} });
    expect(scene.events).toContainEqual(expect.objectContaining({ type: "lock", name: "job:retire-provenance", what: "failed" }));
  });

  it("provenance stays append-only: it leaves with its archive, past a week, or not at all", async () => {
    await using scene = await retentionScene();
    await provenanceRows(scene, 2, 91);
    await provenanceRows(scene, 1, 1);
    await expect(scene.sql("delete from provenance")).rejects.toThrow(/append-only/);
    await expect(scene.sql("update provenance set reason = 'x'")).rejects.toThrow(/append-only/);
    // Also with a chunk that says so, what is young stays.
    const chunk = `with c as (insert into archive_chunk (class, rows, bytes, first_id, last_id, sha256, chain, place)
      values ('provenance', 1, 1, '1', '9', '', '', 'nowhere') returning 1) select 1 from c`;
    await expect(scene.sql(`begin; ${chunk}; delete from provenance; commit`)).rejects.toThrow(/append-only/);
    expect(await scene.count("provenance")).toBe(3);
  });

  it("of messages that are still here, of open groups and of running redrives nothing goes, however old", async () => {
    await using scene = await retentionScene();
    await unresolved(scene);
    for (const { name } of scene.mg.jobs.list().filter(({ name: one }) => one.startsWith("retire-")))
      await scene.mg.jobs.run(name);
    expect(await scene.sql("select text from recovery_occurrence order by id")).toEqual(
      ["open report", "being executed", "newest of its group"].map((text) => ({ text })),
    );
    expect(await scene.sql("select n from redrive_item order by redrive_id, n")).toEqual([{ n: 3 }, { n: 1 }]);
    expect(await scene.count("provenance")).toBe(1);
    expect((await archived(scene.mg, "occurrences")).map(({ text }) => text)).toEqual(["closed report"]);
    expect((await archived(scene.mg, "redrive_items")).map(({ n }) => n)).toEqual([1, 2]);
  });
});

/** Rows a year old that must stay, beside those that may go. */
async function unresolved({ sql, mg }: RetentionScene): Promise<void> {
  await mg.store.topics.put({ name: "billing/x", sink: { kind: "function" } } as never, "api").catch(() => undefined);
  const old = "statement_timestamp() - interval '365 days'";
  await sql(`insert into recovery_group (fingerprint, match_id, topic, sink, code, template, first_at, last_at, reports_closed)
    select 'f' || g, 'm' || g, 'a/b', 'http', 'X', 't', ${old}, ${old}, case g when 1 then 1 else 0 end from generate_series(1, 2) g`);
  const report = (group: number, text: string) =>
    sql(
      `insert into recovery_occurrence (group_id, at, hash, source, code, text) values ($1, ${old}, gen_random_uuid(), 'api', 'X', $2)`,
      [group, text],
    );
  await report(1, "closed report");
  await report(1, "open report");
  await report(2, "being executed");
  await report(2, "newest of its group");
  await sql("update recovery_group set reports_closed = 4 where id = 2");
  await sql(`insert into recovery_candidate (group_id, round, created_at, updated_at, group_version, execution_status, execution_id)
    values (2, 1, ${old}, ${old}, 1, 'executing', 'e')`);
  const redrive = (id: string, status: string) =>
    sql(
      `insert into redrive (id, request_hash, status, mode, actor, reason, selection, plan, created_at, ended_at) values ($1, 'h', $2, 'replay', 'ann', 'r', '{}', '{}', ${old}, ${old})`,
      [id, status],
    );
  const item = (id: string, n: number, carrier: string | null = null, message = "00000000-0000-4000-8000-000000000000") =>
    sql(
      `insert into redrive_item (redrive_id, n, message_id, generation, revision, state, carrier_id, sent_at, ended_at) values ($1, $2, $3, 0, 1, 2, $4, ${old}, ${old})`,
      [id, n, message, carrier],
    );
  const [done, stopped] = ["017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c073990"];
  await redrive(done, "done");
  await redrive(stopped, "stopped");
  const here = "017f22e2-79b0-7cc3-98c4-dc0c0c07398e";
  await sql(`insert into message_kept (id, lane_id, payload) values ($1, 1, '{}')`, [here]);
  await item(done, 1);
  await item(done, 2, "00000000-0000-4000-8000-000000000001");
  await item(done, 3, "00000000-0000-4000-8000-000000000001", here);
  await item(stopped, 1);
  await sql(`insert into provenance (at, message_id, actor, action) values (${old}, $1, 'ann', 'replay')`, [here]);
}

describe("where archives go", () => {
  it("to files, sealed and checksummed: read again, and a truncated or missing one is found", async () => {
    const folder = await mkdtemp(join(tmpdir(), "makegood-archive-"));
    await using scene = await retentionScene({ archive: `file:${folder}`, archiveSealKey: "a key for the archive" });
    await provenanceRows(scene, 1_500, 91);
    await scene.mg.jobs.run("retire-provenance");
    expect(await scene.mg.jobs.run("ship-archive", { dryRun: true })).toMatchObject({ counts: { would_ship: 2 } });
    // Two at once, and again: the same files.
    await Promise.all([0, 1].map(() => scene.mg.jobs.run("ship-archive", { skipLeaderElection: true })));
    const files = (await readdir(folder)).sort();
    expect(files).toHaveLength(2);
    expect(await scene.count("archive_chunk", "body is not null")).toBe(0);
    expect((await readFile(join(folder, files[0] as string))).includes("resolve")).toBe(false);
    expect(await archived(scene.mg, "provenance")).toHaveLength(1_500);
    expect(await verified(scene.mg)).toMatchObject({ rows: 1_500, whole: 2, faults: [] });
    await truncate(join(folder, files[1] as string), 40);
    expect((await verified(scene.mg))?.faults).toEqual([expect.objectContaining({ class: "provenance" })]);
    await rm(join(folder, files[0] as string));
    expect((await verified(scene.mg))?.faults).toHaveLength(2);
    await rm(folder, { recursive: true });
  });

  it("to a receiver: under one key until it has taken them, and kept here while it has not", async () => {
    const got: { key: string; body: { text: string; class: string } }[] = [];
    let status = 500;
    const server = createServer((request, response) => {
      let text = "";
      request.on("data", (part) => {
        text += String(part);
      });
      request.on("end", () => {
        got.push({ key: String(request.headers["idempotency-key"]), body: JSON.parse(text) as never });
        response.writeHead(status).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await using scene = await retentionScene({ archive: `http://127.0.0.1:${port}/archive`, sinkAllow: ["127.0.0.0/8"] });
    await provenanceRows(scene, 5, 91);
    await scene.mg.jobs.run("retire-provenance");
    expect(await scene.mg.jobs.run("ship-archive")).toMatchObject({ result: "failed" });
    expect(await scene.count("archive_chunk", "body is not null")).toBe(1);
    status = 200;
    expect(await scene.mg.jobs.run("ship-archive")).toMatchObject({ result: "done", counts: { shipped: 1 } });
    expect(new Set(got.map(({ key }) => key)).size).toBe(1);
    expect(got.at(-1)?.body.text.trimEnd().split("\n")).toHaveLength(5);
    expect(await verified(scene.mg)).toMatchObject({ unread: 1, faults: [] });
    await new Promise((resolve) => server.close(resolve));
  });

  it("off: only the fact is kept that they went, and which", async () => {
    await using scene = await retentionScene({ archive: "off" });
    await provenanceRows(scene, 5, 91);
    expect(await scene.mg.jobs.run("retire-provenance")).toMatchObject({ counts: { deleted: 5, archived: 0 } });
    expect(await scene.sql("select rows, place, first_id, last_id from archive_chunk")).toEqual([
      { rows: 5, place: "nowhere", first_id: "1", last_id: "5" },
    ]);
  });

  it("an archived chunk that is edited or taken away is found", async () => {
    await using scene = await retentionScene();
    await provenanceRows(scene, 30, 91);
    await scene.mg.jobs.run("retire-provenance", { batchSize: 10 });
    expect(await verified(scene.mg)).toMatchObject({ chunks: 3, faults: [] });
    await expect(scene.sql("update archive_chunk set body = 'x'")).rejects.toThrow(/never changes/);
    await scene.sql(
      "set session_replication_role = replica; update archive_chunk set body = replace(body, 'row 1', 'row 2') where id = 1",
    );
    await scene.sql("set session_replication_role = replica; delete from archive_chunk where id = 2");
    expect((await verified(scene.mg))?.faults.map(({ id }) => id)).toEqual([1, 3]);
  });
});
