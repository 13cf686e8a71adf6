/**
 * AUD-14, DA-27: limits that hold over all processes. Two real workers on one store, a real receiver that counts: no window has more than the
 * rate and its burst, no moment more attempts than the total, and what a killed worker had comes back. `npm run soak:limits` measures them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, type Makegood, topic } from "../../src/index.ts";
import { burstOf } from "../../src/message/rate.ts";
import { type Process, startCli, until } from "../support/processes.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { STAGES, type Stage } from "../support/stages.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const RATE = soak ? 50 : 25;
const TOTAL = 4;
const SECONDS = soak ? 15 : 4;

/** The most that arrived in any `ms`. */
function mostWithin(times: readonly number[], ms: number): number {
  let most = 0;
  let from = 0;
  for (let to = 0; to < times.length; to++) {
    while ((times[to] as number) - (times[from] as number) > ms) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

describe.each(Object.entries(STAGES))("two workers on %s", (name, open) => {
  let stage: Stage;
  let mg: Makegood;
  let rated: Receiver;
  let bounded: Receiver;
  let workers: Process[];
  let env: Record<string, string>;

  beforeAll(async () => {
    rated = await startReceiver();
    bounded = await startReceiver({ status: 200, afterMs: 150 });
    stage = await open();
    const sink = (receiver: Receiver) => ({ kind: "http", url: receiver.url }) as const;
    mg = await createMakegood({
      store: stage.store,
      recovery: false,
      topics: [
        topic("limit/rate", { sink: sink(rated), ratePerSecond: RATE, timeoutMs: 1_000, leaseMs: 2_000 }),
        topic("limit/total", { sink: sink(bounded), concurrencyTotal: TOTAL, timeoutMs: 1_000, leaseMs: 3_000 }),
      ],
    });
    env = { ...stage.env, MAKEGOOD_POLL_MS: "200" };
    workers = await Promise.all([startCli(["work"], env), startCli(["work"], env)]);
  });
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.end("SIGKILL")));
    await mg.close();
    await stage.drop();
    await rated[Symbol.asyncDispose]();
    await bounded[Symbol.asyncDispose]();
  });

  it("keep the rate and the total together, and spend no attempt on waiting; a killed one's places come back", async () => {
    const batch = (count: number) => Array.from({ length: count }, (_, n) => ({ payload: { n } }));
    await mg.enqueueMany("limit/rate", batch(RATE * (SECONDS + 4)));
    await mg.enqueueMany("limit/total", batch(1_000));
    await until("the first arrived", async () => rated.arrivals.length > 0 && bounded.arrivals.length > 0, 30_000);
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 1_000));

    const times = rated.arrivals.map(({ atMs }) => atMs);
    // What is allotted begins up to half a second later (5 % of 10 s); a busy machine may be as late again in noticing an arrival.
    for (const ms of [3_000, SECONDS * 1_000]) {
      expect(mostWithin(times, ms)).toBeLessThanOrEqual((RATE * (ms + 1_000)) / 1_000 + RATE);
    }
    const steady = times.filter((ms) => ms >= (times[0] as number) + 2_000 && ms < (times[0] as number) + 12_000).length / 10;
    if (soak) {
      process.stdout.write(
        `DA-27 ${name}: ${RATE} a second, burst ${burstOf(RATE)}: at most ${mostWithin(times, 10_000)} within 10 s, ${steady} a second from ` +
          `the third second on; ${TOTAL} at once: at most ${bounded.openMax}\n`,
      );
      expect(mostWithin(times, 10_000)).toBeLessThanOrEqual(RATE * 10 * 1.05 + burstOf(RATE));
      expect(steady).toBeGreaterThanOrEqual(RATE * 0.95);
    }
    // Most of the rate is used, also on a machine that is busy.
    expect(times.length).toBeGreaterThan((RATE * SECONDS) / 2);
    expect(new Set(rated.arrivals.map(({ attempt }) => attempt))).toEqual(new Set([1]));
    expect(bounded.openMax).toBe(TOTAL);

    // Both, because only one of them may have had places.
    await Promise.all(workers.map((worker) => worker.end("SIGKILL")));
    await until("nothing is open", () => bounded.open === 0);
    expect(await stage.store.topics.occupy("a stranger", [{ topic: "limit/total", total: TOTAL, wants: 1 }], 100)).toEqual([0]);
    workers = [await startCli(["work"], env)];
    await until("all places are used again", () => bounded.open === TOTAL, 40_000);
    expect(bounded.openMax).toBe(TOTAL);
  }, 90_000);
});
