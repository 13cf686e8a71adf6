/**
 * DF-12: what waits in the journal or in memory is attempted from there while the store is away: on its policy, counted, behind the breaker,
 * and left alone where only a store can keep the promise. What was tried goes up with it, and nothing is moved in the middle of an attempt.
 */
import { describe, expect, it } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { freshDirectory } from "../journal/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { fragile, ladderScene, TOPIC } from "./support.ts";

/** Two quick waits, then none that a test would see the end of. */
const TWICE = { retry: { policy: "table", tableMs: [10, 10, 3_600_000, 3_600_000], jitter: "none" } } as const;

const RUNGS = ["journal", "memory"] as const;

async function rungOf(name: (typeof RUNGS)[number]) {
  return name === "journal" ? { journal: { directory: await freshDirectory() } } : {};
}

describe.each(RUNGS)("from the %s", (rung) => {
  it("DF-12: an entry is attempted while the store is away, and leaves when it is delivered", async () => {
    await using receiver = await startReceiver();
    receiver.script("k", [{ status: 503 }, { status: 503 }]);
    const primary = fragile();
    const { mg, of } = await ladderScene({ url: receiver.url, store: primary.store, ...(await rungOf(rung)) });
    primary.mode = "refuses";
    const result = await mg.deliver(TOPIC, { n: 1 }, { key: "k" });
    expect(result).toMatchObject({ kind: "queued", stored: rung, tries: 1 });
    await expect.poll(() => mg.ladder.status().waiting[rung], { timeout: 10_000 }).toBe(0);
    expect(receiver.of("k").map(({ attempt, id, body }) => [attempt, id, body])).toEqual(
      [0, 1, 2].map((n) => [n, result.id, '{"n":1}']),
    );
    await expect
      .poll(() => of("attempt"))
      .toMatchObject([
        { attempt: 1, outcome: "retry", status: "pending", code: "http_503" },
        { attempt: 2, outcome: "delivered", status: "delivered" },
      ]);
    primary.mode = "up";
    await mg.ladder.drain();
    expect((await primary.store.list({ limit: 10 })).data).toEqual([]);
    await mg.close();
  });

  it("CON-8: attempts go up with it, each with its reason, and the wait that is left", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const { mg, of } = await ladderScene({ url: receiver.url, topic: TWICE, store: primary.store, ...(await rungOf(rung)) });
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
    await expect.poll(() => of("attempt").length, { timeout: 10_000 }).toBe(2);
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ left: 0 });
    const view = await primary.store.get(id);
    expect(view).toMatchObject({ status: "pending", attempts: 2, lastCode: "http_503" });
    expect((view?.nextAttemptAt?.getTime() ?? 0) - Date.now()).toBeGreaterThan(3_000_000);
    const { attempts } = await primary.store.history(id);
    expect(attempts).toMatchObject([
      { attempt: 0, counted: false, code: "http_503" },
      { attempt: 1, counted: true, outcome: "retry", code: "http_503" },
      { attempt: 2, counted: true, outcome: "retry", code: "http_503" },
    ]);
    // The third attempt is the store's.
    receiver.default({ status: 200 });
    await mg.store.claim({ owner: "test", leaseMs: 30_000, lanes: [], ids: [id] }).then(([one]) => expect(one?.attempt).toBe(3));
    await mg.close();
  });

  it("a rejection ends it: not tried again, and a dead letter of the store that takes it", async () => {
    await using receiver = await startReceiver({ status: 422 });
    receiver.script("k", [{ status: 503 }, { status: 503 }]);
    const primary = fragile();
    const { mg, of } = await ladderScene({ url: receiver.url, topic: TWICE, store: primary.store, ...(await rungOf(rung)) });
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
    await expect.poll(() => of("attempt").map(({ status }) => status), { timeout: 10_000 }).toEqual(["pending", "dead"]);
    expect(mg.ladder.status().waiting[rung]).toBe(1);
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await primary.store.get(id)).toMatchObject({ status: "dead", resolution: "open", attempts: 2, lastCode: "http_422" });
    expect(receiver.of("k")).toHaveLength(3);
    await mg.close();
  });

  it("I6: its attempts are bounded there, too", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const retry = { attemptsMax: 2, baseMs: 10, maxMs: 20 };
    const { mg, of } = await ladderScene({ url: receiver.url, topic: { retry }, store: primary.store, ...(await rungOf(rung)) });
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
    await expect.poll(() => of("attempt").at(-1)?.status, { timeout: 10_000 }).toBe("dead");
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await primary.store.get(id)).toMatchObject({ status: "dead", attempts: 2, lastCode: "http_503" });
    expect(receiver.of("k")).toHaveLength(3);
    await mg.close();
  });

  it.each([
    [200, null],
    [503, { status: "pending", attempts: 1, lastCode: "http_503" }],
  ])(
    "the store comes back in the middle of an attempt that ends with %i: the entry is in one hand at a time",
    async (status, after) => {
      await using receiver = await startReceiver();
      receiver.script("k", [{ status: 503 }, "hang"]);
      const primary = fragile();
      const how = { ...TWICE, timeoutMs: 10_000, leaseMs: 15_000 };
      const { mg } = await ladderScene({ url: receiver.url, topic: how, store: primary.store, ...(await rungOf(rung)) });
      primary.mode = "refuses";
      const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
      await expect.poll(() => receiver.of("k").length, { timeout: 10_000 }).toBe(2);
      primary.mode = "up";
      expect(await mg.ladder.drain()).toMatchObject({ moved: 0, left: 1 });
      receiver.release(status);
      await expect.poll(() => mg.ladder.status().waiting[rung], { timeout: 10_000 }).toBe(0);
      expect(await primary.store.get(id)).toEqual(after === null ? null : expect.objectContaining(after));
      await mg.close();
    },
  );
});

describe("what stands in the way of an attempt from below", () => {
  it("the breaker opens and closes in this process while the store that shares it is away", async () => {
    await using receiver = await startReceiver();
    const primary = fragile();
    const retry = { attemptsMax: 50, baseMs: 300, maxMs: 300 };
    const journal = { directory: await freshDirectory() };
    const { mg, of } = await ladderScene({ url: receiver.url, topic: { retry }, store: primary.store, journal });
    let away = true;
    receiver.default(() => ({ status: away ? 503 : 200 }));
    primary.mode = "refuses";
    // At once: one after the other, the first would be due again, and under way, before the last one opens it on a slow machine.
    await Promise.all(Array.from({ length: 5 }, (_, n) => mg.deliver(TOPIC, n, { key: `k${n}` })));
    expect(of("breaker")).toMatchObject([{ state: "open" }]);
    expect(await mg.deliver(TOPIC, 5, { key: "k5" })).toMatchObject({ code: "breaker_open", tries: 0, stored: "journal" });
    // Probes that fail leave it open, those that are answered close it; between them nothing is tried.
    const tried = receiver.arrivals.length;
    const sinceMs = performance.now();
    await expect.poll(() => receiver.arrivals.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(tried + 2);
    expect(performance.now() - sinceMs).toBeGreaterThan(900);
    away = false;
    await expect.poll(() => receiver.effects.size, { timeout: 15_000 }).toBe(6);
    await expect.poll(() => of("breaker").map(({ state }) => state), { timeout: 5_000 }).toEqual(["open", "half_open", "closed"]);
    await expect.poll(() => mg.ladder.status().waiting.journal).toBe(0);
    await mg.close();
  });

  it("an unknown outcome is counted as one and tried again with the same key", async () => {
    await using receiver = await startReceiver();
    receiver.script("k", ["hang", "hang"]);
    const primary = fragile();
    const journal = { directory: await freshDirectory() };
    const { mg, of } = await ladderScene({ url: receiver.url, topic: { timeoutMs: 200 }, store: primary.store, journal });
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 1, { key: "k" })).toMatchObject({ kind: "queued", code: "timeout" });
    await expect.poll(() => of("attempt").map(({ outcome }) => outcome), { timeout: 10_000 }).toEqual(["unknown", "delivered"]);
    expect(receiver.effects.size).toBe(1);
    primary.mode = "up";
    await mg.close();
  });

  it("an ordering key, a delay, a pause, a topic that holds unknown outcomes: they wait, the others go on", async () => {
    await using receiver = await startReceiver();
    const primary = fragile();
    const sink = { kind: "http" as const, url: receiver.url };
    const mg = await createMakegood({
      store: primary.store,
      journal: { directory: await freshDirectory() },
      topics: [
        topic("test/plain", { sink, retry: { attemptsMax: 5, baseMs: 10, maxMs: 20 } }),
        topic("test/holds", { sink, onUnknown: "hold" }),
        topic("test/paused", { sink }),
      ],
    });
    await primary.store.topics.pause("test/paused", true);
    await expect.poll(async () => (await mg.deliver("test/paused", 0, { key: "before" })).code).toBe("topic_paused");
    primary.mode = "refuses";
    await mg.deliver("test/plain", 1, { key: "ordered", orderingKey: "o" });
    await mg.deliver("test/plain", 1, { key: "delayed", delayMs: 600_000 });
    await mg.deliver("test/paused", 1, { key: "paused" });
    expect(await mg.deliver("test/holds", 1, { key: "holds" })).toMatchObject({
      kind: "queued",
      stored: "journal",
      code: "not_tried_below",
      tries: 0,
    });
    receiver.script("plain", [{ status: 503 }]);
    await mg.deliver("test/plain", 1, { key: "plain" });
    await expect.poll(() => receiver.effects.has("plain"), { timeout: 10_000 }).toBe(true);
    const keys = new Set(receiver.arrivals.map(({ key }) => key));
    keys.delete("before");
    expect(keys).toEqual(new Set(["plain"]));
    await expect.poll(() => mg.ladder.status().waiting.journal).toBe(4);
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ left: 0 });
    const { data } = await primary.store.list({ limit: 10, status: "pending" });
    const left = data.filter(({ key }) => key !== "before").map(({ key, attempts }) => `${key} ${attempts}`);
    expect(new Set(left)).toEqual(new Set(["delayed 0", "holds 0", "ordered 0", "paused 0"]));
    await mg.close();
  });

  it("CON-8: attempts from below change nothing of what the store has under that key", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const journal = { directory: await freshDirectory() };
    const { mg, of } = await ladderScene({ url: receiver.url, topic: TWICE, store: primary.store, journal });
    const first = await mg.deliver(TOPIC, 1, { key: "k" });
    await mg.discard(first.id, { actor: "me", reason: "no longer owed" });
    const before = await primary.store.get(first.id);
    primary.mode = "refuses";
    await mg.deliver(TOPIC, 1, { key: "k" });
    await expect.poll(() => of("attempt").length, { timeout: 10_000 }).toBe(2);
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 0, left: 0 });
    expect(of("drained").reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(1);
    expect(await primary.store.get(first.id)).toEqual(before);
    expect((await primary.store.list({ limit: 10 })).data).toHaveLength(1);
    await mg.close();
  });
});

describe("storeFirst below the primary store", () => {
  const scene = async (rung: "secondary" | "journal" | "memory", url: string) => {
    const [primary, secondary] = [fragile(), fragile()];
    const below = rung === "secondary" ? { secondary: secondary.store } : await rungOf(rung);
    const { mg } = await ladderScene({ url, topic: TWICE, store: primary.store, ...below });
    // The look at what may have been left below is over: it could claim for its move what is stored now.
    await mg.ladder.drain();
    primary.mode = "refuses";
    return { mg, primary, secondary };
  };

  it.each(["secondary", "journal", "memory"] as const)("%s: kept first, then tried as its first attempt", async (rung) => {
    await using receiver = await startReceiver();
    const { mg, primary } = await scene(rung, receiver.url);
    const result = await mg.deliver(TOPIC, 1, { key: "k", storeFirst: true });
    const stored = rung === "secondary" ? "secondary" : null;
    expect(result).toMatchObject({ kind: "delivered", stored, tries: 1, code: null });
    expect(receiver.of("k")).toMatchObject([{ attempt: 1, id: result.id }]);
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await primary.store.get(result.id)).toBeNull();
    expect(mg.ladder.status().waiting).toEqual({ journal: 0, memory: 0 });
    await mg.close();
  });

  it.each(["secondary", "journal", "memory"] as const)(
    "%s: a failed first attempt is recorded and goes up with it",
    async (rung) => {
      await using receiver = await startReceiver({ status: 503 });
      const { mg, primary, secondary } = await scene(rung, receiver.url);
      const result = await mg.deliver(TOPIC, 1, { key: "k", storeFirst: true });
      expect(result).toMatchObject({ kind: "queued", stored: rung, tries: 1, code: "http_503" });
      primary.mode = "up";
      await mg.ladder.drain();
      const view = await primary.store.get(result.id);
      expect(view).toMatchObject({ status: "pending", lastCode: "http_503" });
      // From the journal or memory a second attempt may have been made meanwhile.
      expect(view?.attempts).toBeGreaterThanOrEqual(1);
      const { attempts } = await primary.store.history(result.id);
      expect(attempts.filter(({ counted }) => counted)).toHaveLength(view?.attempts ?? 0);
      if (rung === "secondary") expect((await secondary.store.list({ limit: 10, status: "pending" })).data).toEqual([]);
      await mg.close();
    },
  );

  it.each(["secondary", "journal", "memory"] as const)("%s: a rejection is a dead letter with its attempt", async (rung) => {
    await using receiver = await startReceiver({ status: 422 });
    const { mg, primary } = await scene(rung, receiver.url);
    const result = await mg.deliver(TOPIC, 1, { key: "k", storeFirst: true });
    expect(result).toMatchObject({ kind: "dead", stored: rung, tries: 1, code: "http_422" });
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await primary.store.get(result.id)).toMatchObject({ status: "dead", resolution: "open", attempts: 1 });
    expect(receiver.of("k")).toHaveLength(1);
    await mg.close();
  });
});

describe("a restart", () => {
  it("CON-8: the attempts that a process made are in its journal for the next one", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const directory = await freshDirectory();
    const primary = fragile();
    const make = () =>
      ladderScene({ url: receiver.url, topic: TWICE, store: primary.store, sharedStore: true, journal: { directory } });
    const first = await make();
    primary.mode = "refuses";
    const { id } = await first.mg.deliver(TOPIC, 1, { key: "k" });
    await expect.poll(() => first.of("attempt").length, { timeout: 10_000 }).toBe(2);
    await first.mg.close();
    const [left] = (await readJournal({ directory })).entries;
    expect(left?.entry?.tried).toMatchObject({ dead: false, failed: [{ code: "http_503" }, { code: "http_503" }] });
    primary.mode = "up";
    const second = await make();
    await second.mg.ladder.drain();
    expect(await primary.store.get(id)).toMatchObject({ status: "pending", attempts: 2 });
    await second.mg.close();
  });

  it("DF-12: a process that starts while the store is away attempts what it finds", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const directory = await freshDirectory();
    const primary = fragile();
    const make = () => ladderScene({ url: receiver.url, store: primary.store, sharedStore: true, journal: { directory } });
    const first = await make();
    primary.mode = "refuses";
    const { id } = await first.mg.deliver(TOPIC, 1, { key: "k" });
    await first.mg.close();
    receiver.default({ status: 200 });
    const second = await make();
    await expect.poll(() => receiver.effects.has("k"), { timeout: 10_000 }).toBe(true);
    await expect.poll(() => second.mg.ladder.status().waiting.journal).toBe(0);
    expect(new Set(receiver.of("k").map((arrival) => arrival.id))).toEqual(new Set([id]));
    await second.mg.close();
    expect((await readJournal({ directory })).entries).toEqual([]);
  });
});
