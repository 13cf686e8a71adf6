/**
 * Failures come in: our own dead letters by themselves, those of others by report. Each counts once, whatever is repeated or done at
 * once, and its evaluation is queued with it.
 */
import { describe, expect, it } from "vitest";
import type { MakegoodError } from "../../../src/message/errors.ts";
import { evaluationIsDue } from "../../../src/recovery/candidates/rounds.ts";
import { NOTIFY_TOPIC, RECOVERY_TOPIC } from "../../../src/recovery/topics.ts";
import { ANN, createScene, dead, definition, type Scene, TOPIC } from "./scene.ts";

const queued = async ({ store }: Scene): Promise<number> =>
  (await store.list({ topic: RECOVERY_TOPIC, limit: 1_000 })).data.length;

describe("our own dead letters", () => {
  it("are ingested in batches, each death once", async () => {
    const scene = await createScene();
    await scene.die(
      Array.from({ length: 450 }, (_, i) => `order ${i} was refused by 10.0.0.${i % 250}`),
      { code: "refused", ingest: false },
    );
    expect(await scene.engine.steps.ingest()).toBe(200);
    expect(await scene.engine.steps.ingest()).toBe(200);
    expect(await scene.engine.steps.ingest()).toBe(50);
    expect(await scene.engine.steps.ingest()).toBe(0);
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ occurrenceCount: 450, openMessages: 450, sink: "http pay.example", errorCode: "refused" }]);
  });

  it("of one sink are the group that a report of the same sink joins, whichever of its hosts it was", async () => {
    const scene = await createScene();
    const sink = { kind: "http", url: "https://pay-17.eu.example:8443/in" } as const;
    await scene.store.topics.put(definition("shop/hosts", sink), "code");
    const [id = ""] = await scene.die(["no answer within 20 ms"], { topic: "shop/hosts" });
    const own = await scene.recovery.groupOf({ messageId: id });
    for (const host of ["pay-17", "pay-4"]) {
      const report = { topic: "shop/hosts", sink: `http ${host}.eu.example:8443`, errorMessage: "no answer within 30 ms" };
      expect((await scene.engine.ingest(scene.report(report), ANN)).groupId).toBe(own?.groupId);
    }
  });

  it("count again when they die again, and only then", async () => {
    const scene = await createScene();
    const [id = ""] = await scene.die(["no answer within 20 ms"]);
    await scene.store.intervene({ id, action: "replay", actor: "ann", reason: null });
    expect(await scene.engine.steps.ingest()).toBe(0);
    await scene.settle([id], dead("no answer within 31 ms", "TIMEOUT"));
    expect(await scene.engine.steps.ingest()).toBe(1);
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ occurrenceCount: 2, openMessages: 1 }]);
  });

  it("EV-49: dead evaluations are never ingested, other topics of the engine's own are", async () => {
    const scene = await createScene();
    await scene.engine.steps.ingest();
    await scene.die(["broken"], { topic: RECOVERY_TOPIC });
    expect((await scene.engine.groups({ limit: 10 })).data).toEqual([]);
    await scene.die(["nobody listens"], { topic: NOTIFY_TOPIC });
    expect((await scene.engine.groups({ limit: 10 })).data).toMatchObject([{ topic: NOTIFY_TOPIC, occurrenceCount: 1 }]);
  });

  it("are looked for by themselves when one dies in this process", async () => {
    const scene = await createScene({ settings: { pollMs: 3_600_000 } });
    scene.engine.start();
    await scene.clock.advance(10);
    const [id = ""] = await scene.die(["no answer"], { ingest: false });
    await scene.clock.advance(1_000);
    expect((await scene.engine.stats()).occurrences).toBe(0);
    const attempt = { type: "attempt", topic: TOPIC, id, attempt: 1, outcome: "reject", status: "dead", ms: 1 } as const;
    scene.emit({ ...attempt, code: "TIMEOUT", error: "no answer", alert: false });
    await scene.clock.advance(1_000);
    expect((await scene.engine.stats()).occurrences).toBe(1);
    await scene.engine.stop();
  });

  it("a store that is away at the start is asked again, and nothing is lost", async () => {
    const scene = await createScene();
    await scene.die(["no answer"], { ingest: false });
    const { put } = scene.store.topics;
    (scene.store.topics as { put: unknown }).put = () => Promise.reject(new Error("away"));
    scene.engine.start();
    await scene.clock.advance(5_000);
    expect(scene.events).toContainEqual(
      expect.objectContaining({ type: "store_error", during: "recovery_ingest", error: "away" }),
    );
    (scene.store.topics as { put: unknown }).put = put;
    await scene.clock.advance(60_000);
    expect(await scene.engine.stats()).toMatchObject({ occurrences: 1, uningested: 0 });
    await scene.engine.stop();
  });

  it("a message that fails often counts before it is dead, and not once more when it dies", async () => {
    const scene = await createScene();
    scene.engine.start();
    await scene.clock.advance(10);
    const id = "019b76da-0000-7000-8000-000000000001";
    const plain = { delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
    const stuck = "019b76da-0000-7000-8000-000000000002";
    const message = { tenantId: null, key: null, payload: "{}", payloadHash: "", ...plain };
    await scene.store.enqueue([
      { id, topic: TOPIC, ...message },
      { id: stuck, topic: RECOVERY_TOPIC, ...message },
    ]);
    const again = {
      kind: "retry",
      delayMs: 0,
      counted: true,
      suspicion: 0,
      outcome: "retry",
      code: "TIMEOUT",
      error: "no answer",
    } as const;
    for (let attempt = 1; attempt <= 5; attempt++) {
      await scene.settle([id], again);
      const event = { type: "attempt", topic: TOPIC, id, attempt, outcome: "retry", status: "pending", ms: 1 } as const;
      scene.emit({ ...event, code: "TIMEOUT", error: "no answer", alert: false });
      // The engine's own queue may fail as often: that is never a failure to evaluate.
      scene.emit({ ...event, topic: RECOVERY_TOPIC, id: stuck, code: "TIMEOUT", error: "no answer", alert: false });
      await scene.clock.advance(2_000);
      expect((await scene.engine.stats()).occurrences).toBe(attempt < 5 ? 0 : 1);
    }
    await scene.settle([id], dead("no answer", "TIMEOUT"));
    await scene.clock.advance(2_000);
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ occurrenceCount: 1, openMessages: 1 }]);
    expect((await scene.engine.stats()).uningested).toBe(0);
    await scene.engine.stop();
  });

  it("a message that fails often counts once, although its template became more general before it dies", async () => {
    const scene = await createScene();
    scene.engine.start();
    await scene.clock.advance(10);
    const id = "019b76da-0000-7000-8000-000000000001";
    const plain = { delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
    await scene.store.enqueue([{ id, topic: TOPIC, tenantId: null, key: null, payload: "{}", payloadHash: "", ...plain }]);
    const error = "could not charge card of user ann today";
    const again = { kind: "retry", delayMs: 0, counted: true, suspicion: 0, outcome: "retry", code: "E_CARD", error } as const;
    for (let attempt = 1; attempt <= 5; attempt++) {
      await scene.settle([id], again);
      scene.emit({
        type: "attempt",
        topic: TOPIC,
        id,
        attempt,
        outcome: "retry",
        status: "pending",
        ms: 1,
        code: "E_CARD",
        error,
        alert: false,
      });
    }
    await scene.clock.advance(2_000);
    expect((await scene.engine.stats()).occurrences).toBe(1);
    const others = ["bo", "cy", "dan", "eve", "fay"].map((name) => `could not charge card of user ${name} today`);
    await scene.die(others, { code: "E_CARD" });
    await scene.settle([id], dead(error, "E_CARD"));
    await scene.clock.advance(10_000);
    await scene.engine.stop();
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ occurrenceCount: 6, openMessages: 6 }]);
  });
});

describe("reports of other services", () => {
  it("CON-23: the same key again counts nothing, a new key for the same failure is one more occurrence", async () => {
    const { engine, report } = await createScene();
    const first = await engine.ingest(report({ idempotencyKey: "a" }), ANN);
    expect(first).toMatchObject({ status: "accepted", occurrenceCount: 1, evaluationQueued: true });
    const again = await engine.ingest(report({ idempotencyKey: "a" }), ANN);
    expect(again).toMatchObject({
      status: "duplicate",
      occurrenceCount: 1,
      candidateId: first.candidateId,
      evaluationQueued: false,
    });
    expect(await engine.ingest(report({ idempotencyKey: "b" }), ANN)).toMatchObject({ status: "accepted", occurrenceCount: 2 });
  });

  it("DR-35: the same key with another payload is refused and counts nothing", async () => {
    const { engine, report } = await createScene();
    await engine.ingest(report({ idempotencyKey: "a", failurePayload: `{"x":1}` }), ANN);
    const other = engine.ingest(report({ idempotencyKey: "a", failurePayload: `{"x":2}` }), ANN);
    await expect(other).rejects.toMatchObject({ code: "key_conflict" } satisfies Partial<MakegoodError>);
    expect((await engine.stats()).occurrences).toBe(1);
  });

  it("REC-44: a hundred at once of one failure are an occurrence count of 100, a thousand of twenty lose nothing", async () => {
    const scene = await createScene();
    const { engine, report } = scene;
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        engine.ingest(report({ idempotencyKey: `k${i}`, errorMessage: `job ${i} timed out` }), ANN),
      ),
    );
    expect(new Set(answers.map(({ candidateId }) => candidateId)).size).toBe(1);
    expect(Math.max(...answers.map(({ occurrenceCount }) => occurrenceCount))).toBe(100);
    await Promise.all(
      Array.from({ length: 1_000 }, (_, i) =>
        engine.ingest(report({ idempotencyKey: `m${i}`, errorCode: `E_KIND_${i % 20}` }), ANN),
      ),
    );
    const { data } = await engine.groups({ limit: 100 });
    expect(data.map(({ occurrenceCount }) => occurrenceCount).sort((a, b) => a - b)).toEqual([...Array(20).fill(50), 100]);
    expect((await engine.stats()).occurrences).toBe(1_100);
  });

  it("DR-26: the evaluation is queued in the write that counts, and at 1, 2, 5, 10, … occurrences only", async () => {
    const scene = await createScene();
    for (let i = 0; i < 60; i++) await scene.engine.ingest(scene.report({ errorMessage: `job ${i} timed out` }), ANN);
    expect(await queued(scene)).toBe(6);
    const steps = Array.from({ length: 1_000 }, (_, i) => i + 1).filter((count) => evaluationIsDue(count, count - 1));
    expect(steps).toEqual([1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]);
    expect(evaluationIsDue(250, 90)).toBe(true);
    expect(evaluationIsDue(199, 101)).toBe(false);
  });

  it("DR-26: a write that fails counts nothing and queues nothing, and the same report again is the first", async () => {
    const scene = await createScene();
    const { recovery, engine, report } = scene;
    await engine.steps.ingest();
    const { ingest } = recovery;
    (recovery as { ingest: unknown }).ingest = () => Promise.reject(new Error("the database restarts"));
    await expect(engine.ingest(report({ idempotencyKey: "a" }), ANN)).rejects.toThrow("restarts");
    (recovery as { ingest: unknown }).ingest = ingest;
    expect(await queued(scene)).toBe(0);
    const answer = await engine.ingest(report({ idempotencyKey: "a" }), ANN);
    expect(answer).toMatchObject({ status: "accepted", occurrenceCount: 1, evaluationQueued: true });
  });

  it("without enqueue_evaluation nothing is evaluated", async () => {
    const scene = await createScene();
    const answer = await scene.engine.ingest(scene.report({ enqueueEvaluation: false }), ANN);
    expect(answer.evaluationQueued).toBe(false);
    expect(await queued(scene)).toBe(0);
  });

  it("keeps an id that was supplied and brings it to its group, whatever the text says", async () => {
    const { engine, report } = await createScene();
    const failureMatchId = "6F9619FF-8B86-4D01-B42D-00CF4FC964FF";
    const first = await engine.ingest(report({ failureMatchId }), ANN);
    expect(first.failureMatchId).toBe(failureMatchId.toLowerCase());
    const other = await engine.ingest(report({ failureMatchId, errorCode: "OTHER", errorMessage: "something else" }), ANN);
    expect(other).toMatchObject({ groupId: first.groupId, occurrenceCount: 2 });
    await expect(engine.ingest(report({ failureMatchId: "not-an-id" }), ANN)).rejects.toMatchObject({ code: "invalid_request" });
  });

  it("a failure that mentions another failure's id is not that failure", async () => {
    const { engine, report } = await createScene();
    const first = await engine.ingest(report(), ANN);
    const text = `follows from ${first.failureMatchId}: the disk of group ${first.groupId} is full`;
    const second = await engine.ingest(report({ errorCode: "DISK_FULL", errorMessage: text }), ANN);
    expect(second.groupId).not.toBe(first.groupId);
    const third = await engine.ingest(
      report({ errorCode: "DISK_FULL", errorMessage: text.replace(/[0-9a-f]{12}/, "0123456789ab") }),
      ANN,
    );
    expect(third.groupId).toBe(second.groupId);
  });

  it("hosts, ids and ports of the receiver do not part one failure", async () => {
    const { engine, report } = await createScene();
    const from = async (sink: string) => (await engine.ingest(report({ sink, topic: "pay/charge" }), ANN)).groupId;
    const groups = new Set([await from("https://10.1.2.3:8443/v1"), await from("https://10.9.2.77:9443/v1")]);
    expect(groups.size).toBe(1);
  });

  it("keeps a payload that is no JSON as a JSON text, since its readers read JSON", async () => {
    const { engine, report } = await createScene();
    const { groupId } = await engine.ingest(report({ failurePayload: "timed out" }), ANN);
    const { data } = await engine.occurrences(groupId, { limit: 1 });
    expect(data[0]?.failurePayload).toBe(`"timed out"`);
  });

  it("takes a text of 1 MiB with control characters, NUL and half a surrogate pair", async () => {
    const { engine, report } = await createScene();
    const text = `\u0000\u001b[31mdisk \ud800 failed\u0007 ${"x".repeat(1 << 20)}`;
    const payload = JSON.stringify({ raw: text });
    const answer = await engine.ingest(
      report({ errorMessage: text, stackTrace: text, errorCode: "E\u0000\nDISK", topic: "a\u0000b", failurePayload: payload }),
      ANN,
    );
    const { group, occurrences } = await engine.group(answer.groupId);
    expect(group).toMatchObject({ errorCode: "E DISK", topic: "a b" });
    const [kept] = occurrences;
    expect(kept?.errorMessage.length).toBeLessThanOrEqual(4_096);
    expect(`${kept?.errorMessage}${kept?.stackTrace}${group.template}`).not.toMatch(/[\p{Cc}\p{Cs}]/u);
    expect(JSON.parse(kept?.failurePayload ?? "")).toMatchObject({ cut: true, chars: payload.length });
  });
});

describe("several processes", () => {
  const lines = ["ann", "bo", "cy", "dan", "eve", "fay"].map((name) => `could not charge card of user ${name} today`);

  it("agree on the groups, and a template that becomes more general is a merge on record", async () => {
    const scene = await createScene();
    const other = scene.another();
    const groups = new Set<number>();
    for (const [i, text] of lines.entries()) {
      const engine = i % 2 === 0 ? scene.engine : other;
      groups.add((await engine.ingest(scene.report({ errorMessage: text, errorCode: "E_CARD" }), ANN)).groupId);
    }
    expect(groups.size).toBeGreaterThan(1);
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ occurrenceCount: 6, mergedInto: null }]);
    const into = data[0]?.groupId ?? 0;
    const merged = (await scene.recovery.groups({ limit: 10, merged: true })).data.filter(
      ({ mergedInto }) => mergedInto === into,
    );
    expect(merged.length).toBe(groups.size - 1);
    const record = (await scene.engine.provenance({ groupId: into }, { limit: 50 })).data.filter(
      ({ eventType }) => eventType === "merged",
    );
    expect(record).toMatchObject(merged.map(() => ({ actor: "system", actorType: "system" })));
    // Who starts now reads the templates of the others.
    const late = await scene
      .another()
      .ingest(scene.report({ errorMessage: "could not charge card of user gus today", errorCode: "E_CARD" }), ANN);
    expect(late).toMatchObject({ groupId: into, occurrenceCount: 7 });
  });

  it("groups that two processes wrote at the same moment become one a little later, without anything new", async () => {
    const scene = await createScene();
    const { engine, recovery, report } = scene;
    const other = scene.another();
    for (const text of lines.slice(0, 2)) await engine.ingest(report({ errorMessage: text, errorCode: "E_CARD" }), ANN);
    // The write of one is held up until the other has generalised, written and looked.
    const { ingest } = recovery;
    let go: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    (recovery as { ingest: unknown }).ingest = async (...args: Parameters<typeof ingest>) => {
      (recovery as { ingest: unknown }).ingest = ingest;
      await held;
      return ingest(...args);
    };
    const late = engine.ingest(report({ errorMessage: lines[2] as string, errorCode: "E_CARD", sink: "mail" }), ANN);
    await scene.clock.advance(1);
    for (const text of lines.slice(3)) await other.ingest(report({ errorMessage: text, errorCode: "E_CARD", sink: "mail" }), ANN);
    go();
    await late;
    expect((await engine.groups({ limit: 10, errorCode: "E_CARD" })).data.length).toBeGreaterThan(2);
    engine.start();
    await scene.clock.advance(10_000);
    await engine.stop();
    const { data } = await engine.groups({ limit: 10, errorCode: "E_CARD" });
    expect(data.filter(({ sink }) => sink === "mail")).toMatchObject([{ occurrenceCount: 4 }]);
  });

  it("a merge that has to wait for an execution is made afterwards", async () => {
    const scene = await createScene();
    const { engine, recovery, report } = scene;
    const first = await engine.ingest(report({ errorMessage: lines[0] as string, errorCode: "E_CARD" }), ANN);
    const claim = { executionStatus: "executing", executionId: "019b76da-0000-7000-8000-0000000000ff", leaseMs: 1_000 } as const;
    const claimed = await recovery.write({ candidateId: first.candidateId, patch: claim, provenance: [] });
    expect(claimed.kind).toBe("done");
    for (const text of lines.slice(1)) await engine.ingest(report({ errorMessage: text, errorCode: "E_CARD" }), ANN);
    expect((await recovery.group(first.groupId))?.mergedInto).toBe(null);
    await recovery.write({ candidateId: first.candidateId, patch: { executionStatus: "failed", leaseMs: null }, provenance: [] });
    await engine.ingest(report({ errorMessage: "something else", errorCode: "E_OTHER" }), ANN);
    expect((await recovery.group(first.groupId))?.mergedInto).not.toBe(null);
  });

  it("a merge that waits for an execution, or that a store failed, is made a little later, without anything new", async () => {
    const scene = await createScene();
    const { engine, recovery, report } = scene;
    const first = await engine.ingest(report({ errorMessage: lines[0] as string, errorCode: "E_CARD" }), ANN);
    const claim = { executionStatus: "executing", executionId: "019b76da-0000-7000-8000-0000000000ff", leaseMs: null } as const;
    await recovery.write({ candidateId: first.candidateId, patch: claim, provenance: [] });
    for (const text of lines.slice(1)) await engine.ingest(report({ errorMessage: text, errorCode: "E_CARD" }), ANN);
    engine.start();
    await scene.clock.advance(10_000);
    expect((await recovery.group(first.groupId))?.mergedInto).toBe(null);
    const { merge } = recovery;
    recovery.merge = () => Promise.reject(new Error("away"));
    await recovery.write({ candidateId: first.candidateId, patch: { executionStatus: "failed" }, provenance: [] });
    await scene.clock.advance(10_000);
    expect(scene.events).toContainEqual(expect.objectContaining({ during: "recovery_join", error: "away" }));
    recovery.merge = merge;
    await scene.clock.advance(10_000);
    await engine.stop();
    expect((await recovery.group(first.groupId))?.mergedInto).not.toBe(null);
  });

  it("goes on when the topic of evaluations was deleted", async () => {
    const scene = await createScene();
    await scene.engine.ingest(scene.report({ enqueueEvaluation: false }), ANN);
    expect(await scene.store.topics.delete(RECOVERY_TOPIC, "api")).toBe("deleted");
    await scene.die(["something quite different broke"], { code: "E_NEW" });
    expect(await scene.engine.stats()).toMatchObject({ uningested: 0, occurrences: 2 });
    expect(await scene.work()).toEqual(["delivered"]);
  });

  it("one failure that cannot be written is left out and said so; the others of its batch are counted", async () => {
    const scene = await createScene();
    const { ingest } = scene.recovery;
    (scene.recovery as { ingest: typeof ingest }).ingest = async (occurrences, rules) => {
      if (occurrences.some(({ errorMessage }) => errorMessage.includes("poison"))) throw new Error("cannot be written");
      return ingest(occurrences, rules);
    };
    const [bad] = await scene.die(["poison", "no answer within 2 ms", "no answer within 3 ms"]);
    expect(await scene.engine.stats()).toMatchObject({ occurrences: 2, uningested: 1 });
    const said = scene.events.filter((event) => event.type === "lifecycle" && event.what === "recovery_failure_set_aside");
    expect(said).toMatchObject([{ detail: { message: bad, error: "cannot be written" } }]);
    const reports = ["poison", "no answer within 4 ms"].map((text) =>
      scene.engine.ingest(scene.report({ errorMessage: text }), ANN),
    );
    expect((await Promise.allSettled(reports)).map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  });

  it("topics of the engine's own are declared where they are missing, and not replaced where they are not", async () => {
    const { engine, store, report } = await createScene();
    await store.topics.put(definition(NOTIFY_TOPIC, { kind: "http", url: "https://ops.example" }), "api");
    await engine.ingest(report(), ANN);
    expect((await store.topics.get(NOTIFY_TOPIC))?.sink.kind).toBe("http");
    expect((await store.topics.get(RECOVERY_TOPIC))?.sink.kind).toBe("function");
  });
});
