/**
 * Short histories of twenty seeds: every invariant holds after each step and at the end, and a seed is one history to the byte.
 */
import { describe, expect, it } from "vitest";
import { type History, playHistory, simulate } from "./simulate.ts";

const SOAK = process.env.MAKEGOOD_SOAK === "1";
const STEPS = SOAK ? 200_000 : 4_000;
const SEEDS = Array.from({ length: process.env.MAKEGOOD_QUICK === "1" ? 4 : 20 }, (_, i) => i + 1);

/** What a person needs to play it again. */
const told = (failed: History | null): string | null =>
  failed && `history seed ${failed.seed}, ${JSON.stringify(failed.failure)}\n${failed.tail.slice(-20).join("\n")}`;

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
