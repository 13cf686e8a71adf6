/**
 * After a success of a probe more are tried, until enough went through or five in a row did not. What was not tried decides nothing: a lane that
 * others emptied does not use up the right to try, and a breaker does not close on those that failed a moment ago.
 */
import { describe, expect, it } from "vitest";
import { createMemoryStore, type Outcome, topic } from "../../../src/index.ts";
import type { BreakerState } from "../../../src/message/topic.ts";
import { UnderWay } from "../../../src/platform/under-way.ts";
import { Breaker, type BreakerDeps } from "../../../src/worker/breaker/breaker.ts";
import { SeededRandom } from "../../simulation/seeded-random.ts";
import { World } from "../../simulation/world.ts";
import { fastClock, pause, setUp, until, wrap } from "./support.ts";

const DOWN: Outcome = { kind: "retry", code: "http_503", error: "down" };
const OPEN: BreakerState = { state: "open", probeInMs: 0, trips: 1, reason: "down", tenants: [] };

/** An open breaker on a clock that is moved by hand. */
function opened() {
  const world = new World();
  const startMs = world.nowMs;
  const entry = { record: { breaker: OPEN }, seenMs: 0 };
  const clock = { wallMs: () => world.nowMs, monotonicMs: () => world.nowMs, after: world.after.bind(world) };
  const deps = { clock, random: new SeededRandom(1), events: { emit: () => {} }, changed: () => {}, calls: new UnderWay() };
  const topics = { reset: async () => {} };
  const breaker = new Breaker("a/b", { ...deps, topics, owner: "me", entry: () => entry } as unknown as BreakerDeps);
  const goTo = async (ms: number): Promise<void> => {
    let there = false;
    world.after(startMs + ms - world.nowMs, () => {
      there = true;
    });
    while (!there) await world.step();
  };
  const fails = (id: string): void => breaker.failed({ id, tenantId: null, first: true }, world.nowMs, "down");
  return { breaker, goTo, fails, now: () => world.nowMs, isOpen: () => breaker.heldAs(null) === null };
}

describe("after a success of a probe", () => {
  it("it closes when nothing was tried for a second", async () => {
    const { breaker, goTo, now, isOpen } = opened();
    breaker.proved(null, now());
    await goTo(999);
    expect(isOpen()).toBe(true);
    await goTo(1_001);
    expect(isOpen()).toBe(false);
  });

  it("it does not close on what failed a moment ago, and five in a row end the chain", async () => {
    const { breaker, goTo, fails, now, isOpen } = opened();
    breaker.proved(null, now());
    for (const [i, atMs] of [400, 800, 1_200, 1_600, 2_000].entries()) {
      await goTo(atMs);
      expect(isOpen()).toBe(true);
      fails(`m${i}`);
    }
    await goTo(10_000);
    expect(isOpen()).toBe(true);
  });

  it("it closes a second after the last of fewer failures: they may be the messages' own", async () => {
    const { breaker, goTo, fails, now, isOpen } = opened();
    breaker.proved(null, now());
    await goTo(900);
    fails("m1");
    await goTo(1_800);
    expect(isOpen()).toBe(true);
    await goTo(1_901);
    expect(isOpen()).toBe(false);
  });

  it("what was to be tried and did not come may be tried instead, while the chain goes on", async () => {
    const { breaker, goTo, fails, now } = opened();
    breaker.proved(null, now());
    expect(breaker.room(now(), null, false)).toBe(2);
    breaker.take(null, 2);
    breaker.giveBack(null, 2);
    expect(breaker.room(now(), null, false)).toBe(2);
    breaker.take(null, 2);
    for (let i = 0; i < 5; i++) fails(`m${i}`);
    breaker.giveBack(null, 2);
    expect(breaker.room(now(), null, false)).toBe(0);
    await goTo(2_000);
    expect(breaker.room(now(), null, false)).toBe(0);
  });

  it("a lane that another process emptied does not end it: the next five are tried without a new grant of the store", async () => {
    const clock = fastClock(10);
    const inner = createMemoryStore({ clock });
    const did: string[] = [];
    let answers: "down" | "once" = "down";
    let empty = false;
    const probe: typeof inner.topics.probe = async (...args) => {
      const granted = await inner.topics.probe(...args);
      if (granted) did.push("grant");
      return granted;
    };
    const store = wrap(inner, {
      topics: Object.assign(Object.create(inner.topics), { probe }),
      claim: async (request) => {
        if (!empty || request.lanes.every(({ from }) => from === undefined)) return inner.claim(request);
        empty = false;
        did.push("empty");
        return [];
      },
    });
    const deliver = async (): Promise<Outcome> => {
      await pause(1);
      const lives = answers === "once";
      answers = "down";
      if (lives) empty = true;
      did.push(lives ? "lives" : "down");
      return lives ? { kind: "delivered" } : DOWN;
    };
    const down = topic("a/down", { sink: { kind: "http", deliver }, retry: { attemptsMax: 20, baseMs: 60_000, maxMs: 60_000 } });
    const { mg, of } = await setUp([down], { clock, store, concurrency: 5 });
    const tenants = Array.from({ length: 10 }, (_, t) => `t${t}`);
    await mg.enqueueMany(
      down,
      tenants.flatMap((tenantId) => Array.from({ length: 20 }, (_, n) => ({ payload: n, tenantId }))),
    );
    mg.work();
    await until(() => did.includes("grant"));
    await pause(50);
    answers = "once";
    await until(() => did.includes("empty"));
    const at = did.indexOf("empty");
    await until(() => did.length >= at + 6);
    expect(did.slice(at, at + 6)).toEqual(["empty", "down", "down", "down", "down", "down"]);
    expect(of("breaker").some(({ state }) => state === "closed")).toBe(false);
    await mg.close();
  });
});
