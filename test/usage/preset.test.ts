/**
 * The usage preset from reserve to publisher, on a real PostgreSQL: one message for each reserve, from an allow-list, to the plugin
 * that is chosen when it is delivered.
 */
import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, createMemoryUsageStore, DUPLICATE, isMakegoodError } from "../../src/index.ts";
import { createUsage, createUsagePublishers, snapshotSchema, USAGE_TOPIC, usageTopic } from "../../src/presets/index.ts";
import { withClient } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { minutes, usageStage, uuid } from "./scene.ts";

const hex = (id: string) => id.replaceAll("-", "");

describe("one message for each reserve", () => {
  it("OBX-8, OBX-16: the message says what was settled, under the key tenant/turn/request", async () => {
    await using stage = await usageStage({ counters: ["searches"] });
    const turn = await stage.running();
    const usage = { inputTokens: 900, outputTokens: 1_500, counters: { searches: 2 } };
    const result = await stage.usage.finalize({ ...turn, outcome: "completed", usage, reason: "stop" });
    expect(result).toMatchObject({ kind: "final", won: true, turn: { state: "completed" } });
    const { data } = await stage.mg.store.list({ limit: 10 });
    expect(data).toHaveLength(1);
    expect(data[0]).toMatchObject({
      topic: USAGE_TOPIC,
      tenantId: hex(stage.tenantId),
      key: `${turn.tenantId}/${turn.turnId}/${turn.requestId}`,
      schemaVersion: 1,
    });
    expect(JSON.parse(data[0]?.payload ?? "")).toEqual({
      tenant_id: turn.tenantId,
      turn_id: turn.turnId,
      request_id: turn.requestId,
      user_id: hex(stage.userId),
      policy_version_applied: "2026-11.3",
      effective_model: "house-large",
      outcome: "completed",
      settlement_method: "actual",
      usage: { input_tokens: 900, output_tokens: 1_500, searches: 2 },
      reserved_credits: "33000",
      settled_credits: "25200",
      overshoot_capped: false,
      quota_period: "2026-11",
      reason: "stop",
      finalized_at: expect.stringMatching(/Z$/),
    });
    expect(await stage.sums()).toEqual([0n, 25_200n]);
  });

  it("OBX-18: finalising again, with whatever, makes no second message", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    await stage.usage.finalize({ ...turn, outcome: "completed", usage: { inputTokens: 1, outputTokens: 1 } });
    const again = await stage.usage.finalize({ ...turn, outcome: "aborted" });
    expect(again).toMatchObject({ won: false, turn: { state: "completed" } });
    expect(await stage.payloads()).toHaveLength(1);
  });

  it("DO-13: one message for each reserve, charged or not", async () => {
    await using stage = await usageStage();
    const ends = [
      { outcome: "completed", usage: { inputTokens: 10, outputTokens: 10 } },
      { outcome: "failed", requestSent: false },
      { outcome: "aborted" },
    ] as const;
    for (const end of ends) await stage.usage.finalize({ ...(await stage.running()), ...end });
    const payloads = await stage.payloads();
    expect(payloads.map((p) => [p.settlement_method, p.settled_credits])).toEqual([
      ["actual", "180"],
      ["released", "0"],
      ["estimated", "3750"],
    ]);
    expect(await stage.sums()).toEqual([0n, 3_930n]);
    expect(await stage.usage.verify()).toEqual([]);
  });

  it("OBX-13: fifty finalisers of one turn, one winner", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    const outcomes = ["completed", "failed", "aborted"] as const;
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => stage.usage.finalize({ ...turn, outcome: outcomes[i % 3] ?? "completed" })),
    );
    const winners = results.filter((result) => result.kind === "final" && result.won);
    expect(winners).toHaveLength(1);
    expect(new Set(results.map((result) => result.kind === "final" && result.turn.messageId)).size).toBe(1);
    expect(await stage.payloads()).toHaveLength(1);
    expect(await stage.sums()).toEqual([0n, 3_750n]);
  });

  it("a message that another put under the turn's key with another payload is a conflict, and nothing is debited", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    const [done] = [await stage.running()];
    await stage.usage.finalize({ ...done, outcome: "aborted" });
    const [payload] = await stage.payloads();
    const key = `${turn.tenantId}/${turn.turnId}/${turn.requestId}`;
    await stage.mg.enqueue(USAGE_TOPIC, payload, { key, tenantId: turn.tenantId });
    await expect(stage.usage.finalize({ ...turn, outcome: "aborted" })).rejects.toMatchObject({ code: "key_conflict" });
    expect((await stage.usage.turn(turn))?.state).toBe("running");
    expect(await stage.usage.verify()).toEqual([]);
  });
});

describe("EV-35: content and the caller's transaction", () => {
  it("EV-35: a completed turn and its content are one commit", async () => {
    await using stage = await usageStage();
    await withClient((client) =>
      client.query(`create table "${stage.schema}".content (turn text primary key, body text not null)`),
    );
    const turn = await stage.running();
    const storeContent = async (tx: { query(text: string, values?: unknown[]): Promise<unknown> } | undefined) =>
      void (await tx?.query(`insert into "${stage.schema}".content values ($1, 'hello')`, [turn.turnId]));
    await stage.usage.finalize({ ...turn, outcome: "completed" }, { storeContent });
    const { rows } = await withClient((client) => client.query(`select body from "${stage.schema}".content`));
    expect(rows).toEqual([{ body: "hello" }]);
    expect((await stage.usage.turn(turn))?.state).toBe("completed");
  });

  it("EV-35: a completed turn whose content cannot be stored is failed, for the same usage, with one message", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    const usage = { inputTokens: 10, outputTokens: 10 };
    const storeContent = async (tx: { query(text: string): Promise<unknown> } | undefined) =>
      void (await tx?.query("insert into nowhere values (1)"));
    const result = await stage.usage.finalize({ ...turn, outcome: "completed", usage }, { storeContent });
    expect(result).toMatchObject({
      won: true,
      turn: { state: "failed", settlement: { method: "actual", credits: 180n, reason: "content_not_stored" } },
    });
    expect(await stage.payloads()).toHaveLength(1);
  });

  it("OBX-14: a rollback of the caller's takes debit and message with it", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    await withClient(async (tx) => {
      await tx.query("begin");
      expect(await stage.usage.finalize({ ...turn, outcome: "aborted" }, { tx })).toMatchObject({ won: true });
      await tx.query("rollback");
    });
    expect(await stage.payloads()).toEqual([]);
    expect(await stage.sums()).toEqual([turn.reservedCredits, 0n]);
  });

  it("a pool or a connection outside a transaction is refused before anything is written", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    await withClient(async (tx) => {
      await expect(stage.usage.finalize({ ...turn, outcome: "aborted" }, { tx })).rejects.toMatchObject({
        code: "not_a_transaction",
      });
    });
    expect((await stage.usage.turn(turn))?.state).toBe("running");
  });

  it("the database itself refuses a final turn without its message, a change of it, and the loss of a running one", async () => {
    await using stage = await usageStage();
    const [turn, final] = [await stage.running(), await stage.running()];
    await stage.usage.finalize({ ...final, outcome: "aborted" });
    const run = (text: string, id: string) =>
      withClient((client) => client.query(text.replace("T", `"${stage.schema}".chat_turns`), [id]));
    await expect(run("update T set state = 'completed' where turn_id = $1", turn.turnId)).rejects.toThrow(/chat_turns_whole/);
    await expect(run("update T set reserved_credits = 0 where turn_id = $1", turn.turnId)).rejects.toThrow(/cannot change/);
    await expect(run("delete from T where turn_id = $1", turn.turnId)).rejects.toThrow(/running/);
    await expect(run("update T set credits = 0 where turn_id = $1", final.turnId)).rejects.toThrow(/is final/);
  });
});

describe("DO-14: the orphan watchdog", () => {
  it("DO-14: a turn whose process is gone is aborted by estimate, once, whatever number of watchdogs look", async () => {
    await using stage = await usageStage();
    const turns = [];
    for (let i = 0; i < 12; i++) turns.push(await stage.running());
    const alive = await stage.running();
    expect(await stage.usage.sweep()).toEqual({ finalized: 0, failed: 0 });
    await stage.usage.store.progress(alive, minutes(9));
    const [one, two] = await Promise.all([stage.usage.sweep(minutes(10)), stage.usage.sweep(minutes(10))]);
    expect((one?.finalized ?? 0) + (two?.finalized ?? 0)).toBe(12);
    expect((await stage.usage.turn(turns[0]!))?.settlement).toMatchObject({
      outcome: "aborted",
      method: "estimated",
      reason: "orphaned",
    });
    expect((await stage.usage.turn(alive))?.state).toBe("running");
    expect(await stage.payloads()).toHaveLength(12);
    expect(await stage.usage.verify()).toEqual([]);
  });

  it("EV-34: against live finalisers each turn has one winner", async () => {
    await using stage = await usageStage();
    const turns = [];
    for (let i = 0; i < 20; i++) turns.push(await stage.running());
    const live = turns.map((turn) =>
      stage.usage.finalize({ ...turn, outcome: "completed", usage: { inputTokens: 1, outputTokens: 1 } }),
    );
    const [swept, ...results] = await Promise.all([stage.usage.sweep(minutes(10)), ...live]);
    const won = results.filter((result) => result.kind === "final" && result.won).length;
    expect(won + swept.finalized).toBe(20);
    expect(await stage.payloads()).toHaveLength(20);
    expect(await stage.usage.verify()).toEqual([]);
  });

  it("EV-34: one that cannot be finalised holds up no other, and the bounds of silence are kept", async () => {
    await using stage = await usageStage();
    const [stuck, other] = [await stage.running(), await stage.running()];
    const key = `${stuck.tenantId}/${stuck.turnId}/${stuck.requestId}`;
    await stage.usage.finalize({ ...other, outcome: "aborted" });
    const [payload] = await stage.payloads();
    await stage.mg.enqueue(USAGE_TOPIC, payload, { key, tenantId: stuck.tenantId });
    const third = await stage.running();
    expect(await stage.usage.sweep(minutes(10))).toEqual({ finalized: 1, failed: 1 });
    expect((await stage.usage.turn(third))?.state).toBe("cancelled");
    expect(() => stage.usage.watch({ idleMs: 59_999 })).toThrow(/idleMs/);
    expect(() => stage.usage.watch({ idleMs: 3_600_001 })).toThrow(/idleMs/);
  });

  it("EV-34, DX-10: the watchdog that is started does look, under leadership", async () => {
    await using stage = await usageStage();
    const turn = await stage.running();
    await withClient((client) => client.query(`update "${stage.schema}".chat_turns set progress_at = now() - interval '1 hour'`));
    await using _watchdog = stage.usage.watch({ everyMs: 100 });
    await until("the orphan is final", async () => (await stage.usage.turn(turn))?.state === "cancelled");
    const leaders = `select name from "${stage.schema}".leader where name = 'usage-watchdog'`;
    await until("a process leads", async () => (await withClient((client) => client.query(leaders))).rows.length === 1);
    // Not the first look any more, but the leader's.
    const later = await stage.running();
    await withClient((client) =>
      client.query(`update "${stage.schema}".chat_turns set progress_at = now() - interval '1 hour' where state = 'running'`),
    );
    await until("the later one is final, too", async () => (await stage.usage.turn(later))?.state === "cancelled");
  });
});

describe("OBX-4: the publisher is chosen at run time", () => {
  it("OBX-4, OBX-26: repeats carry the same key, an idempotent receiver is charged once, and a missing plugin is waited for", async () => {
    await using stage = await usageStage({ attemptsMax: 10 });
    const charged = new Map<string, string>();
    let calls = 0;
    stage.publishers.register("minichat-quota-policy", {
      publishUsage(snapshot, { idempotencyKey }) {
        calls++;
        if (charged.has(idempotencyKey)) return DUPLICATE;
        charged.set(idempotencyKey, snapshot.settled_credits);
        throw new Error("charged, and then the answer was lost");
      },
    });
    stage.publishers.choose("not-there-yet");
    const turn = await stage.running();
    await stage.usage.finalize({ ...turn, outcome: "aborted" });
    const worker = stage.mg.work();
    await until("it was tried", async () => (await stage.mg.store.list({ limit: 1 })).data[0]?.lastCode === "publisher_missing");
    stage.publishers.choose("minichat-quota-policy");
    await until("delivered", async () => (await stage.mg.store.list({ limit: 1 })).data[0]?.status === "delivered");
    await worker.stop();
    expect(calls).toBe(2);
    expect([...charged]).toEqual([[`${turn.tenantId}/${turn.turnId}/${turn.requestId}`, "3750"]]);
    expect(stage.published).toEqual([]);
  });

  it("DO-15: a usage message without its own key is no charge: it is a dead letter, and health says so", async () => {
    await using stage = await usageStage();
    await stage.usage.finalize({ ...(await stage.running()), outcome: "aborted" });
    const [payload] = await stage.payloads();
    expect(await stage.usage.health()).toMatchObject({ status: "ok", pending: 1, deadLetters: 0 });
    await stage.mg.enqueue(USAGE_TOPIC, payload, { key: `${hex(uuid())}/1/2` });
    await stage.mg.enqueue(USAGE_TOPIC, payload);
    const worker = stage.mg.work();
    await until("all settled", async () => (await stage.usage.health()).deadLetters === 2);
    await worker.stop();
    expect(stage.published).toHaveLength(1);
    expect(await stage.usage.health()).toMatchObject({ status: "degraded", pending: 0, deadLetters: 2 });
    expect((await stage.mg.store.list({ status: "dead", limit: 9 })).data[0]?.lastCode).toBe("usage_key_mismatch");
  });
});

describe("DO-18: the allow-list", () => {
  it("DO-18: provider identifiers have no way in, neither as a field nor as a value", async () => {
    await using stage = await usageStage();
    const usage = { inputTokens: 5, outputTokens: 5, response_id: "resp_1", counters: { response_id: 5 }, id: "chatcmpl-9" };
    await stage.usage.finalize({ ...(await stage.running()), outcome: "failed", usage, reason: "req_011CSHoEeqs5C35K2UUqR7Fy" });
    const [good] = await stage.payloads();
    expect(JSON.stringify(good)).not.toMatch(/resp_|chatcmpl|req_0|response_id/);
    for (const model of ["resp_68a1", "chatcmpl-123", "asst_abc", "thread_abc", "msg_01", "with space", ""]) {
      await expect(stage.usage.reserve(stage.input({ model }))).rejects.toThrow(/model/);
    }
    const wrong: object[] = [
      { response_id: "resp_1" },
      { effective_model: "resp_1" },
      { user_id: "user-abc" },
      { reason: "resp_68a1-XYZ" },
      { settled_credits: 12 },
      { settled_credits: "1.5" },
      { usage: { input_tokens: 1, output_tokens: 1, provider_request: 7 } },
      { usage: { input_tokens: 1 } },
      { usage: { input_tokens: "1", output_tokens: 1 } },
    ];
    for (const change of wrong) {
      const tried = stage.mg.enqueue(USAGE_TOPIC, { ...good, ...change });
      await expect(tried, JSON.stringify(change)).rejects.toMatchObject({ code: "payload_rejected_by_schema" });
    }
    const { tenant_id: _tenant, ...headless } = good!;
    await expect(stage.mg.enqueue(USAGE_TOPIC, headless)).rejects.toMatchObject({ code: "payload_rejected_by_schema" });
    expect(snapshotSchema()["~standard"].validate(good)).toEqual({ value: good });
    expect(snapshotSchema()["~standard"].validate([])).toHaveProperty("issues");
  });
});

describe("where the parts are kept", () => {
  it("memory with memory works in one process, anything mixed is refused", async () => {
    const publishers = createUsagePublishers();
    const topic = usageTopic({ publishers });
    const mg = await createMakegood({ store: createMemoryStore(), topics: [topic] });
    const usage = await createUsage({ mg, store: createMemoryUsageStore(), topic });
    await using stage = await usageStage();
    const reserved = await usage.reserve(stage.input());
    expect(reserved.kind).toBe("reserved");
    const results = await Promise.all(
      [1, 2, 3].map(() => usage.finalize({ ...stage.input(), ...(reserved as { turn: object }).turn, outcome: "aborted" })),
    );
    expect(results.filter((result) => result.kind === "final" && result.won)).toHaveLength(1);
    await usage.close();
    const mixed = await createUsage({ mg, store: stage.usage.store, topic }).catch((error: unknown) => error);
    expect(isMakegoodError(mixed) && mixed.code).toBe("invalid_config");
    await mg.close();
  });
});
