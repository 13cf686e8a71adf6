/**
 * N1, CON-12: an outage with a backlog, two worker processes at default settings on either store. Nobody is charged beyond what was under way
 * when it began, at most one probe a second is made by both together, and soon after the return the topic is at the rate that it has
 * without an outage. `npm run soak:outage` is the long form (ten minutes, 10,000 waiting) and prints the figures.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { createMakegood, type Makegood, topic } from "../../src/index.ts";
import type { Page, Store } from "../../src/store/store.ts";
import { startCli, until } from "../support/processes.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { STAGES } from "../support/stages.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const OUTAGE_S = Number(process.env.MAKEGOOD_OUTAGE_S ?? (soak ? 600 : 3));
const ALL = soak ? 10_000 : 1_000;
vi.setConfig({ testTimeout: 240_000 + OUTAGE_S * 1_000 });

/** Past the first rests: what is tried then is tried in between. */
const STAND_IN_S = soak ? 60 : 4;

const TOPIC = "outage/any";

async function send(mg: Makegood, prefix: string): Promise<void> {
  for (let from = 0; from < ALL; from += 1_000) {
    const some = Array.from({ length: 1_000 }, (_, n) => ({ payload: {}, key: `${prefix}-${from + n}` }));
    await mg.enqueueMany(TOPIC, some);
  }
}

/** When what has this prefix arrived, counted from a moment. */
const times = (receiver: Receiver, prefix: string, fromMs: number): number[] =>
  receiver.arrivals.filter(({ key }) => key.startsWith(prefix)).map(({ atMs }) => atMs - fromMs);

/** Messages a second while most of a backlog is worked off: its beginning and its end are no measure. */
function steadyRate(sorted: readonly number[]): number {
  const [from, to] = [Math.floor(sorted.length * 0.2), Math.floor(sorted.length * 0.8)];
  return ((to - from) * 1_000) / Math.max(1, Number(sorted[to]) - Number(sorted[from]));
}

/** The first moment at which as many arrived within the second before. */
function reachesAtMs(sorted: readonly number[], perSecond: number): number {
  const need = Math.ceil(perSecond);
  for (let to = need - 1; to < sorted.length; to++) {
    if (Number(sorted[to]) - Number(sorted[to - need + 1]) <= 1_000) return Number(sorted[to]);
  }
  return Number.POSITIVE_INFINITY;
}

const perSecond = (sorted: readonly number[]): number[] => {
  const counts: number[] = [];
  for (const ms of sorted) counts[Math.floor(ms / 1_000)] = (counts[Math.floor(ms / 1_000)] ?? 0) + 1;
  return Array.from(counts, (count) => count ?? 0);
};

async function chargedOf(store: Store): Promise<number[]> {
  const charged: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { data, nextCursor }: Page = await store.list({ topic: TOPIC, status: "pending", limit: 1_000, cursor });
    charged.push(...data.map(({ attempts }) => attempts));
    cursor = nextCursor;
  }
  return charged;
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;

describe.each(Object.entries(STAGES))("two processes on %s", (name, open) => {
  it("N1: after an outage the backlog is at full rate within seconds, and nobody was charged beyond what was under way", async () => {
    const receiver = await startReceiver();
    const stage = await open();
    const mg = await createMakegood({
      store: stage.store,
      recovery: false,
      topics: [topic(TOPIC, { sink: { kind: "http", url: receiver.url } })],
    });
    const workers = await Promise.all([startCli(["work"], stage.env), startCli(["work"], stage.env)]);
    /** A backlog without an outage: messages a second. */
    const drained = async (prefix: string): Promise<number> => {
      await stage.store.topics.pause(TOPIC, true);
      await send(mg, prefix);
      const all = receiver.effects.size + ALL;
      await stage.store.topics.pause(TOPIC, false);
      await until("all of a time without outage arrived", () => receiver.effects.size === all, 120_000);
      return steadyRate(times(receiver, prefix, 0));
    };
    try {
      const before = await drained("before");
      await receiver.down();
      await send(mg, "m");
      await until("the breaker opens", async () => (await stage.store.topics.get(TOPIC))?.breaker.state !== "closed");
      await sleep(OUTAGE_S * 1_000);
      const charged = await chargedOf(stage.store);
      const paid = charged.filter((attempts) => attempts > 0);
      expect(charged.length).toBe(ALL);
      // Two workers with fifty slots each had as many under way; a probe is charged to nobody.
      expect(paid.length).toBeLessThanOrEqual(110);
      expect(Math.max(...charged)).toBeLessThanOrEqual(1);

      await receiver.up();
      const backMs = performance.now();
      await until("all arrived", () => receiver.effects.size === 2 * ALL, 120_000);
      const after = times(receiver, "m", backMs);
      await until("the breaker is closed", async () => (await stage.store.topics.get(TOPIC))?.breaker.state === "closed");
      // Others may use the machine more at one time than at another: what it can do is measured before and after.
      const afterwards = await drained("after");
      const steady = Math.min(before, afterwards);
      const fullMs = reachesAtMs(after, 0.9 * steady);
      process.stdout.write(
        `N1 ${name}: ${ALL} waiting, ${OUTAGE_S} s away: ${paid.length} charged; without an outage ${Math.round(before)} a second before it, ` +
          `${Math.round(afterwards)} after it; first after ${seconds(Number(after[0]))}, nine tenths of the rate after ${seconds(fullMs)}, ` +
          `half of the messages after ${seconds(Number(after[ALL / 2]))}, the last after ${seconds(Number(after.at(-1)))}; ` +
          `each second: ${perSecond(after).join(" ")}\n`,
      );
      // The figure is the long form's: a thousand are gone before there is a rate to speak of.
      if (soak) expect(fullMs).toBeLessThan(5_000);
      else expect(after[ALL / 2]).toBeLessThan(20_000);
    } finally {
      await Promise.all(workers.map((worker) => worker.end("SIGKILL")));
      await mg.close();
      await receiver[Symbol.asyncDispose]();
      await stage.drop();
    }
  });

  it("N1, CON-12: where all that waits failed or has an order, one a second stands in, uncharged, and the return is noticed", async () => {
    const receiver = await startReceiver({ status: 503 });
    const stage = await open();
    const sink = { kind: "http", url: receiver.url } as const;
    const [failed, ordered] = ["outage/failed", "outage/ordered"] as const;
    const topics = [topic(failed, { sink }), topic(ordered, { sink, ordering: "key" })];
    const mg = await createMakegood({ store: stage.store, recovery: false, topics });
    const workers = await Promise.all([startCli(["work"], stage.env), startCli(["work"], stage.env)]);
    try {
      // As many as are under way at once: nobody is left who never failed. Of the others each key has one behind its head.
      const some = Array.from({ length: 40 }, (_, n) => ({ payload: {}, key: `k-${n}`, orderingKey: `k-${n % 20}` }));
      const messages = [
        ...(await mg.enqueueMany(
          failed,
          some.map(({ orderingKey: _, ...rest }) => rest),
        )),
        ...(await mg.enqueueMany(ordered, some)),
      ];
      const held = async (name: string) => (await stage.store.topics.get(name))?.breaker.state !== "closed";
      await until("both breakers opened", async () => (await held(failed)) && (await held(ordered)));
      await sleep(2_000);
      const [openedAt, openedWall] = [performance.now(), Date.now()];
      await sleep(STAND_IN_S * 1_000);
      const lastedMs = performance.now() - openedAt;
      const probes = (name: string) => receiver.arrivals.filter((one) => one.topic === name && one.atMs >= openedAt).length;
      for (const name of [failed, ordered]) {
        // At most one a second by both together, and no rest of half a minute; one may hang between the second before and this one.
        expect(probes(name)).toBeLessThanOrEqual(lastedMs / 1_000 + 2);
        expect(probes(name)).toBeGreaterThanOrEqual(STAND_IN_S / 4);
      }
      // Those that are charged rest 1, 2, 4 … 30 s; in a short look at a busy machine they may be all there is yet.
      const since = async (name: string) => {
        const some = name === failed ? messages.slice(0, 40) : messages.slice(40);
        const histories = await Promise.all(some.map(({ id }) => stage.store.history(id)));
        return histories.flatMap(({ attempts }) => attempts).filter(({ at }) => at.getTime() >= openedWall);
      };
      for (const name of [failed, ordered]) {
        await until("one stood in", async () => (await since(name)).some(({ counted }) => !counted), 15_000);
        const nowMs = performance.now() - openedAt;
        const charged = (await since(name)).filter(({ counted }) => counted).length;
        expect(charged).toBeLessThanOrEqual(Math.log2(nowMs / 1_000) + 2 + nowMs / 30_000);
      }
      const made = `${probes(failed)} and ${probes(ordered)}`;
      receiver.default({ status: 200 });
      const backMs = performance.now();
      const first = (name: string) =>
        receiver.arrivals.find((one) => one.topic === name && one.atMs >= backMs)?.atMs ?? Number.NaN;
      await until("both are noticed", () => first(failed) > 0 && first(ordered) > 0, 60_000);
      process.stdout.write(
        `N1 ${name}: ${STAND_IN_S} s away, probes ${made}; only failed ones left: noticed after ` +
          `${seconds(first(failed) - backMs)}; in order: after ${seconds(first(ordered) - backMs)}\n`,
      );
      if (soak) expect(Math.max(first(failed), first(ordered)) - backMs).toBeLessThan(5_000);
      await until("all arrived", async () => (await stage.store.counts()).length === 0, 60_000);
    } finally {
      await Promise.all(workers.map((worker) => worker.end("SIGKILL")));
      await mg.close();
      await receiver[Symbol.asyncDispose]();
      await stage.drop();
    }
  });
});
