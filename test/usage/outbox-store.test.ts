/**
 * The seed's own names: the view `modkit_outbox_events` and a store with claim_batch, ack and nack, under tokens.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { topic } from "../../src/index.ts";
import { MakegoodError } from "../../src/message/errors.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createOutboxStore } from "../../src/presets/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { databaseUrl, withClient } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { type UsageStage, usageStage, uuid } from "./scene.ts";

const WORKER = uuid();
const CFG = { batch_size: 10, lease_duration: 30_000 };

const outbox = (stage: UsageStage, workerId = WORKER, namespace = "mini-chat") =>
  createOutboxStore({ store: stage.mg.store, workerId, namespace });

async function rows(stage: UsageStage): Promise<Record<string, unknown>[]> {
  const text = `select * from "${stage.schema}".modkit_outbox_events order by id`;
  return (await withClient((client) => client.query(text))).rows;
}

async function finalized(stage: UsageStage) {
  const turn = await stage.running();
  await stage.usage.finalize({ ...turn, outcome: "aborted" });
  return turn;
}

/** Its next settles fail as listed: before anything was written, or after it, with the answer lost. */
function failing(store: Store, faults: ("before" | "after")[]): Store {
  const settle: Store["settle"] = async (settles) => {
    const fault = faults.shift();
    if (fault === "before") throw new MakegoodError("store_unavailable", "away");
    const results = await store.settle(settles);
    if (fault === "after") throw new MakegoodError("outcome_unknown", "the answer is lost");
    return results;
  };
  const get = (target: Store, name: string | symbol): unknown => {
    const member: unknown = name === "settle" ? settle : Reflect.get(target, name);
    return typeof member === "function" ? member.bind(target) : member;
  };
  return new Proxy(store, { get });
}

describe("OBX-5: the view", () => {
  it("OBX-5: has the seed's columns and follows a message through its states", async () => {
    await using stage = await usageStage();
    const turn = await finalized(stage);
    const [pending] = await rows(stage);
    expect(Object.keys(pending ?? {})).toEqual([
      "id",
      "namespace",
      "topic",
      "tenant_id",
      "dedupe_key",
      "payload",
      "status",
      "attempts",
      "next_attempt_at",
      "locked_by",
      "locked_until",
      "last_error",
      "created_at",
      "updated_at",
    ]);
    expect(pending).toMatchObject({
      namespace: "mini-chat",
      topic: "usage_snapshot",
      tenant_id: stage.tenantId,
      dedupe_key: `${turn.tenantId}/${turn.turnId}/${turn.requestId}`,
      payload: { turn_id: turn.turnId },
      status: "pending",
      attempts: 0,
      next_attempt_at: expect.any(Date),
      locked_by: null,
      locked_until: null,
      last_error: null,
    });
    const store = outbox(stage);
    const [message] = await store.claim_batch(CFG);
    const [processing] = await rows(stage);
    expect(processing).toMatchObject({ status: "processing", attempts: 1, locked_by: WORKER, locked_until: expect.any(Date) });
    await store.nack(message?.id ?? "", "not today");
    const [again] = await rows(stage);
    expect(again).toMatchObject({ status: "pending", attempts: 1, last_error: "not today", locked_by: null });
    expect(Number(again?.next_attempt_at)).toBeGreaterThan(Number(again?.created_at));
    await until("due again", async () => (await store.claim_batch(CFG)).length === 1);
    expect(await store.ack(message?.id ?? "")).toBe("settled");
    expect(await rows(stage)).toMatchObject([{ status: "delivered", attempts: 2, locked_by: null, next_attempt_at: null }]);
  });

  it("OBX-5: shows messages of every topic and cannot be written", async () => {
    await using stage = await usageStage();
    await finalized(stage);
    const { definition } = topic("a/plain");
    await stage.mg.store.topics.put(definition, "api");
    await stage.mg.enqueue("a/plain", { n: 1 });
    const shown = (await rows(stage)).map((row) => `${row.namespace}/${row.topic}`);
    expect(shown).toEqual(["mini-chat/usage_snapshot", "a/plain"]);
    const statement = `update "${stage.schema}".modkit_outbox_events set status = 'delivered'`;
    await expect(withClient((client) => client.query(statement))).rejects.toThrow(/cannot update view/);
  });
});

describe("OBX-11: claim_batch, ack, nack", () => {
  it("OBX-10: a claimed message has the seed's fields; two workers share a batch and never a message", async () => {
    await using stage = await usageStage();
    for (let i = 0; i < 12; i++) await finalized(stage);
    const [a, b] = [outbox(stage), outbox(stage, uuid())];
    const [one, two] = await Promise.all([a.claim_batch({ ...CFG, batch_size: 6 }), b.claim_batch({ ...CFG, batch_size: 6 })]);
    expect(one?.[0]).toEqual({
      id: expect.any(String),
      namespace: "mini-chat",
      topic: "usage_snapshot",
      tenant_id: stage.tenantId.replaceAll("-", ""),
      dedupe_key: expect.stringMatching(/^[0-9a-f]{32}\//),
      payload: expect.stringContaining("settled_credits"),
      attempts: 1,
    });
    const ids = [...(one ?? []), ...(two ?? [])].map(({ id }) => id);
    expect([one?.length, two?.length, new Set(ids).size]).toEqual([6, 6, 12]);
  });

  it("DO-3: an ack by a worker that lost the lease changes nothing and is told so", async () => {
    await using stage = await usageStage({ attemptsMax: 5 });
    await finalized(stage);
    const [stalled, other] = [outbox(stage), outbox(stage, uuid())];
    const [message] = await stalled.claim_batch({ ...CFG, lease_duration: 1_000 });
    const id = message?.id ?? "";
    expect(await other.ack(id)).toBe("lost");
    await until("the other one has it", async () => (await other.claim_batch(CFG)).some((one) => one.id === id));
    expect(await stalled.ack(id)).toBe("lost");
    expect(await stalled.nack(id, "late")).toBe("lost");
    expect((await stage.mg.store.get(id))?.status).toBe("processing");
    expect(await other.ack(id)).toBe("settled");
    expect(await other.ack(id)).toBe("lost");
    expect((await stage.mg.store.get(id))?.status).toBe("delivered");
  });

  it("N6: a settle that failed may be answered again within the lease; of two answers at once the first counts", async () => {
    await using stage = await usageStage({ attemptsMax: 5 });
    for (let i = 0; i < 5; i++) await finalized(stage);
    const faults: ("before" | "after")[] = [];
    const store = createOutboxStore({ store: failing(stage.mg.store, faults), workerId: WORKER, namespace: "mini-chat" });
    const claimed = await store.claim_batch(CFG);
    const [unsent, unheard, both, again, nacked] = claimed.map(({ id }) => id) as [string, string, string, string, string];
    faults.push("before");
    await expect(store.ack(unsent)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await store.ack(unsent)).toBe("settled");
    // Written, and only the answer was lost: the repeat is told what became of it.
    faults.push("after");
    await expect(store.ack(unheard)).rejects.toMatchObject({ code: "outcome_unknown" });
    expect(await store.ack(unheard)).toBe("settled");
    faults.push("after");
    await expect(store.nack(nacked, "first")).rejects.toMatchObject({ code: "outcome_unknown" });
    expect(await store.ack(nacked)).toBe("lost");
    expect(await Promise.all([store.ack(both), store.nack(both, "no"), store.ack(both)])).toEqual(["settled", "lost", "lost"]);
    faults.push("before");
    const answers = await Promise.allSettled([store.nack(again, "no"), store.ack(again)]);
    expect(answers).toMatchObject([{ status: "rejected" }, { status: "fulfilled", value: "settled" }]);
    const states = await Promise.all([unsent, unheard, both, again, nacked].map((id) => stage.mg.store.get(id)));
    expect(states.map((view) => view?.status)).toEqual(["delivered", "delivered", "delivered", "delivered", "pending"]);
  });

  it("N6: an answer after the lease's end is lost although nobody took the message yet, and the claim is forgotten", async () => {
    await using stage = await usageStage();
    await finalized(stage);
    let lateMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + lateMs };
    const store = createOutboxStore({ store: stage.mg.store, workerId: WORKER, namespace: "mini-chat", clock });
    const [message] = await store.claim_batch(CFG);
    lateMs = CFG.lease_duration;
    expect(await store.ack(message?.id ?? "")).toBe("lost");
    expect((await stage.mg.store.get(message?.id ?? ""))?.status).toBe("processing");
    lateMs = 0;
    expect(await store.ack(message?.id ?? "")).toBe("lost");
  });

  it("DO-8: another namespace's messages, and those of a paused topic, are left alone", async () => {
    await using stage = await usageStage();
    await finalized(stage);
    expect(await outbox(stage, WORKER, "mini").claim_batch(CFG)).toEqual([]);
    expect(await outbox(stage, WORKER, "other").claim_batch(CFG)).toEqual([]);
    await stage.mg.store.topics.pause("mini-chat/usage_snapshot", true);
    expect(await outbox(stage).claim_batch(CFG)).toEqual([]);
    await stage.mg.store.topics.pause("mini-chat/usage_snapshot", false);
    expect(await outbox(stage).claim_batch(CFG)).toHaveLength(1);
  });

  it("CON-21: dead at the nack that reaches the topic's maximum, with the last error, and seen by health", async () => {
    await using stage = await usageStage({ attemptsMax: 2 });
    await finalized(stage);
    const store = outbox(stage);
    for (let attempt = 1; attempt <= 2; attempt++) {
      let id = "";
      await until("claimed", async () => {
        id = (await store.claim_batch(CFG))[0]?.id ?? "";
        return id !== "";
      });
      expect(await store.nack(id, `failure ${attempt}`)).toBe("settled");
    }
    expect(await rows(stage)).toMatchObject([{ status: "dead", attempts: 2, last_error: "failure 2" }]);
    expect(await stage.usage.health()).toMatchObject({ status: "degraded", deadLetters: 1 });
  });

  it("tenants take turns where there are more of them than places in a batch", async () => {
    await using stage = await usageStage();
    await stage.mg.store.topics.put(topic("mini-chat/other").definition, "api");
    for (let i = 0; i < 24; i++) {
      // Lanes are compared by the millisecond: each tenant's next message is younger than the first of all.
      if (i % 6 === 0) await sleep(3);
      await stage.mg.enqueue("mini-chat/other", { i }, { tenantId: `t-${i % 6}` });
    }
    const store = outbox(stage);
    const tenants: (string | null)[] = [];
    for (let i = 0; i < 3; i++) tenants.push(...(await store.claim_batch({ ...CFG, batch_size: 2 })).map((one) => one.tenant_id));
    expect(new Set(tenants).size).toBe(6);
  });

  it("a batch or a lease out of range is refused", async () => {
    await using stage = await usageStage();
    for (const cfg of [
      { ...CFG, batch_size: 0 },
      { ...CFG, batch_size: 1_001 },
      { ...CFG, lease_duration: 10 },
    ]) {
      await expect(outbox(stage).claim_batch(cfg)).rejects.toMatchObject({ code: "invalid_config" });
    }
  });
});

describe("the optional tables", () => {
  it("exist only where the preset is used, with a ledger of their own that the kernel does not mind", async () => {
    await using stage = await usageStage();
    const { rows: ledger } = await withClient((client) =>
      client.query(`select version, name from "${stage.schema}".migration_usage`),
    );
    expect(ledger).toEqual([{ version: 1, name: "usage" }]);
    const again = createPostgresStore({ url: databaseUrl(), schema: stage.schema, migrate: "check" });
    await again.open();
    await again.check();
    await again.close();
  });
});
