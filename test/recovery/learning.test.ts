/**
 * What is learned from executions, on PostgreSQL and through the front door: receivers that fail, people who repair them, redrives, and what
 * is suggested afterwards.
 */
import { afterAll, describe, expect, it } from "vitest";
import { createMakegood, type MakegoodOptions, reject, topic } from "../../src/index.ts";
import { systemRandom } from "../../src/platform/random.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { dropSchema, openStore } from "../support/postgres.ts";
import { pause } from "../unit/delivery/support.ts";

const OPS = { actor: "ops", actorType: "human" } as const;
const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
});

async function until(what: () => Promise<boolean>, ms = 20_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await what())) {
    if (performance.now() > end) expect.fail(`not within ${ms} ms: ${what.toString()}`);
    await pause(20);
  }
}

interface More {
  readonly afterRepair?: string;
  readonly includeHeld?: boolean;
}

interface Stage {
  readonly recovery: Recovery;
  /** What the receiver of a topic answers; null: it delivers. */
  readonly answers: Map<string, { readonly code: string; readonly text: string } | null>;
  /** Lets `count` messages die and waits until they are in a group with a suggestion. */
  die(name: string, count: number): Promise<number>;
  /** A person redrives a group and waits for its end. */
  redrive(groupId: number, more?: More): Promise<{ readonly healed: number; readonly failed: number }>;
  /** Waits for the end of a redrive that was started or resumed. */
  ended(redriveId: string): Promise<{ readonly healed: number; readonly failed: number }>;
  /** A person gives a topic another definition. */
  redefine(name: string): Promise<void>;
}

async function onStage(work: (stage: Stage) => Promise<void>, options: Partial<MakegoodOptions> = {}): Promise<void> {
  const store = await openStore();
  schemas.push(store.schema);
  const answers: Stage["answers"] = new Map();
  const topics = ["a", "b", "c"].map((name) =>
    topic<{ n: number }>(`shop/${name}`, {
      sink: () => {
        const answer = answers.get(name) ?? null;
        return answer === null ? undefined : reject(answer.text, { code: answer.code });
      },
    }),
  );
  const mg = await createMakegood({ store, topics, random: systemRandom, pollMs: 20, ...options });
  const { recovery } = mg;
  if (recovery === null) throw new Error("this store has a place for recovery");
  let sent = 0;
  const openOf = async (name: string) => {
    const { data } = await recovery.groups({ limit: 100 });
    return data.filter(
      ({ topic: of, openMessages, errorCode }) =>
        of === `shop/${name}` && openMessages > 0 && errorCode === answers.get(name)?.code,
    );
  };
  const ended: Stage["ended"] = async (redriveId) => {
    await until(async () => ["done", "stopped"].includes((await recovery.redrive(redriveId)).status));
    return (await recovery.redrive(redriveId)).counts;
  };
  try {
    mg.work();
    await work({
      recovery,
      answers,
      async die(name, count) {
        const to = topics.find((each) => each.name === `shop/${name}`);
        if (to === undefined) throw new Error(`no topic ${name}`);
        await mg.enqueueMany(
          to,
          Array.from({ length: count }, () => ({ payload: { n: sent++ }, key: `k-${sent}` })),
        );
        await until(async () => (await openOf(name)).some(({ openMessages }) => openMessages >= count));
        const groupId = (await openOf(name))[0]?.groupId as number;
        await until(async () => (await recovery.group(groupId)).candidate?.evaluationStatus === "evaluated");
        return groupId;
      },
      async redrive(groupId, { includeHeld, ...more } = {}) {
        const select = { groupId, includeHeld };
        const { redrive } = await recovery.startRedrive({ select, reason: "try again", ...more }, OPS);
        return ended(redrive.redriveId);
      },
      ended,
      async redefine(name) {
        const record = await store.topics.get(`shop/${name}`);
        if (record === null) throw new Error(`no topic ${name}`);
        await store.topics.put({ ...record, leaseMs: record.leaseMs + 1_000 }, record.source);
      },
    });
  } finally {
    await mg.close();
    await store.close();
  }
}

const EXPIRED = { code: "http_401", text: "the receiver answered 401: the token has expired" };
const LATE = { code: "TIMEOUT", text: "no answer in 5000 ms" };
const retry = async (recovery: Recovery) =>
  (await recovery.actions()).find(({ actionCode }) => actionCode === "retry_exponential");

/** The retry that healed so many was not credited, and the next suggestion says why. */
async function expectRepair(stage: Stage, groupId: number, why: string, { healed = 6, failures = 0 } = {}): Promise<void> {
  const { recovery, answers, die } = stage;
  const name = (await recovery.group(groupId)).group.topic.replace("shop/", "");
  expect(await retry(recovery)).toMatchObject({ successes: 0, failures });
  answers.set(name, LATE);
  expect(await die(name, 6)).toBe(groupId);
  const { evaluation } = await recovery.suggest(groupId, OPS);
  const note = `retry_exponential after a repair healed ${healed} of ${healed} messages in 1 execution (${why}`;
  expect(JSON.parse(evaluation ?? "{}").notes).toContainEqual(expect.stringContaining(note));
}

describe("what is learned", { timeout: 60_000 }, () => {
  it("R1: what healed after a person's repair is not credited to the retry alone", async () => {
    await onStage(async ({ recovery, answers, die, redrive }) => {
      answers.set("a", EXPIRED);
      const groupId = await die("a", 12);
      const before = (await recovery.group(groupId)).candidate;
      answers.set("a", null);
      expect(await redrive(groupId)).toMatchObject({ healed: 12, failed: 0 });
      answers.set("a", EXPIRED);
      expect(await die("a", 12)).toBe(groupId);
      const again = await recovery.suggest(groupId, OPS);
      expect(again.selectedAction).toBe(before?.selectedAction);
      expect(again.selectedAction).not.toBe("retry_exponential");
      const { notes, alternatives } = JSON.parse(again.evaluation ?? "{}");
      expect(notes).toContainEqual(
        expect.stringMatching(/^retry_exponential after a repair healed 12 of 12 messages in 1 execution/),
      );
      expect(alternatives.filter((each: { action: string }) => each.action === "retry_exponential")).toEqual([]);
      expect(await retry(recovery)).toMatchObject({ successes: 0, failures: 0 });
    });
  });

  it("R1: a repair that a person names counts for any cause", async () => {
    await onStage(async ({ recovery, answers, die, redrive }) => {
      answers.set("a", LATE);
      const groupId = await die("a", 6);
      answers.set("a", null);
      await redrive(groupId, { afterRepair: "moved it to another host" });
      expect(await retry(recovery)).toMatchObject({ successes: 0, failures: 0 });
      answers.set("a", LATE);
      await die("a", 6);
      const { evaluation } = await recovery.suggest(groupId, OPS);
      expect(JSON.parse(evaluation ?? "{}").notes).toContainEqual(expect.stringContaining("(moved it to another host)"));
    });
  });

  it("R1: a topic whose definition was changed after the deaths was repaired", async () => {
    await onStage(async (stage) => {
      const { answers, die, redrive, redefine } = stage;
      answers.set("a", LATE);
      const groupId = await die("a", 6);
      await redefine("a");
      answers.set("a", null);
      await redrive(groupId);
      await expectRepair(stage, groupId, "topic shop/a was changed");
      // What died after the change was not repaired by it.
      answers.set("a", null);
      expect(await redrive(groupId)).toMatchObject({ healed: 6, failed: 0 });
      expect(await retry(stage.recovery)).toMatchObject({ successes: 1, failures: 0 });
    });
  });

  it("R1: a group that was held for a person was repaired, whether the hold was taken off before or not", async () => {
    await onStage(async (stage) => {
      const { recovery, answers, die, redrive } = stage;
      for (const name of ["a", "b"]) {
        answers.set(name, LATE);
        const groupId = await die(name, 6);
        const candidateId = (await recovery.group(groupId)).candidate?.candidateId as number;
        await recovery.update(candidateId, { ...OPS, selectedAction: "manual_intervention", reason: "a person must look" });
        await recovery.execute(candidateId, OPS);
        await until(async () => (await recovery.group(groupId)).group.heldBy !== null);
        if (name === "b") await recovery.release(groupId, OPS);
        answers.set(name, null);
        await redrive(groupId, { includeHeld: true });
        await expectRepair(stage, groupId, "the group was held");
      }
    });
  });

  it("R1: who resumes a redrive that stopped says what was repaired; the canary that failed before stays the retry's", async () => {
    await onStage(async (stage) => {
      const { recovery, answers, die, ended } = stage;
      answers.set("a", LATE);
      const groupId = await die("a", 12);
      const { redrive } = await recovery.startRedrive({ select: { groupId }, reason: "try again" }, OPS);
      expect(await ended(redrive.redriveId)).toMatchObject({ healed: 0, failed: 5 });
      answers.set("a", null);
      await recovery.resumeRedrive(redrive.redriveId, { ...OPS, afterRepair: "gave it more room" });
      expect(await ended(redrive.redriveId)).toMatchObject({ healed: 7, failed: 5 });
      await expectRepair(stage, groupId, "gave it more room", { healed: 7, failures: 1 });
    });
  });

  it("R2: an execution is one observation, whatever its size: a failed canary weighs as much as a whole success", async () => {
    await onStage(async ({ recovery, answers, die, redrive }) => {
      answers.set("a", LATE);
      const groupId = await die("a", 60);
      expect(await redrive(groupId)).toMatchObject({ healed: 0, failed: 5 });
      expect(await retry(recovery)).toMatchObject({ successes: 0, failures: 1 });
      answers.set("a", null);
      expect(await redrive(groupId)).toMatchObject({ healed: 60, failed: 0 });
      const { successes = 0, failures = 0 } = (await retry(recovery)) ?? {};
      expect(successes).toBeCloseTo(1, 3);
      expect(failures).toBeCloseTo(1, 3);
    });
  });

  it("R3: one outage leaves the suggestions of other topics as they are", async () => {
    await onStage(async ({ recovery, answers, die, redrive }) => {
      answers.set("a", LATE);
      const groupId = await die("a", 12);
      await redrive(groupId);
      await redrive(groupId);
      answers.set("b", LATE);
      const other = (await recovery.group(await die("b", 3))).candidate;
      expect(other).toMatchObject({ selectedAction: "retry_exponential", confidence: 0.85 });
      const own = await recovery.suggest(groupId, OPS);
      expect(JSON.parse(own.evaluation ?? "{}").recommended?.confidence ?? 0).toBeLessThan(0.8);
    });
  });

  const dieOfKinds = async ({ answers, die }: Stage, kinds: number): Promise<void> => {
    for (let kind = 0; kind < kinds; kind++) {
      // Another length each time: so they stay kinds of their own.
      answers.set("a", { code: "TIMEOUT", text: `the answer came${" much".repeat(kind)} too late` });
      await die("a", 1);
    }
  };
  const automatic = async (recovery: Recovery) => {
    const all = async () => (await recovery.candidates({ limit: 100 })).data.map(({ candidate }) => candidate);
    await until(async () => (await all()).every(({ executionStatus }) => executionStatus !== "pending"));
    return (await all()).map((candidate) => ({ ...candidate, evaluated: JSON.parse(candidate.evaluation ?? "{}") }));
  };

  it("R13: what runs by itself explores among safe, automated actions, on record; the suggestion stays what it is", async () => {
    const settings = { autoExecute: true, autoExecutionsPerHour: 1_000, autoExploreShare: 1 };
    await onStage(
      async (stage) => {
        await dieOfKinds(stage, 25);
        const explored = (await automatic(stage.recovery)).filter(({ evaluated }) => evaluated.explored !== undefined);
        expect(explored.length).toBeGreaterThan(0);
        for (const { candidateId, selectedAction, evaluated } of explored) {
          expect(selectedAction).toBe("notify_ops");
          expect(evaluated.recommended_action).toBe("retry_exponential");
          const { data: lines } = await stage.recovery.provenance({ candidateId }, { limit: 100 });
          const began = lines.find(({ eventType }) => eventType === "executing");
          expect(JSON.parse(began?.details ?? "{}")).toMatchObject({ explored_instead_of: "retry_exponential" });
        }
      },
      { recovery: settings },
    );
  });

  it("R13: what cannot be tried for a group leaves it the suggestion", async () => {
    const settings = { autoExecute: true, autoExecutionsPerHour: 1_000, autoExploreShare: 1 };
    await onStage(
      async ({ recovery }) => {
        const condition = { code: { is: ["DISK_FULL"] } };
        const rule = {
          id: "tell_at_once",
          name: "tell",
          priority: 95,
          enabled: true,
          condition,
          action: "notify_ops",
          score: 0.9,
        };
        await recovery.putRule("tell_at_once", JSON.stringify(rule), 0, OPS);
        const nothing = {
          failureMatchId: null,
          idempotencyKey: null,
          sink: null,
          stackTrace: null,
          skillId: null,
          tenantId: null,
        };
        for (let n = 0; n < 25; n++) {
          const said = {
            errorCode: "DISK_FULL",
            errorMessage: "no space left",
            topic: `disk/of-${n}`,
            failurePayload: `{"n":${n}}`,
          };
          await recovery.ingest({ ...nothing, ...said, source: "api", enqueueEvaluation: true }, OPS);
        }
        // Nothing can be sent again there, so a retry cannot be tried.
        await until(async () => (await automatic(recovery)).every(({ executionStatus }) => executionStatus === "succeeded"));
        expect(await automatic(recovery)).toHaveLength(25);
      },
      { recovery: settings },
    );
  });

  it("R13: exploring keeps to its share of what runs by itself in a day", async () => {
    await onStage(
      async (stage) => {
        await dieOfKinds(stage, 8);
        // A tenth of nine or fewer is less than one.
        expect((await automatic(stage.recovery)).filter(({ evaluated }) => evaluated.explored !== undefined)).toEqual([]);
      },
      { recovery: { autoExecute: true, autoExecutionsPerHour: 1_000 } },
    );
  });
});
