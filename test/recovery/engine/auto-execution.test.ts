/**
 * DR-32: what runs without a person is automated, safe, sure enough, inside a budget and a rate, and switched on; and it never goes round
 * in a circle.
 */
import { describe, expect, it } from "vitest";
import type { ActionContext } from "../../../src/recovery/actions/action.ts";
import { ACTIONS } from "../../../src/recovery/actions/shipped.ts";
import { autoExecutionOf } from "../../../src/recovery/candidates/auto-execution.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import { OVERFLOW } from "../../../src/recovery/fingerprint/learner.ts";
import type { RecoverySettings } from "../../../src/recovery/settings.ts";
import { NOTIFY_TOPIC } from "../../../src/recovery/topics.ts";
import { ANN, createScene, dead, type Scene, TOPIC, times } from "./scene.ts";

const ON = { settings: { autoExecute: true } } as const;
const HOUR_MS = 3_600_000;

const refusals = ({ evaluation }: Candidate): string[] => JSON.parse(evaluation ?? "").auto_execution.refusals;

/** So many different failures, each of its own group, each evaluated. */
async function kinds(scene: Scene, names: readonly string[]): Promise<void> {
  for (const name of names) await scene.die([`${name} gave no answer`]);
  await scene.work();
}

const executing = async ({ recovery }: Scene): Promise<number> =>
  (await recovery.candidates({ limit: 100, current: false })).data.filter(({ executedAt }) => executedAt !== null).length;

describe("auto-execution", () => {
  it("DR-32: is off by default, and on it runs what every gate lets through, by the system, on record", async () => {
    const off = await createScene();
    expect(await off.timeout()).toMatchObject({ executionStatus: "pending" });
    const scene = await createScene(ON);
    const candidate = await scene.timeout(3);
    expect(candidate).toMatchObject({ executionStatus: "executing", executedBy: "system", approvals: [] });
    expect(refusals(candidate)).toEqual([]);
    const [line] = (await scene.engine.provenance({ candidateId: candidate.candidateId }, { limit: 50 })).data.filter(
      ({ eventType }) => eventType === "executing",
    );
    expect(line).toMatchObject({ actor: "system", actorType: "system", reason: "suggested with confidence 0.85" });
  });

  it("R11: what a person cancelled is suggested again, and does not run again by itself", async () => {
    const scene = await createScene(ON);
    const { candidateId, redriveId } = await scene.timeout(3);
    await scene.engine.cancelRedrive(redriveId as string, ANN);
    expect(await scene.engine.steps.complete()).toBe(1);
    await scene.work();
    const next = await scene.candidate();
    expect(next).toMatchObject({ round: 2, evaluationStatus: "evaluated", executionStatus: "pending" });
    expect(next).toMatchObject({ selectedAction: "retry_exponential" });
    expect(next.candidateId).not.toBe(candidateId);
    expect(refusals(next)).toEqual(["cancelled_before"]);
    // A person can.
    expect(await scene.engine.execute(next.candidateId, ANN)).toMatchObject({ executionStatus: "executing" });
    expect(await scene.engine.steps.complete()).toBe(0);
  });

  it("what retries by itself waits first, twice as long in each round; a person's does not, unless asked", async () => {
    const scene = await createScene(ON);
    const plan = async (): Promise<number> => {
      const [redrive] = (await scene.engine.redrives({ limit: 1 })).data;
      return (JSON.parse(redrive?.plan ?? "") as { delayMs: number }).delayMs;
    };
    const pending = async () => (await scene.store.list({ topic: TOPIC, status: "pending", limit: 10 })).data.map(({ id }) => id);
    await scene.timeout(1);
    expect(await plan()).toBe(30_000);
    scene.engine.start();
    await scene.clock.advance(29_000);
    expect(await pending()).toEqual([]);
    await scene.clock.advance(5_000);
    const sent = await pending();
    expect(sent).toHaveLength(1);
    await scene.settle(sent, dead("no answer within 9 ms", "TIMEOUT"));
    await scene.clock.advance(HOUR_MS);
    await scene.engine.stop();
    await scene.work();
    const { candidateId, round } = await scene.candidate();
    expect([round, (await scene.candidate()).executionStatus]).toEqual([2, "pending"]);
    await scene.engine.execute(candidateId, ANN);
    expect(await plan()).toBe(0);

    const rounds = ACTIONS.find(({ actionCode }) => actionCode === "retry_exponential");
    const given = { actor: "system", candidate: { round: 1 } as Candidate } as ActionContext;
    const delays = [1, 2, 7, 8, 30].map((n) => rounds?.plan({ ...given, candidate: { round: n } as Candidate }).delayMs);
    expect(delays).toEqual([30_000, 60_000, 1_920_000, HOUR_MS, HOUR_MS]);

    const asked = await createScene();
    const by = await asked.timeout(1);
    await asked.engine.execute(by.candidateId, { ...ANN, redrive: { delayMs: 5_000 } });
    expect((await asked.engine.redrives({ limit: 1 })).data[0]?.plan).toContain('"delayMs":5000');
  });

  it("DR-32: a message delivered again after a crash still executes once", async () => {
    const scene = await createScene(ON);
    const other = scene.another({ autoExecute: false });
    await scene.die(["no answer"]);
    // Evaluated, and the process died before it could begin.
    const { candidateId } = await scene.candidate();
    await scene.recovery.write({ candidateId, patch: { evaluationStatus: "evaluating" }, provenance: [] });
    await other.evaluateMessage?.({ candidate_id: candidateId }, 1);
    expect((await scene.candidate()).executionStatus).toBe("pending");
    const run = scene.engine.evaluateMessage ?? expect.fail();
    // What the other process found was that it may not.
    await run({ candidate_id: candidateId }, 2);
    expect((await scene.candidate()).executionStatus).toBe("pending");
    await scene.die(["no answer"]);
    await Promise.all([run({ candidate_id: candidateId }, 1), run({ candidate_id: candidateId }, 1)]);
    await scene.work();
    expect(await executing(scene)).toBe(1);
    expect((await scene.engine.redrives({ limit: 10 })).data).toHaveLength(1);
  });

  it("DR-32: what is less sure than 0.8, risky, not automated or needs a person waits for one", async () => {
    const scene = await createScene(ON);
    await scene.die(["unavailable"], { code: "503" });
    await scene.work();
    const candidate = await scene.candidate();
    expect(candidate).toMatchObject({ selectedAction: "circuit_breaker", executionStatus: "pending" });
    expect(refusals(candidate)).toEqual(["low_confidence", "not_safe", "needs_approval"]);
    await scene.engine.putAction("retry_exponential", `{"approval":"one"}`, 0, ANN);
    await kinds(scene, ["gateway"]);
    const { data } = await scene.recovery.candidates({ limit: 10, action: "retry_exponential" });
    expect(refusals(data[0] as Candidate)).toEqual(["needs_approval"]);
  });

  it("DR-32: the rate is bounded over all groups, and free again after the hour", async () => {
    const scene = await createScene({ settings: { ...ON.settings, autoExecutionsPerHour: 3 } });
    await kinds(scene, ["alpha", "beta", "gamma", "delta", "epsilon"]);
    expect(await executing(scene)).toBe(3);
    const waiting = (await scene.recovery.candidates({ limit: 10, executionStatus: "pending" })).data;
    expect(waiting).toHaveLength(2);
    const [line] = (await scene.engine.provenance({ candidateId: waiting[0]?.candidateId ?? 0 }, { limit: 1 })).data;
    expect(line).toMatchObject({ eventType: "auto_execution_refused", reason: expect.stringContaining("this hour's limit") });
    await scene.clock.advance(HOUR_MS);
    await kinds(scene, ["zeta"]);
    expect(await executing(scene)).toBe(4);
  });

  it("DR-32: a group with more messages than the budget waits for a person", async () => {
    const scene = await createScene({ settings: { ...ON.settings, autoMessagesMax: 2 } });
    const candidate = await scene.timeout(3);
    expect(candidate.executionStatus).toBe("pending");
    expect(refusals(candidate)).toEqual(["over_budget"]);
  });

  it("DR-32: of what others reported no more is sent again by itself than the budget", async () => {
    const scene = await createScene({ settings: { autoExecute: true, autoMessagesMax: 2 } });
    for (const idempotencyKey of ["a", "b", "c"]) {
      await scene.engine.ingest(scene.report({ idempotencyKey, redriveTopic: TOPIC }), ANN);
    }
    await scene.work();
    const { groupId, executionStatus } = await scene.candidate();
    expect(executionStatus).toBe("executing");
    await scene.clock.advance(31_000);
    await scene.engine.steps.complete();
    expect((await scene.store.list({ topic: TOPIC, limit: 10 })).data).toHaveLength(2);
    expect((await scene.recovery.openReports(groupId, 10)).open).toBe(1);
  });

  it("DR-32: what dies between the evaluation and the execution is not touched beyond the budget", async () => {
    const scene = await createScene({ settings: { ...ON.settings, autoMessagesMax: 2 } });
    await scene.die(["no answer within 1 ms", "no answer within 2 ms"]);
    let more = true;
    scene.engine.on("on_action_selected", async () => {
      if (more) await scene.die(["no answer within 3 ms", "no answer within 4 ms"]);
      more = false;
    });
    const working = scene.work();
    await scene.clock.advance(1);
    await working;
    const [redrive] = (await scene.engine.redrives({ limit: 10 })).data;
    expect(redrive?.counts.selected).toBe(2);
    expect((await scene.store.list({ topic: TOPIC, limit: 10 })).data).toHaveLength(4);
  });

  it("DR-32: what a person chose is theirs to execute, also where it is what would be suggested", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    await scene.die(["no answer within 9 ms"]);
    await scene.work(scene.another(ON.settings));
    const candidate = await scene.candidate();
    expect(candidate).toMatchObject({ candidateId, evaluations: 2, confidence: 0.85, executionStatus: "pending" });
    expect(refusals(candidate)).toEqual(["no_action"]);
  });

  it("DR-32: what was written to between the evaluation and the claim waits for a person", async () => {
    const scene = await createScene(ON);
    await scene.die(["no answer within 1 ms"]);
    const { candidateId } = await scene.candidate();
    scene.engine.on("on_action_selected", () => scene.engine.update(candidateId, { ...ANN, note: "I am looking at it" }));
    const working = scene.work();
    await scene.clock.advance(1);
    await working;
    expect(await scene.candidate()).toMatchObject({ executionStatus: "pending", note: "I am looking at it" });
    const [line] = (await scene.engine.provenance({ candidateId }, { limit: 1 })).data;
    expect(line).toMatchObject({ eventType: "auto_execution_refused", reason: expect.stringContaining("changed since") });
  });

  it("DR-32: where it is switched off nothing runs, whatever another process judged", async () => {
    const scene = await createScene();
    await scene.die(["no answer within 1 ms"]);
    const { candidateId } = await scene.candidate();
    // It is killed between the evaluation and the execution, and the message comes here.
    const { write } = scene.recovery;
    const broken = scene.recovery as { write: typeof write };
    broken.write = async (given) => {
      if (given.patch.executionStatus === "executing") throw new Error("killed");
      return write(given);
    };
    const other = scene.another(ON.settings);
    expect(await other.evaluateMessage?.({ candidate_id: candidateId }, 1)).toMatchObject({ kind: "retry" });
    broken.write = write;
    expect(refusals(await scene.candidate())).toEqual([]);
    expect(await scene.engine.evaluateMessage?.({ candidate_id: candidateId }, 2)).toMatchObject({ kind: "delivered" });
    expect((await scene.candidate()).executionStatus).toBe("pending");
    await other.evaluateMessage?.({ candidate_id: candidateId }, 3);
    expect((await scene.candidate()).executionStatus).toBe("executing");
  });

  it("EV-49: no recovery of a recovery, no group that is held, nothing that fits no template", async () => {
    const scene = await createScene(ON);
    await scene.engine.steps.ingest();
    await scene.die(["no answer"], { topic: NOTIFY_TOPIC });
    await scene.work();
    const own = await scene.candidate();
    expect([own.selectedAction, own.executionStatus, refusals(own)]).toEqual([
      "retry_exponential",
      "pending",
      ["recovery_of_recovery"],
    ]);

    const other = await createScene();
    const { candidateId, groupId } = await other.timeout();
    await other.engine.update(candidateId, { ...ANN, selectedAction: "manual_intervention" });
    await other.engine.execute(candidateId, ANN);
    const engine = other.another(ON.settings);
    const held = await engine.suggest(groupId, ANN);
    expect(refusals(held)).toEqual(["held_group"]);

    const group = await other.recovery.group(groupId);
    const [action] = (await other.engine.actions()).filter(({ actionCode }) => actionCode === "retry_exponential");
    const settings = { autoExecute: true, autoMessagesMax: 10 } as RecoverySettings;
    const blastRadius = { messages: 1, overGeneration: 0, leftOut: {}, topics: [], tenants: 1, oldestAt: null, seen: "1" };
    const asked = (given: Parameters<typeof autoExecutionOf>[0]) => autoExecutionOf(given, (suggested) => suggested);
    const overflow = asked({
      settings,
      action: action as never,
      confidence: 0.9,
      group: { ...(group as NonNullable<typeof group>), heldBy: null, template: OVERFLOW },
      blastRadius,
    });
    expect(overflow).toEqual({ allowed: false, refusals: ["overflow_group"] });
    // A merged group may have messages of the engine's own among others; and what only a person can do is not done by itself.
    const given = { settings, confidence: 0.9, group: { ...(group as NonNullable<typeof group>), heldBy: null }, blastRadius };
    const topics = [TOPIC, NOTIFY_TOPIC].map((topic) => ({ topic, messages: 1 }));
    expect(asked({ ...given, action: action as never, blastRadius: { ...blastRadius, topics } }).refusals).toEqual([
      "recovery_of_recovery",
    ]);
    const [manual] = (await other.engine.actions()).filter(({ actionCode }) => actionCode === "manual_intervention");
    expect(asked({ ...given, action: manual as never }).refusals).toEqual(["not_automated"]);
  });

  it("DR-32: what keeps dying is not retried by itself for ever: what was learned stops it", async () => {
    const scene = await createScene({ settings: { ...ON.settings, autoExecutionsPerHour: 100 } });
    scene.engine.start();
    await scene.timeout(3);
    for (let round = 0; round < 8; round++) {
      await scene.clock.advance(60_000);
      const pending = (await scene.store.list({ topic: TOPIC, status: "pending", limit: 10 })).data;
      if (pending.length === 0) break;
      for (const { id } of pending) await scene.settle([id], dead("no answer within 5 ms", "TIMEOUT"));
      await scene.clock.advance(60_000);
      await scene.work();
    }
    expect(await executing(scene)).toBe(1);
    const last = await scene.candidate();
    expect(last).toMatchObject({ round: 2, executionStatus: "pending" });
    expect(refusals(last)).toContain("low_confidence");
    await scene.engine.stop();
  });

  it("DR-32: a group that a person took since its evaluation waits for a person when the evaluation is delivered again", async () => {
    const scene = await createScene(ON);
    await scene.die(["no answer within 1000 ms"]);
    const evaluate = scene.engine.evaluateMessage as NonNullable<typeof scene.engine.evaluateMessage>;
    const before = await scene.candidate();
    // The process is killed between the evaluation and the execution.
    const { write } = scene.recovery;
    const broken = scene.recovery as { write: typeof write };
    broken.write = async (given) => {
      if (given.patch.executionStatus === "executing") throw new Error("killed");
      return write(given);
    };
    expect((await evaluate({ candidate_id: before.candidateId }, 1)).kind).toBe("retry");
    broken.write = write;
    const { candidateId, version } = await scene.candidate();
    await scene.recovery.write({ candidateId, version, patch: { heldBy: "ann" }, provenance: [] });
    await evaluate({ candidate_id: candidateId }, 2);
    expect((await scene.candidate()).executionStatus).toBe("pending");
    // Released, it is another version of the group than the one that was judged.
    await scene.recovery.write({ candidateId, patch: { heldBy: null }, provenance: [] });
    await evaluate({ candidate_id: candidateId }, 3);
    expect((await scene.candidate()).executionStatus).toBe("pending");
    const { data } = await scene.engine.provenance({ candidateId }, { limit: 2 });
    expect(data).toMatchObject([
      { eventType: "auto_execution_refused", reason: expect.stringContaining("changed since") },
      { eventType: "auto_execution_refused", reason: expect.stringContaining("held for ann") },
    ]);
  });

  it("an action that has become sure enough by its outcomes runs by itself", async () => {
    const scene = await createScene(ON);
    await scene.die(["connection refused"], { code: "ECONNREFUSED" });
    await scene.work();
    const first = await scene.candidate();
    expect(first).toMatchObject({ selectedAction: "retry_exponential", confidence: 0.75, executionStatus: "pending" });
    await scene.recovery.learn(times(10, { groupId: first.groupId, action: "retry_exponential", healed: 1, failed: 0 }));
    await scene.die(["connection refused"], { code: "ECONNREFUSED" });
    await scene.work();
    expect(await scene.candidate()).toMatchObject({ executionStatus: "executing", executedBy: "system" });
  });
});
