/**
 * Dead letters on the stage's store, receivers that answer as a test says, and redrives over them: what takes a day takes no time.
 */
import type { Settlement } from "../../../src/message/settlement.ts";
import type { TopicDefinition } from "../../../src/message/topic.ts";
import type { Redrive } from "../../../src/recovery/redrive/redrive.ts";
import { createRedrives, type RedriveDeps } from "../../../src/recovery/redrive/redrives.ts";
import type { RedriveRunner } from "../../../src/recovery/redrive/runner.ts";
import { DELIVERED, dead, definition, newMessage } from "../../../src/testing/store-conformance/fixtures.ts";
import { createStage, type Stage } from "../stage.ts";

export const TOPIC = "billing/charge";
export const ANN = { actor: "ann", actorType: "human" } as const;

/** Each asks the store what a worker asks it. */
const STEPS_MAX = 60;

export type Answer = "delivered" | "dead" | "nothing";

/** A runner by itself: its jobs, and what follows when they end. */
export function startable(runner: RedriveRunner, maintain: Stage["maintain"]) {
  let running: ReturnType<Stage["maintain"]> | undefined;
  return {
    ...runner,
    start(): void {
      running ??= maintain(runner.jobs);
    },
    async stop(): Promise<void> {
      await running?.stop();
      running = undefined;
      await runner.release();
    },
  };
}

export type Scene = Awaited<ReturnType<typeof createScene>>;

export async function createScene({ topics = [definition(TOPIC)] }: { readonly topics?: readonly TopicDefinition[] } = {}) {
  const { clock, store, recovery, events, heard, ids, maintain } = await createStage();
  for (const topic of topics) await store.topics.put(topic, "code");

  /** One process: the operations and its runner. `lives.on = false`: it does nothing any more, as after kill -9. */
  function process(change: Partial<RedriveDeps> = {}) {
    const lives: { on: boolean } = { on: true };
    const redrives = new Proxy(recovery.redrives, {
      get: (target, name) => {
        const call = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) => (lives.on ? call(...args) : new Promise(() => {}));
      },
    }) as RedriveDeps["recovery"]["redrives"];
    const made = createRedrives({
      recovery: { ...recovery, redrives },
      store,
      events,
      ids,
      clock,
      owner: `runner-${ids()}`,
      serves: () => true,
      checkPayload: () => {},
      ...change,
    });
    return { ...made, runner: startable(made.runner, maintain), lives };
  }

  /** Attempts whatever is due, as a worker would. */
  async function attempt(answer: (message: { readonly id: string; readonly topic: string }) => Answer): Promise<number> {
    let count = 0;
    for (;;) {
      const due = (await store.lanes()).filter(({ dueInMs }) => dueInMs <= 0);
      if (due.length === 0) return count;
      const lanes = due.map(({ lane }) => ({ lane, limit: 1_000 }));
      const claimed = await store.claim({ owner: "worker", leaseMs: 30_000, lanes });
      if (claimed.length === 0) return count;
      count += claimed.length;
      const settles = claimed.map(({ id, topic, claim, attempt }) => {
        const said = answer({ id, topic });
        const waits: Settlement = { kind: "hold", reason: "test", counted: false, outcome: "unknown", code: null, error: null };
        const settlement = said === "nothing" ? waits : said === "dead" ? dead() : DELIVERED;
        return { id, claim, attempt, durationMs: 1, settlement };
      });
      await store.settle(settles);
    }
  }

  return {
    clock,
    store,
    recovery,
    events,
    heard,
    ids,
    process,
    attempt,
    /** Dead letters of a topic, oldest first. */
    async die(count: number, fields: Parameters<typeof newMessage>[1] = {}): Promise<string[]> {
      const messages = Array.from({ length: count }, () => newMessage(ids(), { topic: TOPIC, ...fields }));
      for (let i = 0; i < count; i += 1_000) await store.enqueue(messages.slice(i, i + 1_000));
      const mine = new Set(messages.map(({ id }) => id));
      await attempt(({ id }) => (mine.has(id) ? "dead" : "nothing"));
      return messages.map(({ id }) => id);
    },
    /** Lets time pass in small steps, with workers that attempt what the runner sends. */
    async pass(ms: number, answer: Parameters<typeof attempt>[0] = () => "delivered", stepMs?: number): Promise<void> {
      const step = stepMs ?? Math.max(50, Math.ceil(ms / STEPS_MAX));
      for (let passed = 0; passed < ms; passed += step) {
        await clock.advance(step);
        await attempt(answer);
      }
    },
    async counts(redrive: Pick<Redrive, "redriveId">) {
      const found = await recovery.redrives.get(redrive.redriveId);
      if (!found) throw new Error(`no redrive ${redrive.redriveId}`);
      return { status: found.status, reason: found.statusReason, ...found.counts };
    },
  };
}
