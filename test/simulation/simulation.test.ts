/**
 * Short histories of twenty seeds and those in which the simulation itself was wrong: every invariant holds after each step and at the end, and
 * a seed is one history to the byte.
 */
import { describe, expect, it } from "vitest";
import { type Action, EVERYBODY, type Sent, TOPICS } from "./actions.ts";
import { CALM } from "./faulty-store.ts";
import { type History, playHistory, simulate } from "./simulate.ts";

const SOAK = process.env.MAKEGOOD_SOAK === "1";
const STEPS = SOAK ? 200_000 : 4_000;
const SEEDS = Array.from({ length: process.env.MAKEGOOD_QUICK === "1" ? 4 : 20 }, (_, i) => i + 1);

/** What a person needs to play it again. */
const told = (failed: History | null): string | null =>
  failed && `history seed ${failed.seed}, ${JSON.stringify(failed.failure)}\n${failed.tail.slice(-20).join("\n")}`;

const one = (n: number, more: Partial<Sent> = {}): Sent => ({
  ...{ n, do: "o", keyed: true, tenant: null, orderingKey: null, delayMs: 0, priority: 0 },
  ...more,
});

/** Histories in which the simulation found fault with what was right. */
const ONCE_BROKEN: readonly (readonly [what: string, seed: number, actions: readonly Action[]])[] = [
  [
    "a dead letter that went up from the secondary store is not waited for",
    1_169_735_409,
    [
      { afterMs: 0, kind: "redefine", topic: TOPICS.plain, attemptsMax: 2, leaseMs: 2_000 },
      // The secondary store is away for the first twelve seconds.
      { afterMs: 13_000, kind: "outage", topic: TOPICS.plain, ms: 10_000 },
      { afterMs: 0, kind: "faults", slot: EVERYBODY, ms: 10_000, faults: { ...CALM, before: 1 } },
      { afterMs: 100, kind: "send", slot: 0, how: "deliver", topic: TOPICS.plain, sent: [one(1)] },
    ],
  ],
  [
    "what deliver() has failed with waits by its own rules, also when it was given to enqueue() as well",
    722_157_652,
    [
      { afterMs: 368, kind: "send", slot: 2, how: "deliver", topic: TOPICS.limited, sent: [one(21, { do: "Hd" })] },
      { afterMs: 237, kind: "again", slot: 3, n: 21, changed: false },
    ],
  ],
  [
    "what is sent again has the key that it was sent with",
    3_361_391_347,
    [
      { afterMs: 721, kind: "send", slot: 0, how: "deliver", topic: TOPICS.keyed, sent: [one(23, { orderingKey: "o4" })] },
      { afterMs: 2_279, kind: "send", slot: 3, how: "one", topic: TOPICS.holds, sent: [one(60, { keyOf: 23 })] },
      { afterMs: 4_548, kind: "again", slot: 0, n: 60, changed: false },
    ],
  ],
];

describe("the simulation", () => {
  it.each(SEEDS)(
    "seed %i keeps every invariant",
    async (seed) => {
      const { failed, steps, counts } = await simulate(seed, STEPS);
      expect(told(failed)).toBeNull();
      expect(steps).toBeGreaterThan(STEPS / 2);
      expect(counts.accepted).toBeGreaterThan(20);
      expect(counts.calls).toBeGreaterThan(20);
    },
    600_000,
  );

  it.each(ONCE_BROKEN)(
    "keeps every invariant: %s",
    async (_what, seed, actions) => {
      const history = await playHistory({ seed, actions });
      expect(told(history.failure && history)).toBeNull();
      expect(history.actions).toHaveLength(actions.length);
    },
    60_000,
  );

  it("plays a seed as the same history, to the byte, and another seed as another", async () => {
    const [once, again, other] = [await simulate(5, STEPS), await simulate(5, STEPS), await simulate(6, STEPS)];
    expect(again.digest).toBe(once.digest);
    expect(again.steps).toBe(once.steps);
    expect(other.digest).not.toBe(once.digest);
  }, 600_000);

  it("plays what was done in a history again from its list", async () => {
    const history = await playHistory({ seed: 3, stormSteps: 500 });
    const again = await playHistory({ seed: 3, actions: history.actions });
    expect(again.digest).toBe(history.digest);
  }, 60_000);
});
