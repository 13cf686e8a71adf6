/**
 * Executions that something happens to on the way: a process killed between two writes, one that comes back late, failures that come in
 * meanwhile. What was confirmed is what is touched, what nobody knows is not a success, and the record says how long it took.
 */
import { describe, expect, it } from "vitest";
import { createEvents } from "../../../src/observe/events.ts";
import { createIds } from "../../../src/platform/ids.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import type { CandidateWrite } from "../../../src/recovery/candidates/candidates-sql.ts";
import { endOf } from "../../../src/recovery/candidates/completion.ts";
import { reopenIfLeft } from "../../../src/recovery/candidates/execution-record.ts";
import { carrierTopicName } from "../../../src/recovery/carrier.ts";
import { createRecovery, type RecoveryEngine } from "../../../src/recovery/engine.ts";
import type { Group } from "../../../src/recovery/groups/group.ts";
import type { Records } from "../../../src/recovery/records.ts";
import { ANN, createScene, DELIVERED, dead, type Scene, TOPIC } from "./scene.ts";

const MINUTE_MS = 60_000;
const EXECUTION = "019b76da-0000-7000-8000-0000000000ff";

/** A process on the same store that hangs for ever where `hangs` says so. */
function dying(scene: Scene, hangs: (name: string, argument: unknown) => boolean): RecoveryEngine {
  const recovery = new Proxy(scene.recovery, {
    get: (target, name: keyof Records) => {
      const member = target[name];
      if (typeof member !== "function") return member;
      return (...given: unknown[]) =>
        hangs(name, given[0]) ? new Promise(() => {}) : (member as (...all: unknown[]) => unknown).apply(target, given);
    },
  });
  const { clock, store, maintain } = scene;
  const own = { events: createEvents(), ids: createIds(clock), clock, store, home: store.home, maintain };
  return createRecovery({ ...own, serves: () => true, checkPayload: () => {} }, recovery);
}

const ends = (name: string, argument: unknown): boolean =>
  name === "write" && (argument as CandidateWrite).patch.executionStatus === "succeeded";

const executed = async ({ engine }: Scene, candidateId: number) =>
  (await engine.provenance({ candidateId }, { limit: 50 })).data.filter(({ eventType }) => eventType === "executed");

describe("a process that is killed", () => {
  it("between the start of a hold and its end leaves the group held, a minute later", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout(3);
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "manual_intervention" });
    void dying(scene, ends).execute(candidateId, ANN);
    await scene.clock.advance(1_000);
    // The process that began it may live and be about to end it.
    expect(await scene.engine.steps.complete()).toBe(0);
    expect((await scene.recovery.candidate(candidateId))?.executionStatus).toBe("executing");
    scene.engine.start();
    await scene.clock.advance(MINUTE_MS);
    await scene.engine.stop();
    expect(await scene.recovery.candidate(candidateId)).toMatchObject({ executionStatus: "succeeded", owner: "operators" });
    expect((await scene.recovery.group(groupId))?.heldBy).toBe("operators");
    expect(await executed(scene, candidateId)).toHaveLength(1);
  });

  it("after an execution ended, before what came in meanwhile got its suggestion, is made up for", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    const other = dying(scene, (name) => name === "reopen");
    await scene.engine.execute(candidateId, ANN);
    await scene.clock.advance(1_000);
    await scene.die(["no answer within 7 ms"]);
    other.start();
    await scene.clock.advance(MINUTE_MS);
    const pending = (await scene.store.list({ topic: TOPIC, status: "pending", limit: 10 })).data;
    await scene.settle(
      pending.map(({ id }) => id),
      DELIVERED,
    );
    await scene.clock.advance(MINUTE_MS);
    expect(await scene.recovery.candidateOf(groupId)).toMatchObject({ candidateId, executionStatus: "succeeded" });
    scene.engine.start();
    await scene.clock.advance(2 * MINUTE_MS);
    await scene.engine.stop();
    expect(await scene.recovery.candidateOf(groupId)).toMatchObject({ round: 2, executionStatus: "pending" });
  });
});

describe("a process that is killed after an execution was cancelled", () => {
  it("is made up for too: what came in meanwhile gets its suggestion", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    const other = dying(scene, (name) => name === "reopen");
    const { redriveId } = await scene.engine.execute(candidateId, { ...ANN, redrive: { delayMs: 60 * MINUTE_MS } });
    await scene.clock.advance(1_000);
    await scene.die(["no answer within 7 ms"]);
    await scene.engine.cancelRedrive(redriveId ?? "", ANN);
    other.start();
    await scene.clock.advance(MINUTE_MS);
    expect(await scene.recovery.candidateOf(groupId)).toMatchObject({ candidateId, executionStatus: "skipped" });
    scene.engine.start();
    await scene.clock.advance(2 * MINUTE_MS);
    await scene.engine.stop();
    expect(await scene.recovery.candidateOf(groupId)).toMatchObject({ round: 2, executionStatus: "pending" });
  });
});

describe("a process that comes back late", () => {
  it("does not end what is unknown", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.engine.ingest(scene.report({ topic: TOPIC }), ANN);
    await scene.work();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    const other = scene.another();
    other.on("on_execution_start", () => new Promise(() => {}), { timeoutMs: 2 * MINUTE_MS });
    const late = other.execute(candidateId, ANN).catch((error: unknown) => error);
    await scene.clock.advance(MINUTE_MS + 1);
    expect(await scene.engine.steps.complete()).toBe(1);
    await scene.clock.advance(2 * MINUTE_MS);
    expect(await late).toMatchObject({ code: "wrong_state" });
    expect((await scene.recovery.candidate(candidateId))?.executionStatus).toBe("unknown");
  });

  it("an unknown one that a person ends makes room for the failures that came in since", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    const claim = { executionStatus: "executing", executionId: EXECUTION, executed: true, leaseMs: 1_000 } as const;
    await scene.recovery.write({ candidateId, patch: claim, provenance: [] });
    await scene.clock.advance(5_000);
    const ended = await Promise.all([scene.engine.steps.complete(), scene.another().steps.complete()]);
    expect(ended.sort(), "two that look at once end it once").toEqual([0, 1]);
    const lines = (await scene.engine.provenance({ candidateId }, { limit: 50 })).data;
    expect(lines.filter(({ eventType }) => eventType === "execution_unknown")).toHaveLength(1);
    await scene.die(["no answer within 7 ms"]);
    await scene.engine.update(candidateId, { ...ANN, executionStatus: "failed" });
    expect(await scene.recovery.candidateOf(groupId)).toMatchObject({ round: 2, executionStatus: "pending" });
  });
});

describe("what an execution touches, and what it came to", () => {
  it("the messages that were seen and confirmed, not those that died since", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout(3);
    const seen = (await scene.store.list({ topic: TOPIC, limit: 10 })).data.map(({ id }) => id);
    scene.engine.on("on_execution_start", async () => void (await scene.die(["no answer within 7 ms", "no answer within 8 ms"])));
    const begun = scene.engine.execute(candidateId, { ...ANN, redrive: { confirm: 3 } });
    await scene.clock.advance(1);
    await begun;
    const [redrive] = (await scene.engine.redrives({ limit: 10 })).data;
    expect(redrive?.counts.selected).toBe(3);
    const items = (await scene.engine.redriveItems(redrive?.redriveId ?? "", { limit: 10 })).data;
    expect(new Set(items.map(({ messageId }) => messageId))).toEqual(new Set(seen));
  });

  it("attack 26: no more than 10,000 without the number that was seen, and with it only that number", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout(2);
    const { preview } = scene.recovery.redrives;
    let messages = 10_001;
    Object.assign(scene.recovery.redrives, {
      preview: async (select: Parameters<typeof preview>[0]) => ({ ...(await preview(select)), messages }),
    });
    const execute = (confirm?: number) => scene.engine.execute(candidateId, { ...ANN, ...(confirm && { redrive: { confirm } }) });
    for (const confirm of [undefined, 10_000, 2]) {
      await expect(execute(confirm)).rejects.toMatchObject({ code: "confirmation_needed", detail: { messages } });
    }
    expect(await scene.candidate()).toMatchObject({ executionStatus: "pending", executionId: null });
    expect((await scene.engine.redrives({ limit: 10 })).data).toEqual([]);
    expect(await execute(10_001)).toMatchObject({ executionStatus: "executing" });

    const enough = await createScene();
    const other = await enough.timeout(2);
    messages = 10_000;
    const real = enough.recovery.redrives.preview;
    Object.assign(enough.recovery.redrives, {
      preview: async (select: Parameters<typeof real>[0]) => ({ ...(await real(select)), messages }),
    });
    expect(await enough.engine.execute(other.candidateId, ANN)).toMatchObject({ executionStatus: "executing" });
  });

  it("a second fallback of the same message is sent, not judged by the copy of the first that died", async () => {
    const scene = await createScene({ fallback: { kind: "http", url: "https://other.example" } });
    const carrier = carrierTopicName("fallback", TOPIC);
    const pending = async () => (await scene.store.list({ topic: carrier, status: "pending", limit: 10 })).data;
    const fallback = async (candidateId: number): Promise<void> => {
      await scene.engine.update(candidateId, { ...ANN, selectedAction: "fallback_model" });
      await scene.engine.approve(candidateId, ANN);
      await scene.engine.execute(candidateId, ANN);
      await scene.clock.advance(MINUTE_MS);
    };
    const { candidateId, groupId } = await scene.timeout(1);
    scene.engine.start();
    await fallback(candidateId);
    const [copy] = await pending();
    await scene.settle([copy?.id ?? ""], dead("the fallback is down", "HTTP_503"));
    await scene.clock.advance(MINUTE_MS);
    await fallback((await scene.engine.suggest(groupId, ANN)).candidateId);
    expect(await pending()).toHaveLength(1);
    await scene.engine.stop();
  });

  it("nothing known is not a success; watching is one at once", () => {
    const counts = { selected: 9, waiting: 0, sent: 9, healed: 0, failed: 0, skipped: 0 };
    expect(endOf({ mode: "replay", status: "done", counts })).toBe("failed");
    expect(endOf({ mode: "replay", status: "done", counts: { ...counts, sent: 8, healed: 1 } })).toBe("succeeded");
    expect(endOf({ mode: "watch", status: "running", counts: { ...counts, sent: 0, waiting: 9 } })).toBe("succeeded");
    const half = { ...counts, sent: 0, healed: 4, failed: 4 };
    expect(endOf({ mode: "replay", status: "done", counts: half }), "as many healed as failed").toBe("succeeded");
    expect(endOf({ mode: "replay", status: "done", counts: { ...half, failed: 5 } })).toBe("failed");
  });

  it("the record says how long it took, whichever process ended it", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    await scene.engine.execute(candidateId, ANN);
    expect((await executed(scene, candidateId))[0]?.durationMs).toEqual(expect.any(Number));
    scene.engine.start();
    const next = await scene.engine.suggest(groupId, ANN);
    await scene.engine.update(next.candidateId, { ...ANN, selectedAction: "skip_task" });
    await scene.engine.approve(next.candidateId, ANN);
    await scene.engine.execute(next.candidateId, ANN);
    await scene.clock.advance(MINUTE_MS);
    await scene.engine.stop();
    const [line] = await executed(scene, next.candidateId);
    expect(line?.durationMs).toBeGreaterThanOrEqual(0);
    expect(line?.durationMs).toBeLessThan(MINUTE_MS);
  });
});

describe("the next round after an execution", () => {
  const at = (ms: number): Date => new Date(ms);
  const ENDED = {
    candidateId: 7,
    groupId: 1,
    decision: "approved",
    executionStatus: "succeeded",
    executedAt: at(1_000),
    executionResult: null,
  };
  const GROUP = {
    groupId: 1,
    mergedInto: null,
    openMessages: 2,
    openReports: 0,
    resolvedAt: null,
    regressedAt: null,
    lastAt: at(1_001),
  };

  it.each<[string, Partial<Group>, Partial<Candidate>, Partial<Candidate>, boolean]>([
    ["a failure came in after it began", {}, {}, {}, true],
    ["the last failure is the one it began with", { lastAt: at(1_000) }, {}, {}, false],
    ["nothing lies open any more", { openMessages: 0 }, {}, {}, false],
    ["only what others reported lies open", { openMessages: 0, openReports: 1 }, {}, {}, true],
    ["the group is resolved", { resolvedAt: at(1_000) }, {}, {}, false],
    ["the group is part of another", { mergedInto: 9 }, {}, {}, false],
    ["a later round is there, also when that has ended", {}, {}, { candidateId: 8 }, false],
    ["nobody knows yet what became of it", {}, {}, { executionStatus: "unknown" }, false],
    ["it never began", {}, { executedAt: null }, {}, false],
    ["a person cancelled it", { lastAt: at(1_000) }, {}, { executionResult: '{"redrive_status":"cancelled"}' }, true],
    ["it ended as planned", { lastAt: at(1_000) }, {}, { executionResult: '{"redrive_status":"done"}' }, false],
  ])("where %s", async (_what, group, ended, latest, expected) => {
    let reopened = 0;
    const recovery = {
      group: async () => ({ ...GROUP, ...group }) as Group,
      candidateOf: async () => ({ ...ENDED, ...latest }) as Candidate,
      reopen: async () => {
        reopened++;
        return ENDED as Candidate;
      },
    };
    expect(await reopenIfLeft({ recovery, ids: () => "" }, { ...ENDED, ...ended } as Candidate)).toBe(expected);
    expect(reopened).toBe(expected ? 1 : 0);
  });
});
