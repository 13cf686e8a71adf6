/**
 * The recovery tables themselves: what they refuse, by whatever way it is written, their names as the seed knows them, and how a database that
 * holds dead letters already gets them.
 */
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createIds } from "../../src/platform/ids.ts";
import type { NewOccurrence } from "../../src/recovery/failures/failure.ts";
import { evaluateRules } from "../../src/recovery/rules/evaluate.ts";
import { evaluationToJson } from "../../src/recovery/rules/evaluation-json.ts";
import { createConnection, KERNEL_SET, migrateUp } from "../../src/store/postgres/index.ts";
import { daysAround, ensurePartitions } from "../../src/store/postgres/partitions.ts";
import { definition, newMessage } from "../../src/testing/store-conformance/fixtures.ts";
import { beginTransaction, databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";
import { EVALUATE, identity, newOccurrence } from "./records/scene.ts";

const nextId = createIds();
const schema = freshSchema();
let store: Awaited<ReturnType<typeof openStore>>;

const settings = { ids: nextId, rejectedRestMs: 0 };

const failure = (name: string, fields: Partial<NewOccurrence> = {}): NewOccurrence =>
  newOccurrence(name, nextId(), { failurePayload: `{"error_type":"${name}"}`, ...fields });

async function candidateOf(name: string, fields: Partial<NewOccurrence> = {}): Promise<number> {
  const [answer] = await store.recovery.ingest([failure(name, fields)], settings);
  return answer?.candidateId as number;
}

const sql = (text: string, values: unknown[] = []) =>
  withClient(async (client) => (await client.query(text.replaceAll("$s", `"${schema}"`), values)).rows);

beforeAll(async () => {
  store = await openStore({ schema });
  for (const topic of ["test/plain", EVALUATE, "recovery/notify"]) await store.topics.put(definition(topic), "code");
});

afterAll(async () => {
  await store.close();
  await dropSchema(schema);
});

describe("fences of the tables", () => {
  const move = (id: number, set: string) =>
    sql(`update $s.recovery_candidate set version = version + 1, ${set} where id = ${id}`);

  it("DR-1, DR-2: an execution never begins twice, by whatever way it is written", async () => {
    const id = await candidateOf("twice");
    await expect(move(id, "execution_status = 'executing'")).rejects.toThrow(/check constraint/);
    await move(id, "decision = 'approved', execution_status = 'executing', execution_id = 'e-1'");
    await expect(move(id, "execution_status = 'pending'")).rejects.toThrow(/is executing and cannot become pending/);
    await move(id, "execution_status = 'succeeded'");
    await expect(move(id, "execution_status = 'executing'")).rejects.toThrow(/is succeeded and cannot become executing/);
    await move(id, "execution_status = 'rolled_back'");
    await expect(move(id, "execution_status = 'succeeded'")).rejects.toThrow(/cannot become succeeded/);
  });

  it("DR-5: an unknown outcome is ended by succeeded or failed, never run again", async () => {
    const id = await candidateOf("unknown");
    await move(id, "execution_status = 'executing', execution_id = 'e-1'");
    await move(id, "execution_status = 'unknown'");
    for (const state of ["executing", "pending", "skipped"]) {
      await expect(move(id, `execution_status = '${state}'`)).rejects.toThrow(/is unknown and cannot become/);
    }
    await move(id, "execution_status = 'failed'");
  });

  it("DR-33: a rejection is final, and what was rejected is not executed", async () => {
    const id = await candidateOf("rejected");
    await move(id, "decision = 'rejected'");
    await expect(move(id, "decision = 'approved'")).rejects.toThrow(/was rejected/);
    await expect(move(id, "execution_status = 'executing', execution_id = 'e'")).rejects.toThrow(/cannot be executed/);
    await expect(move(id, "evaluation_status = 'evaluated'")).rejects.toThrow(/is unevaluated and cannot become evaluated/);
    await expect(sql(`update $s.recovery_candidate set note = 'x' where id = ${id}`)).rejects.toThrow(/its version rises/);
    await expect(move(id, "execution_status = 'else'")).rejects.toThrow();
  });

  it("DR-40: nothing changes or deletes a line of provenance, and nothing it names can take it along", async () => {
    const id = await candidateOf("kept");
    const lines = () => sql("select event from $s.recovery_provenance where candidate_id = $1", [id]);
    expect(await lines()).toEqual([{ event: "created" }]);
    await expect(sql("update $s.recovery_provenance set actor = 'other' where candidate_id = $1", [id])).rejects.toThrow(
      /append-only/,
    );
    await expect(sql("delete from $s.recovery_provenance where candidate_id = $1", [id])).rejects.toThrow(/append-only/);
    const references = await sql(
      "select conname from pg_constraint where contype = 'f' and conrelid = '$s.recovery_provenance'::regclass",
    );
    expect(references).toEqual([]);
    const cascades = await sql(`select c.relname, k.conname from pg_constraint k join pg_class c on c.oid = k.conrelid
      join pg_namespace n on n.oid = c.relnamespace where n.nspname = '${schema}' and k.contype = 'f' and k.confdeltype <> 'a'`);
    expect(cascades).toEqual([]);
    await expect(sql(`delete from $s.recovery_candidate where id = ${id}; delete from $s.recovery_group`)).rejects.toThrow(
      /foreign key/,
    );
    expect(await lines()).toHaveLength(1);
  });

  it("DR-3: a confidence of 0.2 is 0.2, and one outside of 0 to 1 is refused", async () => {
    const id = await candidateOf("sure");
    await move(id, "confidence = 0.2");
    expect(await sql(`select id from $s.recovery_candidate where id = ${id} and confidence <= 0.2`)).toHaveLength(1);
    expect(await sql(`select id from $s.recovery_candidate where id = ${id} and confidence = $1`, [0.2])).toHaveLength(1);
    expect((await store.recovery.candidate(id))?.confidence).toBe(0.2);
    for (const wrong of ["1.0000001", "-0.1", "'NaN'"]) {
      await expect(move(id, `confidence = ${wrong}`)).rejects.toThrow(/check constraint/);
    }
  });

  it("DR-43: every number that counts rows is a bigint", async () => {
    const rows =
      await sql(`select table_name, column_name, data_type from information_schema.columns where table_schema = '${schema}'
      and (table_name like 'recovery_%' or table_name like 'redrive%') and data_type in ('integer', 'smallint')`);
    const small = rows.map(({ table_name: table, column_name: column }) => `${table}.${column}`);
    expect(
      small.filter(
        (name) => !/\.(version|round|evaluations|group_version|generation|attempts|state|n|no|group_no|revision|run)$/.test(name),
      ),
    ).toEqual([]);
    await sql("select setval(pg_get_serial_sequence('$s.recovery_candidate', 'id'), 4000000000)");
    const id = await candidateOf("large");
    expect(id).toBe(4_000_000_001);
    expect((await store.recovery.candidate(id))?.candidateId).toBe(id);
  });

  it("DR-19: what may be there already is named by its columns, not by the name of an index", async () => {
    const folder = fileURLToPath(new URL("../../src/recovery", import.meta.url));
    const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".ts"));
    expect(files).toContain("failures/ingest-sql.ts");
    for (const name of files) expect(await readFile(`${folder}/${name}`, "utf8"), name).not.toMatch(/on conflict on constraint/i);
  });
});

describe("the seed's names", () => {
  const columnsOf = async (view: string) =>
    (
      await sql(
        `select column_name as name from information_schema.columns where table_schema = '${schema}' and table_name = $1`,
        [view],
      )
    ).map(({ name }) => name);

  it("REC-1, REC-5, REC-20: recovery_candidates has the seed's columns, one row for each failure_match_id (DR-20)", async () => {
    const id = await candidateOf("slow", { requestKey: "r-1", failureMatchId: "11111111-1111-4111-8111-111111111111" });
    await store.recovery.ingest([failure("slow", { requestKey: "report:r-2" })], settings);
    const evaluation = JSON.stringify(evaluationToJson(evaluateRules("TIMEOUT", "slow took 1003 ms")));
    const done = async (patch: Parameters<typeof store.recovery.write>[0]["patch"]) =>
      expect((await store.recovery.write({ candidateId: id, patch, provenance: [] })).kind).toBe("done");
    await done({ evaluationStatus: "evaluating" });
    await done({
      evaluationStatus: "evaluated",
      evaluated: true,
      selectedAction: "retry_exponential",
      confidence: 0.85,
      evaluation,
    });
    await done({ decision: "approved", approval: { actor: "ann", note: null } });
    await done({ approval: { actor: "bob", note: null } });
    await done({ executionStatus: "skipped", executionResult: `{"status":"skipped"}` });
    const [row] = await sql("select * from $s.recovery_candidates where id = $1 order by failure_match_id desc", [id]);
    expect(row).toMatchObject({
      ...{
        failure_match_id: identity("slow").failureMatchId,
        suggestion: "retry_exponential",
        confidence: 0.85,
        decision: "approved",
      },
      ...{ occurrence_count: "2", source: "api", error_code: "timeout", error_signature: identity("slow").fingerprint },
      ...{ approved_by: "ann, bob", approved_at: expect.any(Date), selected_action_id: "retry_exponential" },
      ...{ rules_evaluated: expect.arrayContaining([expect.objectContaining({ rule_id: "timeout_retry", matched: true })]) },
      ...{ execution_status: "skipped", executed_at: null, execution_result: { status: "skipped" } },
      ...{ idempotency_key: "r-2", evaluated_at: expect.any(Date) },
      ...{
        explain: { recommended_action: "retry_exponential" },
        last_occurrence_at: expect.any(Date),
        created_at: expect.any(Date),
        updated_at: expect.any(Date),
      },
    });
    expect(await sql("select failure_match_id from $s.recovery_candidates group by 1 having count(*) > 1")).toEqual([]);
  });

  it("REC-2: suggestion_input says what was known, as it came and as it was read", async () => {
    const id = await candidateOf("input", { stackTrace: "at f (a.ts:1)", skillId: "search", tenantId: "t-1", requestKey: null });
    const rows = await sql("select * from $s.suggestion_input where suggestion_id = $1 order by id", [id]);
    expect(rows.map(({ input_type, raw_value, normalized_value }) => [input_type, raw_value, normalized_value])).toEqual([
      ["error_code", "timeout", "timeout"],
      ["error_message", "input took 1003 ms", "input took <num> ms"],
      ["stack_trace", "at f (a.ts:1)", null],
      ["skill_context", "search", "search"],
      ["tenant_context", "t-1", "t-1"],
    ]);
    expect(rows[1]).toMatchObject({
      parsed_data: { error_type: "input" },
      confidence: 1,
      weight: 1,
      source: "api",
      created_at: expect.any(Date),
    });
    expect(new Set(rows.map((row) => row.id)).size).toBe(5);
  });

  it("REC-3, REC-4: suggestion_action and suggestion_provenance", async () => {
    const id = await candidateOf("acted");
    const action = {
      code: "skip_task",
      name: "Skip",
      type: "skip",
      priority: 20,
      approval: "one",
      automated: false,
      applies_to_codes: ["gone"],
      template: { a: 1 },
    };
    await store.recovery.documents.put({
      kind: "action",
      id: "skip_task",
      text: JSON.stringify(action),
      version: 0,
      actor: "system",
    });
    const groupId = (await store.recovery.candidate(id))?.groupId as number;
    await store.recovery.learn([{ groupId, action: "skip_task", healed: 3, failed: 1 }]);
    const risky = JSON.stringify({ ...action, code: "z", approval: "none", risk: "risky" });
    await store.recovery.documents.put({ kind: "action", id: "z", text: risky, version: 0, actor: "system" });
    expect(await sql("select requires_approval from $s.suggestion_action where id = 'z'")).toEqual([{ requires_approval: true }]);
    expect(await sql("select * from $s.suggestion_action where id <> 'z'")).toEqual([
      {
        ...{
          id: "skip_task",
          action_code: "skip_task",
          name: "Skip",
          action_type: "skip",
          template: { a: 1 },
          priority: 20,
          version: 1,
        },
        ...{ applies_to_error_codes: ["gone"], applies_to_skills: [], success_rate: 0.75, total_applications: "1" },
        ...{ is_automated: false, requires_approval: true, is_active: true, updated_at: expect.any(Date) },
      },
    ]);
    const line = {
      groupId,
      candidateId: id,
      eventType: "rule_evaluated",
      actor: "system",
      actorType: "system",
      reason: null,
      ruleId: "r-1",
    } as const;
    await store.recovery.note([
      { ...line, action: "skip_task", confidenceBefore: 0.5, confidenceAfter: 0.7, durationMs: 1.5, details: `{"n":1}` },
    ]);
    expect(await sql("select * from $s.suggestion_provenance where suggestion_id = $1 and rule_id = 'r-1'", [id])).toMatchObject([
      {
        ...{
          event_type: "rule_evaluated",
          details: { n: 1 },
          action_id: "skip_task",
          confidence_before: 0.5,
          confidence_after: 0.7,
        },
        ...{ actor: "system", actor_type: "system", created_at: expect.any(Date), duration_ms: 1.5 },
      },
    ]);
  });

  it("REC-20, DR-39: mv_top_pending is never stale, and ordered by its reader", async () => {
    const [low, high] = [await candidateOf("low"), await candidateOf("high")];
    const sure = async (candidateId: number, confidence: number) =>
      store.recovery.write({ candidateId, patch: { confidence }, provenance: [] });
    await sure(low, 0.3);
    await sure(high, 0.9);
    const top = async () =>
      (await sql("select id from $s.mv_top_pending where id = any ($1) order by confidence desc", [[low, high]])).map(({ id }) =>
        Number(id),
      );
    expect(await top()).toEqual([high, low]);
    await sure(low, 0.95);
    expect(await top()).toEqual([low, high]);
    await store.recovery.write({ candidateId: low, patch: { decision: "rejected" }, provenance: [] });
    expect(await top()).toEqual([high]);
  });

  it("REC-28: work_queue shows the evaluations that were asked for", async () => {
    const id = await candidateOf("queued");
    const rows = await sql("select * from $s.work_queue where candidate_id = $1", [id]);
    expect(rows).toMatchObject([
      { priority: 0, enqueued_at: expect.any(Date), claimed_by: null, processed_at: null, success: null, error_message: null },
    ]);
    const [{ id: messageId }] = rows as [{ id: string }];
    await store.claim({ owner: "worker-1", leaseMs: 10_000, lanes: [], ids: [messageId] });
    expect(await sql("select claimed_by from $s.work_queue where id = $1", [messageId])).toEqual([{ claimed_by: "worker-1" }]);
  });

  it("REC-46, DR-47: replay_log, dead_letter_archive, distributed_locks, outbox", async () => {
    const rejected = { code: "http_503", error: "down", rejected: true };
    const ids = [nextId(), nextId()] as [string, string];
    await store.enqueue(ids.map((id) => newMessage(id, { topic: "test/plain", directTry: rejected })));
    await store.intervene({ id: ids[0], action: "replay", actor: "ann", reason: "back again" });
    await store.intervene({ id: ids[1], action: "resolve", actor: "bob", reason: null });
    expect(await sql("select * from $s.replay_log")).toMatchObject([
      { original_msg_id: ids[0], new_msg_id: ids[0], replayed_by: "ann", reason: "back again", replayed_at: expect.any(Date) },
    ]);
    const archived = await sql("select * from $s.dead_letter_archive");
    expect(archived).toMatchObject([
      { id: ids[1], topic: "test/plain", code: "http_503", error: "down", reason: "resolved", archived_at: expect.any(Date) },
    ]);
    const { term } = await store.lead("m10:reconcile_dl", "host:1:abc", 60_000);
    expect(await sql("select * from $s.distributed_locks")).toEqual([
      { lock_name: "m10:reconcile_dl", holder_id: "host:1:abc", fencing_token: term, expires_at: expect.any(Date) },
    ]);
    await store.enqueue([newMessage(nextId(), { topic: "recovery/notify", key: "e-1", payload: `{"to":"ops"}` })]);
    expect(await sql("select * from $s.outbox")).toMatchObject([
      {
        aggregate_type: "recovery",
        aggregate_id: "e-1",
        event_type: "recovery/notify",
        payload: { to: "ops" },
        processed_at: null,
        retry_count: "0",
      },
    ]);
  });

  it("the columns that the seed names are there", async () => {
    expect(await columnsOf("recovery_candidates")).toEqual(
      expect.arrayContaining([
        "id",
        "failure_match_id",
        "suggestion",
        "confidence",
        "explain",
        "decision",
        "occurrence_count",
        "idempotency_key",
      ]),
    );
    expect(await columnsOf("mv_top_pending")).toEqual(await columnsOf("recovery_candidates"));
  });
});

describe("a database that holds dead letters already", () => {
  it("DR-21, DR-48: version 5 gets the tables inside transactions, without rewriting what is there; the dead letters are ingested", async () => {
    const old = freshSchema();
    const connection = createConnection({ url: databaseUrl() });
    await connection.open();
    const { migrations } = KERNEL_SET;
    await migrateUp(connection, old, { ...KERNEL_SET, migrations: migrations.slice(0, 5) });
    await ensurePartitions(connection, `"${old}"`, daysAround(Date.now()));
    expect(migrations.map((migration) => migration.sql(`"${old}"`)).join()).not.toMatch(/index concurrently/i);
    const file = async () => (await connection.rows("test", `select pg_relation_filenode('"${old}".dead_letter')::text`, []))[0];
    await withClient(async (client) => {
      await client.query(`insert into "${old}".topic (name, definition, source) values ('old/one', $1, 'api')`, [
        JSON.stringify({ ordering: "none" }),
      ]);
      await client.query(`insert into "${old}".lane (topic_id) select id from "${old}".topic`);
      await client.query(`with m as (insert into "${old}".message (id, lane_id, payload) select "${old}".next_id(), l.id, '{}'
          from "${old}".lane l, generate_series(1, 300) returning id, lane_id)
        insert into "${old}".dead_letter (id, lane_id, attempts, code, error) select id, lane_id, 5, 'http_503', 'took 7 ms' from m`);
    });
    const before = await file();
    // Another session is reading: the migration waits for that, and does not fail.
    const { tx, commit } = await beginTransaction();
    await tx.query(`select count(*) from "${old}".dead_letter`);
    const opening = openStore({ schema: old });
    await sleep(300);
    await commit();
    const upgraded = await opening;
    expect(await file()).toEqual(before);
    const found = await upgraded.recovery.uningested(1_000, []);
    expect(found).toHaveLength(300);
    for (const batch of [found.slice(0, 200), found.slice(200)]) {
      await upgraded.recovery.ingest(
        batch.map((message) =>
          failure("old", { message, requestKey: `message:${message.id}`, source: "message", evaluate: false }),
        ),
        settings,
      );
    }
    expect(await upgraded.recovery.uningested(1_000, [])).toEqual([]);
    const group = await upgraded.recovery.groupOf({ fingerprint: identity("old").fingerprint });
    expect(group).toMatchObject({ occurrenceCount: 300, openMessages: 300 });
    const preview = await upgraded.recovery.redrives.preview({ groupId: group?.groupId, limit: 1_000, generationMax: 10 });
    expect(preview).toMatchObject({ messages: 300, topics: [{ topic: "old/one", messages: 300 }] });
    await connection.close();
    await upgraded.close();
    await dropSchema(old);
  });
});
