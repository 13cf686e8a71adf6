/**
 * Everything that moves messages, at once: producers, workers, persons and retention, with passes of every reach beside them. None of them may report what is only on its way.
 */
import type { InterventionAction, NewMessage } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { ConservationReport, WithConservation } from "../../src/store/conservation.ts";
import type { Store } from "../../src/store/store.ts";
import { DELIVERED, dead, hold, KEYED, newMessage, PLAIN, RELEASE, retry } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { claimSome, MONEY } from "./cases.ts";

export const LOAD_MS = process.env.MAKEGOOD_SOAK ? 120_000 : 5_000;
const DAY = 24 * 3_600_000;
export const pick = <T>(of: readonly T[]): T => of[Math.floor(Math.random() * of.length)] as T;

type Kept = Store & WithConservation;

export interface Load {
  readonly stores: readonly [Kept, Kept, ...Kept[]];
  /** How many of them were accepted in the end. */
  enqueue(messages: readonly NewMessage[]): Promise<number>;
  /** Ids that persons change. */
  some(): Promise<readonly string[]>;
  /** What a person does besides. */
  also?(id: string): Promise<unknown>;
  /** What may keep a pass from its end. */
  readonly refusal?: RegExp | undefined;
  /** As long as the others run. */
  disturb?(running: () => boolean): Promise<void>;
}

export interface Loaded {
  readonly accepted: number;
  readonly retired: number;
  readonly refused: readonly unknown[];
  readonly reports: readonly ConservationReport[];
}

const ENDINGS: readonly (() => Settlement)[] = [
  ...[() => DELIVERED, () => DELIVERED, () => DELIVERED, () => retry(0), () => retry(0, true, 1)],
  ...[() => dead(), () => hold(), () => RELEASE],
];

function someMessages(make: () => string): NewMessage[] {
  return Array.from({ length: pick([1, 1, 30]) }, () => {
    const topic = pick([PLAIN, PLAIN, KEYED, MONEY]);
    const orderingKey = topic === KEYED ? pick(["x", "y", "z"]) : null;
    return newMessage(make(), { topic, tenantId: pick([null, "a"]), orderingKey, payload: '{"amount_micro":1.5}' });
  });
}

export async function loaded({ stores, enqueue, some, also, refusal, disturb }: Load): Promise<Loaded> {
  const [store, other] = stores;
  const until = systemClock.monotonicMs() + LOAD_MS;
  const running = (): boolean => systemClock.monotonicMs() < until;
  const clockOff = (days: number) => createIds({ ...systemClock, wallMs: () => systemClock.wallMs() + days * DAY });
  const [now, old, early] = [0, -4, 2].map(clockOff) as [() => string, () => string, () => string];
  const refused: unknown[] = [];
  const reports: ConservationReport[] = [];
  let accepted = 0;
  let retired = 0;

  async function produce(make: () => string): Promise<void> {
    // A day that retention has taken is not made again while attempts of what was kept of it are there.
    while (running() && (make !== old || retired === 0)) {
      try {
        const count = await enqueue(someMessages(make));
        accepted += count;
      } catch (thrown) {
        refused.push(thrown);
      }
    }
  }
  async function work(by: Store): Promise<void> {
    while (running()) {
      const claimed = await claimSome(by, 200);
      const part = claimed.filter(() => Math.random() < 0.95);
      for (const half of [part.slice(0, part.length / 2), part.slice(part.length / 2)])
        await by.settle(half.flatMap((one) => settles([one], pick(ENDINGS)())));
      if (claimed.length === 0) await sleep(systemClock, 5);
    }
  }
  async function persons(): Promise<void> {
    while (running()) {
      for (const id of await some()) {
        const action = pick<InterventionAction>(["replay", "replay", "resolve", "discard", "cancel", "reschedule"]);
        await store.intervene({ id, action, actor: "test", reason: null });
        await also?.(id);
      }
      await sleep(systemClock, 10);
    }
  }
  async function upkeep(): Promise<void> {
    while (running()) {
      await sleep(systemClock, Math.min(LOAD_MS / 3, 5_000));
      retired += await store.prune({ keptMs: 50, limit: 10_000 });
      const lost = await store.reclaim({ owner: "r", leaseMs: 10_000, limit: 100 });
      await store.settle(settles(lost, retry(0)));
    }
  }
  async function passes({ conservation }: Kept, reach: "slice" | "whole" | "full"): Promise<void> {
    // At least one, however busy the machine is.
    for (let ended = 0; running() || ended === 0; ) {
      try {
        await conservation.pass({ reach, ...(reach === "slice" ? { budgetMs: 100 } : {}) });
        reports.push(await conservation.conclude({}));
        ended++;
      } catch (thrown) {
        if (!refusal?.test(String(thrown))) throw thrown;
      }
    }
  }
  await Promise.all([
    ...[now, old, early].map(produce),
    ...stores.map(work),
    ...[persons(), upkeep(), disturb?.(running)],
    ...[passes(store, "slice"), passes(other, "whole"), passes(other, "full")],
  ]);
  return { accepted, retired, refused, reports };
}
