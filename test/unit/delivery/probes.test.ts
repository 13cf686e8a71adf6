/**
 * N1: good messages between two ends of poison. Neither end of a lane, nor of the line of lanes, shows them to a probe, so most probes begin at
 * a part that is drawn by chance; where one went through, the next begin.
 */
import { describe, expect, it } from "vitest";
import { type Outcome, type Sink, topic } from "../../../src/index.ts";
import { Spots } from "../../../src/worker/breaker/spots.ts";
import { SeededRandom } from "../../simulation/seeded-random.ts";
import { fastClock, pause, setUp, until } from "./support.ts";

interface Sent {
  readonly bad: boolean;
  readonly tenantId?: string;
  readonly orderingKey?: string;
}

const BAD: Outcome = { kind: "retry", code: "http_500", error: "bad" };

/** A receiver that refuses what is bad, and counts. */
function receiver() {
  const state = { bad: 0, good: 0, badBeforeGood: 0 };
  const sink: Sink = {
    kind: "http",
    deliver: async ({ payload }) => {
      await pause(1);
      const { bad } = JSON.parse(payload) as Sent;
      if (bad) state.bad++;
      else if (state.good++ === 0) state.badBeforeGood = state.bad;
      return bad ? BAD : { kind: "delivered" };
    },
  };
  return { state, sink };
}

describe("where probes are taken from", () => {
  /** Of 400 poison messages, 100 good ones and 100 poison messages, in this order: how many probes until a good one. */
  function probesUntilGood(spots: Spots, random: SeededRandom): number {
    const waiting = [400, 100, 100].flatMap((count, part) => Array<boolean>(count).fill(part === 1));
    for (let probes = 1; ; probes++) {
      spots.move(random);
      const { from } = spots.now;
      const at = from === "oldest" ? 0 : from === "newest" ? waiting.length - 1 : Math.floor(from * waiting.length);
      if (waiting.splice(at, 1)[0]) return probes;
    }
  }

  it("with a sixth of what waits good, and none of it at an end, a good one is found within a handful of probes", () => {
    const found = Array.from({ length: 1_000 }, (_, seed) => probesUntilGood(new Spots(), new SeededRandom(seed)));
    found.sort((a, b) => a - b);
    expect(found[500]).toBeLessThanOrEqual(8);
    expect(found[950]).toBeLessThanOrEqual(30);
    // Either end comes first: most often one of them is good, and nothing is left to chance.
    expect(found[0]).toBeGreaterThan(2);
  });

  it("where one went through the next begins, then near it, and only then elsewhere", () => {
    const [spots, random] = [new Spots(), new SeededRandom(1)];
    probesUntilGood(spots, random);
    const { from } = spots.now;
    spots.won();
    spots.move(random);
    expect(spots.now).toEqual({ lane: "likeliest", from });
    for (let n = 0; n < 2; n++) {
      spots.move(random);
      expect(Math.abs(Number(spots.now.from) - Number(from))).toBeLessThan(0.1);
    }
    const after = Array.from({ length: 5 }, () => {
      spots.move(random);
      return spots.now.from;
    });
    expect(after.slice(0, 2)).toEqual(["newest", "oldest"]);
    expect(after.every((one) => typeof one !== "number" || (one >= 0 && one < 1))).toBe(true);
  });
});

describe("N1: poison before and after the good ones", () => {
  it.each<[string, (n: number) => Omit<Sent, "bad">]>([
    ["in one lane", () => ({})],
    ["with an order to keep", (n) => ({ orderingKey: `k${n}` })],
    ["of a tenant that is held alone", () => ({ tenantId: "sick" })],
    ["of tenants with one message each", (n) => ({ tenantId: `t${n}` })],
  ])("%s: the good ones are found", async (_, with_) => {
    const clock = fastClock(20);
    const { state, sink } = receiver();
    const ordering = with_(0).orderingKey === undefined ? "none" : "key";
    const mixed = topic("a/mixed", { sink, ordering, retry: { attemptsMax: 3, baseMs: 3_600_000, maxMs: 3_600_000 } });
    const { mg, of } = await setUp([mixed], { clock, concurrency: 5 });
    const sent = Array.from({ length: 400 }, (_, n) => ({ payload: { bad: n < 100 || n >= 300 }, ...with_(n) }));
    await mg.enqueueMany(mixed, sent);
    mg.work();
    await until(() => of("breaker").some(({ state: now }) => now === "open"));
    const burst = state.bad;
    await until(() => state.good > 0);
    // From the ends alone it would take more than 150. Half of what waits is good, so so many are not chance.
    expect(state.badBeforeGood - burst).toBeLessThan(40);
    await until(() => state.good >= 100);
    await mg.close();
  });
});
