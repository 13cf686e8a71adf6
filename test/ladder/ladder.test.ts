/**
 * The ladder with stores that are taken away: the first rung that accepts wins, the result says how durable that is, and after the outage
 * everything moves up by put-if-absent only. Fault 41.
 */
import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, topic } from "../../src/index.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { readLine } from "../../src/store/ladder/format/error-line.ts";
import { createSealer } from "../../src/store/ladder/format/seal.ts";
import { entry, freshDirectory, openJournal } from "../journal/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { fragile, ladderScene, TOPIC } from "./support.ts";

const quiet = { retry: { attemptsMax: 5, baseMs: 3_600_000, maxMs: 3_600_000 } };

describe("the first rung that accepts", () => {
  it("DF-11: primary, secondary, journal, memory: each says where it is and what that survives", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), fragile()];
    const directory = await freshDirectory();
    const options = { store: primary.store, secondary: secondary.store, journal: { directory, bytesMax: 8_192 } };
    const { mg, lines, of } = await ladderScene({ url: receiver.url, topic: quiet, ...options });
    expect(await mg.deliver(TOPIC, 1)).toMatchObject({ kind: "queued", stored: "primary", survives: "power-loss" });
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 2)).toMatchObject({ kind: "queued", stored: "secondary", survives: "power-loss" });
    expect(mg.ladder.status().primary).toBe("down");
    secondary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 3)).toMatchObject({ kind: "queued", stored: "journal", survives: "power-loss" });
    expect(lines).toEqual([]);
    const large = await mg.deliver(TOPIC, "x".repeat(9_000));
    expect(large).toMatchObject({ kind: "queued", stored: "memory", survives: "nothing" });
    expect(lines).toHaveLength(1);
    expect(of("handed_down").map(({ rung }) => rung)).toEqual(["primary", "secondary", "journal", "memory"]);
    expect(mg.ladder.status().waiting).toEqual({ journal: 1, memory: 1 });
    primary.mode = "up";
    secondary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 0, left: 0 });
    await expect.poll(async () => (await primary.store.list({ limit: 10 })).data.length).toBe(4);
    expect(mg.ladder.status()).toMatchObject({ primary: "up", waiting: { journal: 0, memory: 0 }, oldestAtMs: null });
    await mg.close();
  });

  it("a rejection goes down as what it is and becomes a dead letter of the primary after the outage", async () => {
    await using receiver = await startReceiver({ status: 422 });
    for (const below of ["secondary", "journal", "memory"] as const) {
      const [primary, secondary] = [fragile(), fragile()];
      const rung =
        below === "secondary"
          ? { secondary: secondary.store }
          : below === "journal"
            ? { journal: { directory: await freshDirectory() } }
            : {};
      const { mg } = await ladderScene({ url: receiver.url, store: primary.store, ...rung });
      primary.mode = "refuses";
      const result = await mg.deliver(TOPIC, 1, { key: "k" });
      expect(result).toMatchObject({ kind: "dead", code: "http_422", stored: below });
      primary.mode = "up";
      await mg.ladder.drain();
      expect(await primary.store.get(result.id)).toMatchObject({
        status: "dead",
        resolution: "open",
        lastCode: "http_422",
        key: "k",
      });
      if (below === "secondary")
        expect(await secondary.store.get(result.id)).toMatchObject({ status: "dead", resolution: "resolved" });
      await mg.close();
    }
  });

  it("DF-17: an id that is there already: the same again is that message, another payload is refused, on every rung", async () => {
    await using receiver = await startReceiver({ status: 503 });
    for (const below of ["secondary", "journal", "memory"] as const) {
      const primary = fragile();
      const rung = below === "secondary" ? { secondary: fragile().store } : { journal: { directory: await freshDirectory() } };
      const options = { url: receiver.url, topic: quiet, store: primary.store, ...(below === "memory" ? {} : rung) };
      const { mg } = await ladderScene(options);
      primary.mode = "refuses";
      const { message } = entry();
      const deliver = (payload: number) => mg.deliver(TOPIC, payload, { id: message.id });
      expect(await deliver(1)).toMatchObject({ kind: "queued", stored: below });
      expect(await deliver(1)).toMatchObject({ kind: "queued", stored: below });
      expect(await deliver(2)).toMatchObject({ kind: "refused", code: "key_conflict", stored: null });
      primary.mode = "up";
      expect(await mg.ladder.drain()).toMatchObject({ left: 0, conflicts: 0 });
      await expect.poll(async () => (await primary.store.get(message.id))?.payload).toBe("1");
      await mg.close();
    }
  });

  it.each(["journal", "memory"] as const)(
    "%s: a key that is there already: the same again is that message, another payload is refused at once",
    async (below) => {
      await using receiver = await startReceiver({ status: 503 });
      const primary = fragile();
      const rung = below === "journal" ? { journal: { directory: await freshDirectory() } } : {};
      const { mg, lines } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, ...rung });
      primary.mode = "refuses";
      const deliver = (payload: number, tenantId = "a") => mg.deliver(TOPIC, payload, { key: "k", tenantId });
      const [first, same] = [await deliver(1), await deliver(1)];
      expect(first).toMatchObject({ kind: "queued", stored: below });
      expect(same).toMatchObject({ kind: "queued", stored: below, id: first.id });
      expect(await deliver(2)).toMatchObject({ kind: "refused", code: "key_conflict", stored: null });
      expect(await deliver(2, "b")).toMatchObject({ kind: "queued", stored: below });
      // Both at once: one of them is first.
      const both = await Promise.all([deliver(3, "c"), deliver(4, "c")]);
      expect(both.map(({ kind }) => kind).sort()).toEqual(["queued", "refused"]);
      expect(lines.filter((line) => line.includes("makegood_refused"))).toHaveLength(2);
      primary.mode = "up";
      expect(await mg.ladder.drain()).toMatchObject({ left: 0, conflicts: 0 });
      await expect.poll(async () => (await primary.store.list({ limit: 10 })).data.length).toBe(3);
      await mg.close();
    },
  );

  it("I10: memory is bounded: what it does not take any more is refused, and its whole text is in the log", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const { mg, lines } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store });
    primary.mode = "refuses";
    const large = "x".repeat(1_000_000);
    const results = [];
    for (let n = 0; n < 35; n++) results.push(await mg.deliver(TOPIC, large, { key: `k${n}`, delayMs: 3_600_000 }));
    expect(results.filter(({ stored }) => stored === "memory")).toHaveLength(33);
    expect(results.at(-1)).toMatchObject({ kind: "refused", code: "store_full", stored: null });
    expect(lines.at(-1)).toContain(large);
    expect(mg.ladder.status().waiting.memory).toBe(33);
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ moved: 33, left: 0 });
    await mg.close();
  });

  it("a store that hangs is left alone for a while: the next callers do not pay for it again", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const { mg, of } = await ladderScene({
      url: receiver.url,
      store: primary.store,
      journal: { directory: await freshDirectory() },
    });
    primary.mode = "hangs";
    for (let n = 0; n < 4; n++) expect(await mg.deliver(TOPIC, n, { budgetMs: 2_000 })).toMatchObject({ stored: "journal" });
    expect(of("rung_failed").filter(({ rung, error }) => rung === "primary" && error.includes("no answer"))).toHaveLength(1);
    primary.mode = "up";
    await mg.close();
  });

  it("starts and delivers although the primary store is away; it is opened when it comes back", async () => {
    await using receiver = await startReceiver();
    const primary = fragile();
    primary.mode = "refuses";
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store, journal: { directory: await freshDirectory() } });
    expect(await mg.deliver(TOPIC, 1)).toMatchObject({ kind: "delivered" });
    receiver.script("early", [{ status: 503 }]);
    expect(await mg.deliver(TOPIC, 2, { key: "early" })).toMatchObject({ kind: "queued", stored: "journal" });
    expect(mg.opened()).toBe(false);
    mg.work();
    primary.mode = "up";
    await expect.poll(() => mg.opened(), { timeout: 10_000 }).toBe(true);
    receiver.script("late", [{ status: 503 }]);
    const late = await mg.deliver(TOPIC, 3, { key: "late" });
    expect(late).toMatchObject({ kind: "queued", stored: "primary" });
    await expect.poll(async () => (await primary.store.get(late.id))?.status, { timeout: 10_000 }).toBe("delivered");
    // From below or from the store, whichever came first.
    await expect.poll(() => receiver.effects.has("early"), { timeout: 10_000 }).toBe(true);
    await mg.close();
  });

  it("without anything below, a primary store that is away still refuses the start", async () => {
    const primary = fragile();
    primary.mode = "refuses";
    await expect(createMakegood({ store: primary.store })).rejects.toMatchObject({ code: "store_unavailable" });
  });
});

describe("CON-8: the way up is put-if-absent only", () => {
  it("DF-12: what was committed although its answer was lost is one message with one effect", async () => {
    await using receiver = await startReceiver();
    const primary = fragile();
    const { mg, of } = await ladderScene({
      url: receiver.url,
      store: primary.store,
      journal: { directory: await freshDirectory() },
    });
    receiver.script("k", [{ status: 503 }]);
    primary.mode = "late";
    const result = await mg.deliver(TOPIC, 1, { key: "k" });
    expect(result).toMatchObject({ kind: "queued", stored: "journal" });
    primary.mode = "up";
    mg.work();
    await expect.poll(async () => (await primary.store.get(result.id))?.status).toBe("delivered");
    await expect.poll(() => mg.ladder.status().waiting.journal).toBe(0);
    const { data } = await primary.store.list({ limit: 10 });
    expect(data).toMatchObject([{ id: result.id, status: "delivered", attempts: 1 }]);
    // A repeat from below is possible, with the same key.
    expect(receiver.effects).toEqual(new Set(["k"]));
    expect(of("quarantined")).toEqual([]);
    await mg.close();
  });

  it("terminal records and newer state of the primary are never overwritten", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const directory = await freshDirectory();
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal: { directory } });
    const first = await mg.deliver(TOPIC, { n: 1 }, { key: "settled" });
    await mg.discard(first.id, { actor: "me", reason: "no longer owed" });
    const before = await primary.store.get(first.id);
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, { n: 1 }, { key: "settled" })).toMatchObject({ stored: "journal" });
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ duplicates: 1, conflicts: 0, left: 0 });
    expect(await primary.store.get(first.id)).toEqual(before);
    await mg.close();
  });

  it("DF-17: a contradiction is quarantined: kept, reported, offered no more; the first stands", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const directory = await freshDirectory();
    const { mg, of } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal: { directory } });
    const first = await mg.deliver(TOPIC, { cost: 1 }, { key: "k" });
    primary.mode = "refuses";
    const second = await mg.deliver(TOPIC, { cost: 2 }, { key: "k" });
    expect(second).toMatchObject({ kind: "queued", stored: "journal" });
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 1, left: 0 });
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 0, left: 0 });
    expect(of("quarantined")).toMatchObject([{ id: second.id, key: "k", rung: "journal" }]);
    expect((await primary.store.get(first.id))?.payload).toBe('{"cost":1}');
    expect(mg.ladder.status().quarantined).toBe(1);
    await mg.close();
    expect((await readJournal({ directory })).entries).toMatchObject([{ id: second.id, state: "quarantined" }]);
  });

  it("a journal that holds one key twice, as two processes or the version before may have written it: the store above decides", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const payloads = ["1", "1", "2"];
    const [first, , other] = payloads.map((payload) => entry({ payload, key: "k" }));
    for (const one of [first, entry({ payload: "1", key: "k" }), other]) if (one) await journal.append(one);
    await journal.close();
    const primary = fragile();
    const { mg, of } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal: { directory } });
    await mg.ladder.drain();
    expect(mg.ladder.status()).toMatchObject({ waiting: { journal: 0 }, quarantined: 1 });
    expect(of("drained")).toMatchObject([{ rung: "journal", moved: 2, duplicates: 1, conflicts: 1 }]);
    expect((await primary.store.list({ limit: 10 })).data).toMatchObject([{ id: first?.message.id, payload: "1", key: "k" }]);
    await mg.close();
    expect((await readJournal({ directory })).entries).toMatchObject([{ id: other?.message.id, state: "quarantined" }]);
  });

  it("one entry that no store takes does not keep the others below", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const [odd, good] = [entry({ topic: "nobody/declares-it" }), entry()];
    for (const one of [odd, good]) await journal.append(one);
    await journal.close();
    const primary = fragile();
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal: { directory } });
    await expect.poll(async () => (await primary.store.get(good.message.id))?.status).toBe("pending");
    await expect.poll(() => mg.ladder.status().waiting.journal).toBe(1);
    await mg.close();
    expect((await readJournal({ directory })).entries).toMatchObject([{ id: odd.message.id, state: "waiting" }]);
  });

  it("two processes drain one directory and one secondary store: each message once", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), fragile()];
    const directory = await freshDirectory();
    const make = () =>
      ladderScene({
        url: receiver.url,
        topic: quiet,
        store: primary.store,
        secondary: secondary.store,
        journal: { directory },
        sharedStore: true,
      });
    const [one, two] = [await make(), await make()];
    primary.mode = "refuses";
    for (let n = 0; n < 20; n++) await (n % 2 ? one : two).mg.deliver(TOPIC, n, { key: `s${n}` });
    secondary.mode = "refuses";
    for (let n = 0; n < 20; n++) await (n % 2 ? one : two).mg.deliver(TOPIC, n, { key: `j${n}` });
    primary.mode = "up";
    secondary.mode = "up";
    await Promise.all([one.mg.ladder.drain(), two.mg.ladder.drain()]);
    await expect.poll(async () => (await primary.store.list({ limit: 100, status: "pending" })).data.length).toBe(40);
    expect((await secondary.store.list({ limit: 100, status: "pending" })).data).toEqual([]);
    await one.mg.close();
    await two.mg.close();
    expect(await readdir(directory)).toEqual(["known-store.json"]);
  });

  it("what a worker of the secondary store has begun goes up with its attempts; what a person holds there stays", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), fragile()];
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, secondary: secondary.store });
    primary.mode = "refuses";
    const [begun, held] = [await mg.deliver(TOPIC, 1), await mg.deliver(TOPIC, 2)];
    const told = { counted: true, outcome: "retry", code: "x", error: "y" } as const;
    const settle = async (id: string, settlement: Settlement) => {
      const [claimed] = await secondary.store.claim({ owner: "other", leaseMs: 30_000, lanes: [], ids: [id] });
      if (claimed) await secondary.store.settle([{ id, claim: claimed.claim, attempt: 1, durationMs: 1, settlement }]);
    };
    await settle(begun.id, { kind: "retry", delayMs: 60_000, suspicion: 0, ...told });
    await settle(held.id, { kind: "hold", reason: "outcome_unknown", ...told });
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await primary.store.get(begun.id)).toMatchObject({ status: "pending", attempts: 1, lastCode: "x" });
    expect(await secondary.store.get(begun.id)).toMatchObject({ status: "delivered" });
    expect(await primary.store.get(held.id)).toBeNull();
    expect(await secondary.store.get(held.id)).toMatchObject({ status: "pending", heldReason: "outcome_unknown" });
    await mg.close();
  });

  it("ordered messages go up in their order", async () => {
    await using receiver = await startReceiver();
    const [primary, secondary] = [fragile(), fragile()];
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store, secondary: secondary.store });
    primary.mode = "refuses";
    for (let n = 0; n < 5; n++) expect(await mg.deliver(TOPIC, n, { orderingKey: "o" })).toMatchObject({ stored: "secondary" });
    primary.mode = "up";
    await mg.ladder.drain();
    mg.work();
    await expect.poll(() => receiver.arrivals.map(({ body }) => body)).toEqual(["0", "1", "2", "3", "4"]);
    await mg.close();
  });

  it("N16: heads that were begun below stay there, and hide no other key however many they are", async () => {
    await using receiver = await startReceiver();
    const [primary, secondary] = [fragile(), fragile()];
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store, secondary: secondary.store });
    primary.mode = "refuses";
    for (let n = 0; n < 120; n++) await mg.deliver(TOPIC, n, { orderingKey: `a${n}` });
    const lanes = (await secondary.store.lanes()).map(({ lane }) => ({ lane, limit: 1_000 }));
    const claimed = await secondary.store.claim({ owner: "other", leaseMs: 30_000, lanes });
    const told = { counted: true, outcome: "retry", code: "x", error: "y" } as const;
    const retry: Settlement = { kind: "retry", delayMs: 0, suspicion: 0, ...told };
    await secondary.store.settle(claimed.map(({ id, claim }) => ({ id, claim, attempt: 1, durationMs: 1, settlement: retry })));
    const free = await mg.deliver(TOPIC, 1, { orderingKey: "z" });
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await primary.store.get(free.id)).toMatchObject({ status: "pending" });
    expect(await secondary.store.get(claimed[0]?.id as string)).toMatchObject({ status: "pending", attempts: 1 });
    expect(claimed).toHaveLength(120);
    await mg.close();
  });
});

describe("DF-29: memory mode while durable entries are known", () => {
  const start = (directory: string, allowMemory?: "despite-durable-entries") =>
    createMakegood({ store: createMemoryStore(), topics: [topic(TOPIC, {})], journal: { directory }, allowMemory });

  it("DF-29: is refused while the journal holds entries, and allowed by name, which leaves them alone", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    await journal.append(entry());
    await journal.close();
    await expect(start(directory)).rejects.toMatchObject({ code: "durable_entries_left", detail: { waiting: 1 } });
    const mg = await start(directory, "despite-durable-entries");
    await mg.close();
    expect((await readJournal({ directory })).entries).toHaveLength(1);
  });

  it("DF-29: is refused after a durable store was left with unsettled messages", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const directory = await freshDirectory();
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: fragile().store, journal: { directory } });
    await mg.deliver(TOPIC, 1);
    await mg.close();
    await expect(start(directory)).rejects.toMatchObject({ code: "durable_entries_left", detail: { unsettled: 1 } });
  });

  it("DF-29: an empty directory is no obstacle", async () => {
    const mg = await start(await freshDirectory());
    await mg.close();
  });
});

describe("DF-30: the line of the ERROR log", () => {
  async function lineOf(options: { maskFields?: string[]; sealKey?: string }, payload: unknown) {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const journal = options.sealKey
      ? { journal: { directory: await freshDirectory(), bytesMax: 4_096, sealKey: options.sealKey } }
      : {};
    const { maskFields } = options;
    const { mg, lines } = await ladderScene({ url: receiver.url, store: primary.store, ...journal, maskFields });
    primary.mode = "refuses";
    const result = await mg.deliver(TOPIC, payload, { key: "k" });
    expect(result).toMatchObject({ kind: "queued", stored: "memory" });
    primary.mode = "up";
    await mg.close();
    return { line: lines[0] as string, id: result.id };
  }
  const big = "y".repeat(8_000);

  it("DF-30: holds the whole entry, however long, in one line, and reads back byte for byte", async () => {
    const payload = { card: "4111", text: `\u0000\u2028\u001b[31m é 😀`, big };
    const { line, id } = await lineOf({}, payload);
    for (const unsafe of ["\n", "\u001b", "\u2028"]) expect(line).not.toContain(unsafe);
    const read = readLine(line, null);
    expect(read).toMatchObject({
      ok: true,
      entry: { message: { id, key: "k", topic: TOPIC, payload: JSON.stringify(payload) } },
    });
  });

  it("DF-30: reads back from what collectors make of it", async () => {
    const { line, id } = await lineOf({}, { n: 1 });
    const wrapped = [
      `2026-01-01T00:00:00Z stderr F ${line}`,
      `Jan 01 00:00:00 host-1 app[123]: ${line}`,
      `app-1  | ${line}`,
      JSON.stringify({ log: `${line}\n`, stream: "stderr" }),
      JSON.stringify({ level: "error", message: line }),
      JSON.stringify({ log: JSON.parse(line), kubernetes: {} }),
    ];
    for (const one of wrapped) expect(readLine(one, null)).toMatchObject({ ok: true, entry: { message: { id } } });
    expect(readLine(line.slice(0, -10), null)).toMatchObject({ ok: false });
    expect(readLine("something else", null)).toBeNull();
  });

  it("attack: what a receiver answered or a producer sent is never read back as an entry, whatever it looks like", async () => {
    const { line } = await lineOf({}, { n: 1 });
    const inside = [
      JSON.stringify({ level: "warn", message: "attempt", error: `http_500: the receiver answered 500: ${line}` }),
      JSON.stringify({ level: "warn", message: "attempt", error: line }),
      JSON.stringify({ level: "info", message: `notify ${TOPIC} 1: ${line}` }),
      `2026-01-01T00:00:00.000Z INFO notify ${TOPIC} 01a1: x[1]: ${line}`,
      JSON.stringify({ log: JSON.stringify({ level: "warn", error: line }) }),
    ];
    for (const one of inside) expect(readLine(one, null), one).toMatchObject({ ok: false });
  });

  it("attack 20: masked fields are not in it; with a key the payload is sealed and comes back exactly", async () => {
    const payload = { account: { card: "4111-secret" }, big };
    const sealKey = "a key of sixteen or more";
    const { line, id } = await lineOf({ maskFields: ["Card"], sealKey }, payload);
    expect(line).not.toContain("4111-secret");
    expect(line).toContain("[masked]");
    const opened = readLine(line, createSealer(sealKey, systemRandom));
    expect(opened).toMatchObject({ ok: true, entry: { message: { id, payload: JSON.stringify(payload) } } });
    expect(readLine(line, null)).toMatchObject({ ok: false, fault: expect.stringContaining("sealed") });
    expect(readLine(line, createSealer("another key of sixteen", systemRandom))).toMatchObject({ ok: false });
  });

  it("attack 20: masked without a key it says that it cannot be restored, instead of restoring it wrongly", async () => {
    const { line } = await lineOf({ maskFields: ["card"] }, { card: "4111-secret" });
    expect(line).not.toContain("4111-secret");
    expect(readLine(line, null)).toMatchObject({ ok: false, fault: expect.stringContaining("masked") });
  });
});

describe("a way up that was cut off", () => {
  it("what a dead process had claimed on the secondary is found again, attempts untouched", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), fragile()];
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, secondary: secondary.store });
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1);
    expect(await secondary.store.claim({ owner: "killed", leaseMs: 1, lanes: [], ids: [id] })).toHaveLength(1);
    primary.mode = "up";
    await expect
      .poll(async () => {
        await mg.ladder.drain();
        return (await primary.store.get(id))?.attempts;
      })
      .toBe(0);
    expect((await secondary.store.get(id))?.status).toBe("delivered");
    await mg.close();
  });

  it("the secondary fails while the way up is open: the ladder comes back to it by itself", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), fragile()];
    const { mg, of } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, secondary: secondary.store });
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1);
    secondary.mode = "refuses";
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ whole: false });
    await expect.poll(() => of("rung_failed").filter(({ rung }) => rung === "secondary").length).toBeGreaterThan(0);
    secondary.mode = "up";
    await expect.poll(async () => (await primary.store.get(id))?.status, { timeout: 10_000 }).toBe("pending");
    await mg.close();
  });
});
