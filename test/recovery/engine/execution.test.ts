/**
 * Executions: one of many, fenced before any side effect, ended by what became of the messages; what a dead process left behind is
 * unknown until a person says. Then the seven actions, each seen in the store.
 */
import { describe, expect, it } from "vitest";
import { MakegoodError } from "../../../src/message/errors.ts";
import type { RecoveryAction } from "../../../src/recovery/actions/action.ts";
import { SHIPPED_ACTIONS } from "../../../src/recovery/actions/shipped.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import { endOf } from "../../../src/recovery/candidates/completion.ts";
import { carrierTopicName } from "../../../src/recovery/carrier.ts";
import { CONFIDENCE_GATES } from "../../../src/recovery/confidence/gates.ts";
import { outcomeCounts } from "../../../src/recovery/confidence/outcome-counts.ts";
import { rankActions } from "../../../src/recovery/confidence/rank.ts";
import type { RedriveCounts } from "../../../src/recovery/redrive/redrive.ts";
import { NOTIFY_TOPIC } from "../../../src/recovery/topics.ts";
import { ANN, BO, createScene, DELIVERED, dead, ROBOT, type Scene, type SceneOptions, TOPIC } from "./scene.ts";

const MINUTE_MS = 60_000;

function ownAction(fields: Partial<RecoveryAction>): RecoveryAction {
  return {
    actionCode: "call_vendor",
    name: "Call the vendor",
    actionType: "escalate",
    priority: 10,
    risk: "safe",
    approval: "none",
    isAutomated: true,
    appliesToErrorCodes: [],
    appliesToTopics: [],
    template: {},
    inverse: null,
    plan: () => ({}),
    ...fields,
  };
}

/** A candidate with this action, approved by as many as it needs. */
async function ready(action: string, options: SceneOptions = {}, count = 3): Promise<{ scene: Scene; candidate: Candidate }> {
  const scene = await createScene(options);
  const { candidateId } = await scene.timeout(count);
  if (action !== "retry_exponential") await scene.engine.update(candidateId, { ...ANN, selectedAction: action });
  for (const by of [ANN, BO]) await scene.engine.approve(candidateId, by);
  return { scene, candidate: await scene.candidate() };
}

/** How sure a retry of a timeout is after one execution that failed. */
function retryThatFailedOnce(): number {
  const others = [...SHIPPED_ACTIONS].filter((code) => code !== "retry_exponential");
  const proposals = [{ action: "retry_exponential", score: 0.85 }, ...others.map((action) => ({ action }))];
  const failed = { own: outcomeCounts(0, 1, 0) };
  const ranked = rankActions(proposals, (action) => (action === "retry_exponential" ? failed : {}), 0);
  return ranked.find(({ action }) => action === "retry_exponential")?.confidence ?? 0;
}

const where = async ({ store }: Scene, topic = TOPIC): Promise<string[]> =>
  (await store.list({ topic, limit: 100 })).data.map(({ status, resolution }) => resolution ?? status);

/** Lets the redrive run and settles what it sent. */
async function deliver(scene: Scene, topic: string, settlement = DELIVERED): Promise<void> {
  await scene.clock.advance(MINUTE_MS);
  const pending = (await scene.store.list({ topic, status: "pending", limit: 100 })).data;
  await scene.settle(
    pending.map(({ id }) => id),
    settlement,
  );
  await scene.clock.advance(MINUTE_MS);
}

describe("an execution", () => {
  it("DR-1: of eight at once, in two processes, exactly one executes", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    const engines = [scene.engine, scene.another()];
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => engines[i % 2]?.execute(candidate.candidateId, { actor: `w${i}`, actorType: "human" })),
    );
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await scene.engine.redrives({ limit: 10 })).data).toHaveLength(1);
    const lines = (await scene.engine.provenance({ candidateId: candidate.candidateId }, { limit: 50 })).data;
    expect(lines.filter(({ eventType }) => eventType === "executing")).toHaveLength(1);
  });

  it("DR-2: what is executing, or was executed, is not executed again", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    const { candidateId } = candidate;
    const running = await scene.engine.execute(candidateId, ANN);
    expect(running).toMatchObject({ executionStatus: "executing", executionId: expect.any(String), executedBy: "ann" });
    await expect(scene.engine.execute(candidateId, BO)).rejects.toMatchObject({ code: "wrong_state" });
    scene.engine.start();
    await deliver(scene, TOPIC);
    expect(await scene.candidate()).toMatchObject({ executionStatus: "succeeded" });
    await expect(scene.engine.execute(candidateId, BO)).rejects.toMatchObject({ code: "wrong_state" });
    await scene.engine.stop();
  });

  it("DR-30: it has succeeded when the messages are delivered, and failed when they die again", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    scene.engine.start();
    await scene.engine.execute(candidate.candidateId, ANN);
    await scene.clock.advance(MINUTE_MS);
    expect((await scene.candidate()).executionStatus).toBe("executing");
    await deliver(scene, TOPIC, dead("no answer within 9 ms", "TIMEOUT"));
    const ended = (await scene.recovery.candidates({ limit: 10, current: false })).data.find(({ round }) => round === 1);
    expect(ended).toMatchObject({ executionStatus: "failed" });
    expect(JSON.parse(ended?.executionResult ?? "")).toMatchObject({ counts: { healed: 0, failed: 3 } });
    const { data } = await scene.engine.provenance({ candidateId: candidate.candidateId }, { limit: 50 });
    const record = (event: string) => data.find((each) => each.eventType === event);
    expect(record("executing")?.confidenceBefore).toBe(candidate.confidence);
    expect(record("executed")?.confidenceBefore).toBe(candidate.confidence);
    // Three that failed together are one execution that failed: less sure, and not out of the question.
    const learned = (await scene.recovery.observations(candidate.groupId)).map(({ healed, failed }) => ({ healed, failed }));
    expect(learned).toEqual([{ healed: 0, failed: 3 }]);
    const after = record("executed")?.confidenceAfter;
    expect(after).toBeCloseTo(retryThatFailedOnce(), 3);
    expect(after).toBeLessThan(CONFIDENCE_GATES.autoExecute);
    // What died again is the next round, and what was learned speaks in it.
    await scene.work();
    const next = await scene.candidate();
    expect(next).toMatchObject({ round: 2, evaluationStatus: "evaluated" });
    expect(next.confidence).toBeCloseTo(retryThatFailedOnce(), 3);
    await scene.engine.stop();
  });

  it("DR-5: a process that dies in the middle leaves `unknown`, which is never run again and only a person ends", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    const { candidateId } = candidate;
    const other = scene.another();
    // It is claimed, and then nothing more is ever heard of it.
    other.on("on_execution_start", () => new Promise(() => {}), { timeoutMs: 3_600_000_000 });
    void other.execute(candidateId, ANN);
    await scene.clock.advance(1_000);
    expect(await scene.candidate()).toMatchObject({ executionStatus: "executing", redriveId: null });
    await scene.engine.steps.complete();
    expect((await scene.candidate()).executionStatus).toBe("executing");
    await scene.clock.advance(MINUTE_MS);
    expect(await scene.engine.steps.complete()).toBe(1);
    const unknown = await scene.candidate();
    expect(unknown).toMatchObject({ executionStatus: "unknown", leaseUntil: null });
    await expect(scene.engine.execute(candidateId, BO)).rejects.toMatchObject({ code: "wrong_state" });
    await scene.die(["no answer within 4 ms"]);
    expect((await scene.candidate()).candidateId).toBe(candidateId);
    await expect(scene.engine.update(candidateId, { ...ROBOT, executionStatus: "failed" })).rejects.toMatchObject({
      code: "wrong_state",
    });
    const failed = await scene.engine.update(candidateId, { ...ANN, executionStatus: "failed", reason: "nothing was sent" });
    expect(failed.executionStatus).toBe("failed");
    await scene.die(["no answer within 4 ms"]);
    expect(await scene.candidate()).toMatchObject({ round: 2 });
  });

  it("DR-5: one that comes back after its lease does nothing any more", async () => {
    for (const action of ["retry_exponential", "circuit_breaker"]) {
      const { scene, candidate } = await ready(action);
      const other = scene.another();
      other.on("on_execution_start", () => new Promise(() => {}), { timeoutMs: 2 * MINUTE_MS });
      const late = other.execute(candidate.candidateId, ANN).catch((error: unknown) => error);
      await scene.clock.advance(MINUTE_MS + 1);
      expect(await scene.engine.steps.complete()).toBe(1);
      await scene.clock.advance(MINUTE_MS);
      expect(await late).toMatchObject({ code: "wrong_state" });
      expect((await scene.engine.redrives({ limit: 10 })).data).toEqual([]);
      expect((await scene.store.topics.get(TOPIC))?.breaker.state).toBe("closed");
      expect(await where(scene)).toEqual(["open", "open", "open"]);
    }
  });

  it("DR-5: nothing outside is begun after its lease, also while nobody has seen that it is over", async () => {
    const { scene, candidate } = await ready("circuit_breaker");
    scene.engine.on("on_execution_start", () => new Promise(() => {}), { timeoutMs: 2 * MINUTE_MS });
    const late = scene.engine.execute(candidate.candidateId, ANN).catch((error: unknown) => error);
    await scene.clock.advance(2 * MINUTE_MS + 1);
    expect(await late).toMatchObject({ code: "wrong_state" });
    expect((await scene.store.topics.get(TOPIC))?.breaker.state).toBe("closed");
    expect(await scene.engine.steps.complete()).toBe(1);
    expect(await scene.candidate()).toMatchObject({ executionStatus: "unknown", redriveId: null });
  });

  it("what could not be begun, with nothing done, is failed with its reason and not left executing", async () => {
    for (const action of ["retry_exponential", "manual_intervention", "skip_task"]) {
      const { scene, candidate } = await ready(action);
      Object.assign(scene.recovery.redrives, { start: () => Promise.reject(new Error("invalid byte sequence")) });
      const { executionStatus, executionResult, redriveId } = await scene.engine.execute(candidate.candidateId, ANN);
      expect([executionStatus, redriveId]).toEqual(["failed", null]);
      expect(JSON.parse(executionResult ?? "")).toMatchObject({ status: "failed", error: "invalid byte sequence" });
      expect(await where(scene)).toEqual(["open", "open", "open"]);
      expect((await scene.recovery.group(candidate.groupId))?.heldBy).toBeNull();
    }
  });

  it("a redrive that was started without an answer carries its execution on", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    const { start } = scene.recovery.redrives;
    const unanswered = async (redrive: Parameters<typeof start>[0]) => {
      await start(redrive);
      throw new Error("the connection was lost");
    };
    Object.assign(scene.recovery.redrives, { start: unanswered });
    expect(await scene.engine.execute(candidate.candidateId, ANN)).toMatchObject({
      executionStatus: "executing",
      redriveId: expect.any(String),
    });
  });

  it("DR-5: what had begun outside when something else broke is left for a person", async () => {
    const away = new MakegoodError("store_unavailable", "the connection was lost");
    for (const [action, error] of [
      ["circuit_breaker", new Error("the connection was lost")],
      ["circuit_breaker", away],
      ["notify_ops", new Error("the connection was lost")],
      ["notify_ops", away],
    ] as const) {
      const { scene, candidate } = await ready(action);
      Object.assign(scene.recovery.redrives, { start: () => Promise.reject(error) });
      await expect(scene.engine.execute(candidate.candidateId, ANN)).rejects.toThrow("the connection was lost");
      expect((await scene.candidate()).executionStatus).toBe("executing");
      await scene.clock.advance(MINUTE_MS + 1);
      await scene.engine.steps.complete();
      expect((await scene.candidate()).executionStatus).toBe("unknown");
    }
  });

  it("an action of a program whose texts no store can keep is refused before it is claimed", async () => {
    for (const plan of [{ hold: { owner: "a\0b", note: "" } }, { reason: "\ud800" }, { hold: { owner: "a", note: "\udc00" } }]) {
      const scene = await createScene();
      const { candidateId } = await scene.timeout();
      scene.engine.register(ownAction({ plan: () => plan }));
      await scene.engine.update(candidateId, { ...ANN, selectedAction: "call_vendor" });
      await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
      expect((await scene.candidate()).executionStatus).toBe("pending");
    }
  });

  it("a version that has moved on is refused before anything happens", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    const { candidateId, version } = candidate;
    const old = scene.engine.execute(candidateId, { ...ANN, version: version - 1 });
    await expect(old).rejects.toMatchObject({ code: "version_conflict", detail: { version } });
    const narrower = { select: { tenantId: "acme" } } as object;
    for (const redrive of [{ ratePerSecond: -5 }, { limit: Number.NaN }, { limit: 0 }, { generationMax: 1e9 }, narrower]) {
      const wrong = scene.engine.execute(candidateId, { ...ANN, redrive });
      await expect(wrong, JSON.stringify(redrive)).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect((await scene.candidate()).executionStatus).toBe("pending");
  });

  it.each(["retry_exponential", "circuit_breaker"])(
    "fault 42: %s sends nothing again into a disabled sink, where it would wait unseen",
    async (action) => {
      const { scene, candidate } = await ready(action);
      await scene.store.topics.disable(TOPIC, "410 gone");
      const refused = scene.engine.execute(candidate.candidateId, ANN);
      await expect(refused).rejects.toMatchObject({ code: "nobody_delivers", message: expect.stringContaining("410 gone") });
      expect(await scene.candidate()).toMatchObject({ executionStatus: "pending" });
      expect((await scene.store.topics.get(TOPIC))?.breaker.state).toBe("closed");
    },
  );

  it("a registered action whose own check throws is refused, and says why", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    const refusal = () => {
      throw new Error("the vendor's list is empty");
    };
    scene.engine.register(ownAction({ refusal, plan: () => ({}) }));
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "call_vendor" });
    const refused = scene.engine.execute(candidateId, ANN);
    await expect(refused).rejects.toMatchObject({ code: "action_refused", message: expect.stringContaining("list is empty") });
  });

  it("nothing of ours to touch: what sends is refused, what tells is done", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.engine.ingest(scene.report({ topic: TOPIC }), ANN);
    await scene.work();
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "nothing_selected" });
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    expect(await scene.engine.execute(candidateId, ANN)).toMatchObject({ executionStatus: "succeeded", groupId });
    const closing = await scene.engine.suggest(groupId, ANN);
    await scene.engine.update(closing.candidateId, { ...ANN, selectedAction: "skip_task" });
    await scene.engine.approve(closing.candidateId, ANN);
    expect((await scene.engine.execute(closing.candidateId, ANN)).executionStatus, "so is what closes the matter").toBe(
      "succeeded",
    );
    const outside = await scene.engine.ingest(scene.report({ topic: "their/topic" }), ANN);
    await scene.work();
    await expect(scene.engine.execute(outside.candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
  });

  it("a cancelled redrive that sent nothing is skipped, one that stopped has failed", () => {
    const counts = (fields: Partial<RedriveCounts>): RedriveCounts => ({
      selected: 9,
      waiting: 0,
      sent: 0,
      healed: 0,
      failed: 0,
      skipped: 0,
      ...fields,
    });
    expect(endOf({ mode: "replay", status: "running", counts: counts({ waiting: 9 }) })).toBe(null);
    expect(endOf({ mode: "replay", status: "paused", counts: counts({ sent: 2, waiting: 7 }) })).toBe(null);
    expect(endOf({ mode: "replay", status: "cancelled", counts: counts({ skipped: 9 }) })).toBe("skipped");
    expect(endOf({ mode: "replay", status: "cancelled", counts: counts({ healed: 1, skipped: 8 }) })).toBe("failed");
    expect(endOf({ mode: "copy", status: "stopped", counts: counts({ healed: 3, failed: 2, waiting: 4 }) })).toBe("failed");
    expect(endOf({ mode: "replay", status: "done", counts: counts({ healed: 8, failed: 1 }) })).toBe("succeeded");
    expect(endOf({ mode: "replay", status: "done", counts: counts({ healed: 1, failed: 8 }) })).toBe("failed");
    expect(endOf({ mode: "resolve", status: "running", counts: counts({ sent: 9 }) })).toBe("succeeded");
    expect(endOf({ mode: "resolve", status: "running", counts: counts({ sent: 3, waiting: 6 }) })).toBe(null);
  });
});

describe("an action of one's own", () => {
  it("is registered, chosen and run once, with its answer in the result", async () => {
    const scene = await createScene();
    const ran: string[] = [];
    scene.engine.register(ownAction({ plan: () => ({ run: async ({ executionId }) => ({ ticket: ran.push(executionId) }) }) }));
    const { candidateId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "call_vendor" });
    const done = await scene.engine.execute(candidateId, ANN);
    expect(done.executionStatus).toBe("succeeded");
    expect(ran).toEqual([done.executionId]);
    expect(JSON.parse(done.executionResult ?? "")).toMatchObject({ status: "succeeded", answer: { ticket: 1 } });
    expect(await scene.engine.actions({ actionType: "escalate" })).toMatchObject([{ actionCode: "call_vendor", shipped: false }]);
    expect(() => scene.engine.register(ownAction({}))).toThrow(/already/);
    expect(() => scene.engine.register(ownAction({ actionCode: "Bad Code", template: { text: "{constructor}" } }))).toThrow(
      /no field/,
    );
  });

  it("that throws has failed; one that does not end in time is unknown and told to stop", async () => {
    for (const [run, status, settings] of [
      [() => Promise.reject(new Error("no line")), "failed", {}],
      [() => new Promise(() => {}), "unknown", {}],
      // However long it may take, it is given up while its lease holds.
      [() => new Promise(() => {}), "unknown", { runTimeoutMs: 60 * MINUTE_MS }],
    ] as const) {
      const scene = await createScene({ settings });
      let signal: AbortSignal | undefined;
      scene.engine.register(
        ownAction({
          plan: (context) => {
            signal = context.signal;
            return { run };
          },
        }),
      );
      const { candidateId } = await scene.timeout();
      await scene.engine.update(candidateId, { ...ANN, selectedAction: "call_vendor" });
      const executing = scene.engine.execute(candidateId, ANN);
      await scene.clock.advance(MINUTE_MS / 2);
      expect(await executing).toMatchObject({ executionStatus: status });
      expect(signal?.aborted).toBe(status === "unknown");
    }
  });

  it("whose plan throws is refused, and nothing has happened", async () => {
    const scene = await createScene();
    scene.engine.register(
      ownAction({
        plan: () => {
          throw new Error("no vendor");
        },
      }),
    );
    const { candidateId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "call_vendor" });
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
    expect((await scene.candidate()).executionStatus).toBe("pending");
  });

  it("fits only the codes and topics that it names", async () => {
    const scene = await createScene();
    await scene.engine.putAction("retry_exponential", `{"enabled":false}`, 0, ANN);
    scene.engine.register(ownAction({ appliesToErrorCodes: ["RATE_LIMIT"], appliesToTopics: ["shop/*"] }));
    const rule = {
      id: "vendor",
      name: "Ask the vendor",
      priority: 95,
      condition: { any: [{ occurrences: 1 }] },
      action: "call_vendor",
      score: 0.9,
    };
    await scene.engine.putRule("vendor", JSON.stringify(rule), 0, ANN);
    const about = async (code: string, topic: string) =>
      (await scene.engine.evaluate({ errorCode: code, topic })).evaluation.recommended?.action;
    expect(await about("429", "shop/charge")).toBe("call_vendor");
    expect(await about("429", "mail/send")).toBe(undefined);
    expect(await about("TIMEOUT", "shop/charge")).toBe(undefined);
    // What is left must be sure enough to be suggested, as anything else.
    const doubtful = { ...rule, id: "doubtful", priority: 94, action: "notify_ops", score: 0.29 };
    await scene.engine.putRule("doubtful", JSON.stringify(doubtful), 0, ANN);
    expect(await about("TIMEOUT", "shop/charge")).toBe(undefined);
    await scene.engine.putRule("doubtful", JSON.stringify({ ...doubtful, score: 0.3 }), 1, ANN);
    expect(await about("TIMEOUT", "shop/charge")).toBe("notify_ops");
  });
});

describe("the seven actions", () => {
  it("retry_exponential replays the group's open dead letters, and nothing else", async () => {
    const { scene, candidate } = await ready("retry_exponential");
    const [other = ""] = await scene.die(["refused"], { code: "E_OTHER" });
    scene.engine.start();
    await scene.engine.execute(candidate.candidateId, { ...ANN, redrive: { canary: 1 } });
    await deliver(scene, TOPIC);
    await deliver(scene, TOPIC);
    const ended = await where(scene);
    expect(ended.filter((status) => status === "delivered")).toHaveLength(3);
    expect(ended).toContain("open");
    expect((await scene.store.get(other))?.resolution).toBe("open");
    await scene.engine.stop();
  });

  it("fallback_model brings copies to the topic's fallback, and resolves what they delivered", async () => {
    const { scene, candidate } = await ready("fallback_model", { fallback: { kind: "http", url: "https://other.example" } });
    scene.engine.start();
    await scene.engine.execute(candidate.candidateId, ANN);
    const carrier = carrierTopicName("fallback", TOPIC);
    await scene.clock.advance(MINUTE_MS);
    expect(await scene.store.topics.get(carrier)).toMatchObject({ sink: { url: "https://other.example" } });
    expect(await where(scene)).toEqual(["open", "open", "open"]);
    await deliver(scene, carrier);
    expect(await where(scene)).toEqual(["resolved", "resolved", "resolved"]);
    expect(await scene.candidate()).toMatchObject({ executionStatus: "succeeded" });
    await scene.engine.stop();
  });

  it("fallback_model and rollback_state are suggested, and refused while the topic has no such sink", async () => {
    const scene = await createScene();
    await scene.die(["the monthly budget is spent"], { code: "BUDGET_EXCEEDED" });
    await scene.work();
    const { candidateId, selectedAction, evaluation } = await scene.candidate();
    expect(selectedAction).toBe("fallback_model");
    expect(JSON.parse(evaluation ?? "").notes).toMatchObject([expect.stringContaining("has no fallback sink")]);
    await scene.engine.approve(candidateId, ANN);
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "rollback_state" });
    for (const by of [ANN, BO]) await scene.engine.approve(candidateId, by);
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
  });

  it("rollback_state sends the compensation under a key of its own", async () => {
    const { scene, candidate } = await ready(
      "rollback_state",
      { compensation: { kind: "http", url: "https://undo.example" } },
      1,
    );
    scene.engine.start();
    await scene.engine.execute(candidate.candidateId, ANN);
    await scene.clock.advance(MINUTE_MS);
    const [copy] = (await scene.store.list({ topic: carrierTopicName("compensation", TOPIC), limit: 10 })).data;
    expect(copy?.key).toMatch(/^compensation:/);
    await scene.engine.stop();
  });

  it("circuit_breaker opens the breaker first; rolled back, it is closed", async () => {
    const { scene, candidate } = await ready("circuit_breaker");
    await scene.engine.execute(candidate.candidateId, ANN);
    expect((await scene.store.topics.get(TOPIC))?.breaker).toMatchObject({
      state: "open",
      reason: expect.stringContaining("ann"),
    });
    scene.engine.start();
    await deliver(scene, TOPIC);
    const { candidateId, executionStatus } = await scene.candidate();
    expect(executionStatus).toBe("succeeded");
    expect(await scene.engine.update(candidateId, { ...ANN, executionStatus: "rolled_back" })).toMatchObject({
      executionStatus: "rolled_back",
    });
    expect((await scene.store.topics.get(TOPIC))?.breaker.state).toBe("closed");
    await scene.engine.stop();
  });

  it("notify_ops sends one message with what is known, and watches what becomes of the others", async () => {
    const { scene, candidate } = await ready("notify_ops");
    const done = await scene.engine.execute(candidate.candidateId, ANN);
    expect(done.executionStatus).toBe("succeeded");
    const [notice, ...more] = (await scene.store.list({ topic: NOTIFY_TOPIC, limit: 10 })).data;
    expect(more).toEqual([]);
    expect(JSON.parse(notice?.payload ?? "")).toMatchObject({
      text: `3 failures of ${TOPIC} (TIMEOUT): no answer within <*>`,
      occurrence_count: 3,
      group_id: candidate.groupId,
    });
    expect(await scene.store.topics.get(NOTIFY_TOPIC)).toMatchObject({ retry: { policy: "recovery-outbox" } });
    expect((await scene.engine.redrives({ limit: 10 })).data).toMatchObject([{ mode: "watch", counts: { selected: 3 } }]);
    expect(await where(scene)).toEqual(["open", "open", "open"]);
  });

  it("manual_intervention holds the group with an owner and a note until it is released", async () => {
    const { scene, candidate } = await ready("manual_intervention");
    const done = await scene.engine.execute(candidate.candidateId, ANN);
    expect(done).toMatchObject({
      executionStatus: "succeeded",
      owner: "operators",
      note: expect.stringContaining("need a person"),
    });
    expect((await scene.engine.group(candidate.groupId)).group.heldBy).toBe("operators");
    await scene.engine.update(candidate.candidateId, { ...ANN, executionStatus: "rolled_back" });
    expect((await scene.engine.group(candidate.groupId)).group.heldBy).toBe(null);
  });

  it("skip_task resolves with a reason; nothing undoes it", async () => {
    const { scene, candidate } = await ready("skip_task");
    scene.engine.start();
    await scene.engine.execute(candidate.candidateId, ANN);
    await scene.clock.advance(MINUTE_MS);
    expect(await where(scene)).toEqual(["resolved", "resolved", "resolved"]);
    const { candidateId, executionStatus } = await scene.candidate();
    expect(executionStatus).toBe("succeeded");
    const [one] = (await scene.store.list({ topic: TOPIC, limit: 1 })).data;
    const { provenance } = await scene.store.history(one?.id ?? "");
    expect(provenance).toMatchObject([{ action: "resolve", reason: "skipped: no answer within <*>" }]);
    const undo = scene.engine.update(candidateId, { ...ANN, executionStatus: "rolled_back" });
    await expect(undo).rejects.toMatchObject({ code: "action_refused" });
    await scene.engine.stop();
  });
});
