/**
 * What is done to a message beside replaying it: a new key, a copy to the fallback, an end with a reason, watching; under an execution's
 * fence; and editing one by hand.
 */
import { describe, expect, it } from "vitest";
import { MakegoodError } from "../../../src/message/errors.ts";
import { carrierKey, createCarrierTopics, nextKey } from "../../../src/recovery/carrier.ts";
import { evidenceOf } from "../../../src/recovery/confidence/levels.ts";
import { decayed, HALF_LIFE_MS } from "../../../src/recovery/confidence/outcome-counts.ts";
import type { NewOccurrence } from "../../../src/recovery/failures/failure.ts";
import { definition, hashOf } from "../../../src/testing/store-conformance/fixtures.ts";
import { ANN, createScene, type Scene, TOPIC } from "./scene.ts";

const HOOK = { kind: "http", url: "https://example.com/other" } as const;
const carried = { topics: [{ ...definition(TOPIC), fallback: HOOK }] };

/** These dead letters counted in one group. */
async function counted(scene: Scene, ids: readonly string[]): Promise<{ candidateId: number; groupId: number }> {
  const group = {
    fingerprint: "v1:x",
    failureMatchId: "5f6d1f5e-6d3c-5a4e-8f2e-0123456789ab",
    topic: TOPIC,
    sink: "function",
    errorCode: "http_422",
  };
  const stand = new Map(await Promise.all(ids.map(async (id) => [id, await scene.store.get(id)] as const)));
  const occurrences = ids.map(
    (id): NewOccurrence => ({
      requestKey: `message:${id}`,
      payloadHash: hashOf(id),
      source: "message",
      group: { ...group, template: "refused", topFrame: null, groupRule: null },
      failureMatchId: null,
      message: { id, generation: stand.get(id)?.generation ?? 0, attempts: stand.get(id)?.attempts ?? 1 },
      tenantId: null,
      skillId: null,
      errorMessage: "refused",
      stackTrace: null,
      failurePayload: null,
      evaluate: false,
    }),
  );
  const [first] = await scene.recovery.ingest(occurrences, { ids: scene.ids, rejectedRestMs: 1e9 });
  return first as { candidateId: number; groupId: number };
}

/** A group of these dead letters, and its candidate executing under `executionId`. */
async function executing(scene: Scene, ids: readonly string[], executionId = "e1") {
  const { candidateId, groupId } = await counted(scene, ids);
  const patch = { executionStatus: "executing", executionId, executedBy: "ann", leaseMs: 60_000 } as const;
  await scene.recovery.write({ candidateId, patch, provenance: [] });
  return { candidateId, executionId, groupId, action: "fallback_model", reason: "the receiver is gone" } as const;
}

describe("new_key", () => {
  it("brings the effect as a new message under a new key, and resolves the old one", async () => {
    const scene = await createScene();
    const payload = '{"b":1, "a":[1.0,1e3]}';
    const [id] = await scene.die(1, { key: "order-7", tenantId: "t1", priority: 3, payload });
    const process = scene.process();
    process.runner.start();
    const { redrive } = await process.startRedrive(
      { select: { topic: TOPIC }, mode: "new_key", reason: "the key was burnt" },
      ANN,
    );
    await scene.pass(3_000);
    const { data } = await process.redriveItems(redrive.redriveId, { limit: 10 });
    const carrierId = data[0]?.carrierId as string;
    expect(await scene.store.get(carrierId)).toMatchObject({
      key: "order-7~1",
      tenantId: "t1",
      priority: 3,
      payload,
      status: "delivered",
    });
    expect(await scene.store.get(id as string)).toMatchObject({ status: "dead", resolution: "resolved", generation: 0 });
    expect(await process.origin(carrierId)).toEqual({ replayOf: id, redriveId: redrive.redriveId, edited: false });
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 1 });
  });

  it("counts on instead of growing the key, and cuts a key that has no room", async () => {
    const message = { id: "0190b5a0-0000-7000-8000-000000000000", generation: 0 };
    const made = async () => ({ replayOf: "x", redriveId: null, edited: false });
    const standsForItself = async () => null;
    expect(await nextKey({ ...message, key: null }, standsForItself)).toBe(`${message.id}~1`);
    expect(await nextKey({ ...message, key: "k", generation: 4 }, standsForItself)).toBe("k~5");
    expect(await nextKey({ ...message, key: "k~1" }, made)).toBe("k~2");
    expect(await nextKey({ ...message, key: "k~1", generation: 3 }, made), "each replay may have had one").toBe("k~5");
    expect(await nextKey({ ...message, key: "k~1" }, standsForItself), "a key that only looks so").toBe("k~1~1");
    const [one, two] = await Promise.all(
      ["é", "è"].map((last) => nextKey({ ...message, key: `${"ü".repeat(126)}${last}` }, made)),
    );
    for (const key of [one, two] as string[]) expect(Buffer.byteLength(key)).toBeLessThanOrEqual(255);
    expect(one).not.toBe(two);
  });
});

describe("a copy", () => {
  it("has the key of what it stands for; what undoes an effect has one of its own", () => {
    const id = "0190b5a0-0000-7000-8000-000000000000";
    expect([carrierKey("fallback", { id, key: "order-1" }), carrierKey("fallback", { id, key: null })]).toEqual(["order-1", id]);
    const undo = (key: string | null) => carrierKey("compensation", { id, key });
    expect([undo("order-1"), undo(null)]).toEqual(["compensation:order-1", `compensation:${id}`]);
    expect(undo("k".repeat(250)), "a key that has no room").toBe(`compensation:${id}`);
  });

  it("goes to the fallback as the topic has it now", async () => {
    const { store } = await createScene(carried);
    const carrierTopic = createCarrierTopics(store.topics);
    const name = await carrierTopic(TOPIC, "fallback");
    expect((await store.topics.get(name))?.sink).toMatchObject(HOOK);
    const moved = { ...HOOK, url: "https://example.com/moved" };
    await store.topics.put({ ...definition(TOPIC), fallback: moved }, "code");
    expect(await carrierTopic(TOPIC, "fallback")).toBe(name);
    expect((await store.topics.get(name))?.sink).toMatchObject(moved);
    await store.topics.put(definition(TOPIC), "code");
    await expect(carrierTopic(TOPIC, "fallback")).rejects.toMatchObject({ code: "action_refused" });
  });
});

describe("for an execution", () => {
  it("copies go to the fallback's topic; the original is resolved only once its copy is delivered", async () => {
    const scene = await createScene(carried);
    const ids = await scene.die(4, { tenantId: "t" });
    const process = scene.process();
    process.runner.start();
    const execution = await executing(scene, ids);
    const redrive = await process.startForExecution(
      { ...execution, mode: "copy", carrier: "fallback", plan: { canary: 0 } },
      ANN,
    );
    if (!redrive) throw new Error("lost");
    expect(redrive.counts.selected).toBe(4);
    // However often the message itself was replayed; of a copy ten times are enough.
    expect(redrive.select).toMatchObject({ generationMax: 32_767, copyGenerationMax: 10 });
    let answered = 0;
    await scene.pass(5_000, ({ topic }) => (topic.startsWith("recovery/fallback-") && ++answered !== 2 ? "delivered" : "dead"));
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 3, failed: 1 });
    const states = await Promise.all(ids.map(async (id) => (await scene.store.get(id))?.resolution));
    expect(states.sort()).toEqual(["open", "resolved", "resolved", "resolved"]);
    const [, topic] = (await scene.store.topics.list()).map(({ name }) => name);
    expect(topic).toMatch(/^recovery\/fallback-billing-charge-[0-9a-f]{8}$/);
    expect(await scene.recovery.candidate(execution.candidateId)).toMatchObject({
      redriveId: redrive.redriveId,
      leaseUntil: null,
    });
    const { groupId } = execution;
    const learned = (await scene.recovery.observations(groupId)).filter((one) => one.groupId === groupId);
    expect(learned).toMatchObject([{ action: "fallback_model", healed: 3, failed: 1, byPerson: true, repair: null }]);
  });

  it("a copy that died and that is replayed resolves its original all the same, long after the redrive ended", async () => {
    const scene = await createScene(carried);
    const [id] = (await scene.die(1)) as [string];
    const process = scene.process();
    process.runner.start();
    const execution = await executing(scene, [id]);
    const redrive = await process.startForExecution({ ...execution, mode: "copy", carrier: "fallback" }, ANN);
    await scene.pass(2_000, () => "dead");
    expect(await scene.counts(redrive as { redriveId: string })).toMatchObject({ status: "done", failed: 1 });
    const [copy] = (await scene.store.list({ status: "dead", limit: 10 })).data.filter(({ topic }) => topic !== TOPIC);
    await scene.store.intervene({ id: copy?.id ?? "", action: "replay", actor: "bo", reason: "it is up again" });
    await scene.pass(50);
    await scene.clock.advance(3_600_000);
    expect(await scene.store.get(id)).toMatchObject({ status: "dead", resolution: "resolved" });
  });

  it("one that stopped is not resumed once its execution is over: that would need to be approved anew", async () => {
    const scene = await createScene(carried);
    const ids = await scene.die(20);
    const process = scene.process();
    process.runner.start();
    const execution = await executing(scene, ids);
    const redrive = await process.startForExecution({ ...execution, mode: "replay" }, ANN);
    const id = redrive?.redriveId ?? "";
    await process.pauseRedrive(id, ANN);
    expect((await process.resumeRedrive(id, ANN)).status, "while it executes, people pause and resume it").toBe("running");
    await scene.pass(3_000, () => "dead");
    expect((await process.redrive(id)).status).toBe("stopped");
    const { candidateId, executionId } = execution;
    const patch = { executionStatus: "failed", leaseMs: null } as const;
    await scene.recovery.write({ candidateId, executionId, patch, provenance: [] });
    await expect(process.resumeRedrive(id, ANN)).rejects.toMatchObject({
      code: "wrong_state",
      message: expect.stringContaining("ask for a new suggestion"),
    });
    expect((await process.redrive(id)).status).toBe("stopped");
    expect((await process.cancelRedrive(id, ANN)).status).toBe("cancelled");
  });

  it("nothing happens without its fence, and twice under it is once", async () => {
    const scene = await createScene();
    const execution = await executing(scene, await scene.die(2));
    const process = scene.process();
    expect(await process.startForExecution({ ...execution, executionId: "another", mode: "replay" }, ANN)).toBeNull();
    expect((await process.redrives({ limit: 10 })).data).toEqual([]);
    const one = await process.startForExecution({ ...execution, mode: "replay" }, ANN);
    const two = await process.startForExecution({ ...execution, mode: "replay" }, ANN);
    expect(two?.redriveId).toBe(one?.redriveId);
  });

  it("resolve ends them at once with the reason, whatever their generation, and counts when nobody takes it back", async () => {
    const scene = await createScene();
    const ids = await scene.die(30);
    for (let generation = 0; generation < 10; generation++) {
      await scene.store.intervene({ id: ids[0] as string, action: "replay", actor: "a", reason: null });
      await scene.attempt(() => "dead");
    }
    const execution = await executing(scene, ids);
    const process = scene.process();
    process.runner.start();
    const redrive = await process.startForExecution({ ...execution, action: "skip_task", mode: "resolve" }, ANN);
    if (!redrive) throw new Error("lost");
    await scene.pass(500);
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", sent: 30 });
    expect(await scene.store.get(ids[0] as string)).toMatchObject({ status: "dead", resolution: "resolved" });
    const { provenance } = await scene.store.history(ids[0] as string);
    expect(provenance.at(-1)).toMatchObject({ action: "resolve", actor: "ann", reason: "the receiver is gone" });
    await scene.pass(400_000, () => "nothing", 5_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 30 });
  });

  it("watch touches nothing and sees what others did", async () => {
    const scene = await createScene();
    const ids = await scene.die(2);
    const execution = await executing(scene, ids);
    const process = scene.process();
    process.runner.start();
    const redrive = await process.startForExecution({ ...execution, action: "notify_ops", mode: "watch" }, ANN);
    if (!redrive) throw new Error("lost");
    await scene.pass(1_000);
    expect(await scene.store.get(ids[0] as string)).toMatchObject({ status: "dead", resolution: "open", generation: 0 });
    for (const id of ids) await scene.store.intervene({ id, action: "replay", actor: "bo", reason: null });
    await scene.pass(40_000, ({ id }) => (id === ids[0] ? "delivered" : "dead"), 500);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 1, failed: 1 });
  });
});

describe("what is learned from a redrive", () => {
  it("DR-30: fades by half in 30 days before the next is added", async () => {
    const scene = await createScene();
    const weights: number[] = [];
    for (let round = 0; round < 2; round++) {
      const { groupId } = await counted(scene, await scene.die(2));
      const process = scene.process();
      process.runner.start();
      await process.startRedrive({ select: { groupId }, reason: "mended", canary: 0 }, ANN);
      await scene.pass(3_000);
      await process.runner.stop();
      const at = scene.clock.wallMs();
      const [known] = evidenceOf(await scene.recovery.observations(groupId), { groupId, cause: null }, at);
      weights.push(known?.own ? decayed(known.own, at).successes : 0);
      await scene.clock.advance(HALF_LIFE_MS - 3_000);
    }
    // An execution weighs one, whatever its size.
    expect(weights).toEqual([expect.closeTo(1, 3), expect.closeTo(1.5, 3)]);
  });
});

describe("edit and retry", () => {
  const edit = { ...ANN, payload: '{"amount": 12.50}', reason: "the amount was a text" };

  it("makes a new message with the same key, keeps the original resolved, and says where it came from", async () => {
    const scene = await createScene();
    const [id] = (await scene.die(1, { key: "order-1", payload: '{"amount":"12.50"}' })) as [string];
    const process = scene.process();
    const made = await process.edit(id, edit);
    expect(made).toMatchObject({ topic: TOPIC, key: "order-1", payload: '{"amount": 12.50}', status: "pending", generation: 0 });
    expect(await scene.store.get(id)).toMatchObject({ status: "dead", resolution: "resolved", payload: '{"amount":"12.50"}' });
    expect(await process.origin(made.id)).toEqual({ replayOf: id, redriveId: null, edited: true });
    expect((await scene.store.history(id)).provenance.at(-1)).toMatchObject({ actor: "ann", reason: "the amount was a text" });
    await expect(process.edit(id, edit)).rejects.toMatchObject({ code: "wrong_state" });
  });

  it("under another key when one is given, and not under that of another message", async () => {
    const scene = await createScene();
    const [id, other] = (await scene.die(2)) as [string, string];
    await scene.die(1, { key: "taken" });
    const process = scene.process();
    await expect(process.edit(id, { ...edit, key: "taken" })).rejects.toMatchObject({ code: "key_conflict" });
    expect((await process.edit(id, { ...edit, key: "order-1b" })).key).toBe("order-1b");
    expect((await process.edit(other, { ...edit, key: null })).key).toBeNull();
  });

  it("is refused for what would not be accepted either, and then nothing changes", async () => {
    const scene = await createScene();
    const [id] = (await scene.die(1)) as [string];
    const before = await scene.store.get(id);
    const process = scene.process({
      checkPayload: (topic, text) => {
        if (text.includes("bad")) throw new MakegoodError("payload_rejected_by_schema", `${topic}: amount is missing`, {});
      },
    });
    const refusals: [object, string][] = [
      [{ payload: '{"bad":1}' }, "payload_rejected_by_schema"],
      [{ payload: "{" }, "invalid_payload"],
      [{ payload: `"${"x".repeat(1_048_576)}"` }, "payload_too_large"],
      [{ key: "k".repeat(256) }, "key_too_long"],
      [{ reason: "" }, "invalid_request"],
      [{ revision: 99 }, "revision_conflict"],
    ];
    for (const [change, code] of refusals) await expect(process.edit(id, { ...edit, ...change })).rejects.toMatchObject({ code });
    await expect(process.edit("0190b5a0-0000-7000-8000-000000000000", edit)).rejects.toMatchObject({ code: "message_not_found" });
    expect(before).toMatchObject({ status: "dead", resolution: "open" });
    expect(await scene.store.get(id)).toEqual(before);
  });
});
