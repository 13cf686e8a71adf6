/**
 * Build 2: while anything of an ordering key lies below the primary store, what comes later for that key goes below too, or waits for it; and what
 * lies where is one list, from which durability is computed.
 */
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/index.ts";
import { freshDirectory } from "../journal/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { fragile, ladderScene, TOPIC } from "./support.ts";

const RUNGS = ["secondary", "journal", "memory"] as const;

async function rungOf(rung: (typeof RUNGS)[number]) {
  const secondary = fragile();
  const below =
    rung === "secondary"
      ? { secondary: secondary.store }
      : rung === "journal"
        ? { journal: { directory: await freshDirectory() } }
        : {};
  return { below, secondary };
}

const ordered = (key: string) => ({ key, orderingKey: "o" });

describe("order over the ladder", () => {
  it.each(RUNGS)("%s: what is delivered or enqueued after the store is back does not overtake what lies below", async (rung) => {
    await using receiver = await startReceiver();
    const primary = fragile();
    const { below } = await rungOf(rung);
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store, ...below });
    mg.work();
    primary.mode = "refuses";
    for (const n of [0, 1]) expect(await mg.deliver(TOPIC, n, ordered(`k${n}`))).toMatchObject({ stored: rung, tries: 0 });
    primary.mode = "up";
    expect(await mg.deliver(TOPIC, 2, ordered("k2"))).toMatchObject({ kind: "queued" });
    expect(await mg.enqueue(TOPIC, 3, ordered("k3"))).toMatchObject({ inserted: true });
    await expect.poll(() => receiver.effects.size, { timeout: 15_000 }).toBe(4);
    expect(receiver.arrivals.map(({ key }) => key)).toEqual(["k0", "k1", "k2", "k3"]);
    await mg.close();
  });

  it("enqueue() is refused as unavailable while its key lies below a store that does not take it; other keys go on", async () => {
    await using receiver = await startReceiver();
    const primary = fragile();
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store });
    primary.mode = "refuses";
    await mg.deliver(TOPIC, 0, ordered("k0"));
    const refused = expect(mg.enqueue(TOPIC, 1, ordered("k1"))).rejects.toMatchObject({ code: "store_unavailable" });
    await refused;
    primary.mode = "up";
    expect(await mg.enqueue(TOPIC, 2, { key: "other", orderingKey: "p" })).toMatchObject({ inserted: true });
    await mg.close();
  });

  it("older ones in the secondary store, younger ones in the journal: they go up in their order", async () => {
    await using receiver = await startReceiver();
    const [primary, secondary] = [fragile(), fragile()];
    const journal = { directory: await freshDirectory() };
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store, secondary: secondary.store, journal });
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 0, ordered("k0"))).toMatchObject({ stored: "secondary" });
    secondary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 1, ordered("k1"))).toMatchObject({ stored: "journal" });
    secondary.mode = "up";
    // Not into the secondary store again, although it answers: that would overtake what lies in the journal.
    expect(await mg.deliver(TOPIC, 2, ordered("k2"))).toMatchObject({ stored: "journal" });
    mg.work();
    primary.mode = "up";
    await expect.poll(() => receiver.effects.size, { timeout: 15_000 }).toBe(3);
    expect(receiver.arrivals.map(({ key }) => key)).toEqual(["k0", "k1", "k2"]);
    await mg.close();
  });

  it("one key that has to wait in the secondary store holds up no other key of its topic", async () => {
    await using receiver = await startReceiver();
    const [primary, secondary] = [fragile(), fragile()];
    const { mg } = await ladderScene({ url: receiver.url, store: primary.store, secondary: secondary.store });
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 0, { ...ordered("k0"), delayMs: 3_600_000 })).toMatchObject({ stored: "secondary" });
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await mg.enqueue(TOPIC, 1, { key: "other", orderingKey: "p" })).toMatchObject({ inserted: true });
    expect(await mg.deliver(TOPIC, 2, ordered("k2"))).toMatchObject({ stored: "secondary" });
    await mg.close();
  });

  it.each(["secondary", "journal"] as const)("in the next process, too: what it finds in the %s goes first", async (rung) => {
    await using receiver = await startReceiver();
    const primary = fragile();
    const { below } = await rungOf(rung);
    const make = () => ladderScene({ url: receiver.url, store: primary.store, sharedStore: true, ...below });
    const first = await make();
    primary.mode = "refuses";
    for (const n of [0, 1]) await first.mg.deliver(TOPIC, n, ordered(`k${n}`));
    await first.mg.close();
    primary.mode = "up";
    const second = await make();
    second.mg.work();
    await second.mg.enqueue(TOPIC, 2, ordered("k2"));
    await expect.poll(() => receiver.effects.size, { timeout: 15_000 }).toBe(3);
    expect(receiver.arrivals.map(({ key }) => key)).toEqual(["k0", "k1", "k2"]);
    await second.mg.close();
  });

  it("in the next process a secondary store that gives no answer holds up a key only if the one before noted that it may lie there", async () => {
    await using receiver = await startReceiver();
    const [primary, secondary] = [fragile(), fragile()];
    const journal = { directory: await freshDirectory() };
    const stores = { store: primary.store, secondary: secondary.store, sharedStore: true };
    const make = () => ladderScene({ url: receiver.url, ...stores, journal });
    const first = await make();
    await first.mg.ladder.drain();
    primary.mode = "refuses";
    expect(await first.mg.deliver(TOPIC, 0, ordered("k0"))).toMatchObject({ stored: "secondary" });
    secondary.mode = "refuses";
    await first.mg.close();
    primary.mode = "up";
    const second = await make();
    second.mg.work();
    await expect(second.mg.enqueue(TOPIC, 1, ordered("k1"))).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await second.mg.deliver(TOPIC, 2, ordered("k2"))).toMatchObject({ stored: "journal" });
    expect(await second.mg.enqueue(TOPIC, 3, { key: "free" })).toMatchObject({ inserted: true });
    secondary.mode = "up";
    await expect.poll(() => receiver.effects.size, { timeout: 15_000 }).toBe(3);
    expect(receiver.arrivals.map(({ key }) => key)).toEqual(["free", "k0", "k2"]);
    await second.mg.ladder.drain();
    await second.mg.close();
    secondary.mode = "refuses";
    const third = await make();
    expect(await third.mg.enqueue(TOPIC, 4, ordered("k4"))).toMatchObject({ inserted: true });
    await third.mg.close();
  });
});

describe("what lies where", () => {
  it("what a process before this one left in the secondary store counts before that was asked, and is in the list when it was", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), createMemoryStore()];
    const quiet = { retry: { attemptsMax: 5, baseMs: 3_600_000, maxMs: 3_600_000 } };
    const make = () => ladderScene({ url: receiver.url, topic: quiet, store: primary.store, secondary, sharedStore: true });
    const first = await make();
    primary.mode = "refuses";
    expect(await first.mg.deliver(TOPIC, 1)).toMatchObject({ stored: "secondary" });
    await first.mg.close();
    primary.mode = "up";
    const second = await make();
    expect(second.mg.ladder.status().durable).toBe("nothing");
    await second.mg.ladder.drain();
    expect(second.mg.ladder.status()).toMatchObject({ durable: "power-loss", oldestAtMs: null });
    await second.mg.close();
  });

  it("is one list, and durable is never better than the worst place where something lies", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const [primary, secondary] = [fragile(), fragile()];
    const options = { secondary: secondary.store, journal: { directory: await freshDirectory(), bytesMax: 8_192 } };
    const quiet = { retry: { attemptsMax: 5, baseMs: 3_600_000, maxMs: 3_600_000 } };
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, ...options });
    const places = () => mg.ladder.status().holdings.map(({ place, count, survives }) => `${place} ${count} ${survives}`);
    primary.mode = "refuses";
    await mg.deliver(TOPIC, 1);
    expect(places()).toEqual(["secondary 1 power-loss", "journal 0 power-loss", "memory 0 nothing"]);
    expect(mg.ladder.status()).toMatchObject({ durable: "power-loss", oldestAtMs: expect.any(Number) });
    secondary.mode = "refuses";
    await mg.deliver(TOPIC, 2);
    await mg.deliver(TOPIC, "x".repeat(9_000));
    expect(places()).toEqual(["secondary 1 power-loss", "journal 1 power-loss", "memory 1 nothing"]);
    expect(mg.ladder.status().durable).toBe("nothing");
    primary.mode = "up";
    await mg.ladder.drain();
    // The secondary store is still away, and what it has is still counted.
    expect(places()[0]).toBe("secondary 1 power-loss");
    secondary.mode = "up";
    await mg.ladder.drain();
    expect(places()).toEqual(["secondary 0 power-loss", "journal 0 power-loss", "memory 0 nothing"]);
    expect(mg.ladder.status()).toMatchObject({ durable: "power-loss", oldestAtMs: null });
    await mg.close();
  });
});
