/** Build 6: what this process may not or cannot do is never the receiver's verdict (N9, N18). */
import { describe, expect, it } from "vitest";
import { createMemoryStore, type TopicName, topic, unserved } from "../../src/index.ts";
import { httpReceiver } from "../sinks/receiver.ts";
import { fastClock, pause, setUp, until } from "../unit/delivery/support.ts";

const SINKLESS = { recovery: false } as const;

async function apiTopic(store: ReturnType<typeof createMemoryStore>, url: string): Promise<TopicName> {
  const { name, definition } = topic("api/hook", { sink: { kind: "http", url, trusted: undefined } });
  await store.topics.put({ ...definition, sink: { kind: "http", url } }, "api");
  return name;
}

describe("a worker that may not dial", () => {
  it("N18: gives its claims back uncounted, and another one that may delivers all of them", async () => {
    await using receiver = await httpReceiver();
    const store = createMemoryStore();
    const shared = { ...SINKLESS, store, sharedStore: true };
    const may = await setUp([], { ...shared, sinkAllow: ["127.0.0.0/8"] });
    const mayNot = await setUp([], shared);
    const name = await apiTopic(store, receiver.url);
    mayNot.mg.work();
    const ids: string[] = [];
    for (let n = 0; n < 200; n++) ids.push((await may.mg.enqueue(name, { n })).id);
    await until(() => mayNot.of("unserved").length > 0);
    await pause(50);
    expect(await may.count("dead")).toBe(0);
    expect(await may.count("pending")).toBe(200);
    may.mg.work();
    await until(async () => (await may.count("delivered")) === 200);
    expect(mayNot.of("attempt")).toHaveLength(0);
    for (const id of ids.slice(0, 20)) expect((await store.history(id)).attempts).toMatchObject([{ attempt: 1, counted: true }]);
    await may.mg.close();
    await mayNot.mg.close();
  });

  it("rests longer and longer, spends nothing, tells why, and goes on at once when the sink is another", async () => {
    await using receiver = await httpReceiver();
    const clock = fastClock(20);
    const store = createMemoryStore({ clock });
    const { mg, of, count } = await setUp([], { ...SINKLESS, store, clock });
    const name = await apiTopic(store, receiver.url);
    mg.work();
    for (let n = 0; n < 20; n++) await mg.enqueue(name, { n });
    const rests = () => of("unserved").flatMap(({ restMs }) => restMs ?? []);
    await until(() => rests().length >= 4, 20_000);
    expect(rests().slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(of("unserved")[0]).toMatchObject({ topic: name, code: "address_refused" });
    // The first time a batch, after that one message to find out.
    expect(of("unserved").length).toBeLessThan(20 + 2 * rests().length);
    expect(await count("pending")).toBe(20);
    expect(of("breaker")).toHaveLength(0);
    const { definition } = topic("api/hook", { sink: { kind: "http", url: receiver.url } });
    await store.topics.put({ ...definition, sink: { kind: "http", url: receiver.url, trusted: true } }, "api");
    await until(async () => (await count("delivered")) === 20);
    await mg.close();
  });
});

describe("a process that cannot now", () => {
  it("N9: spends no attempt, opens no breaker, and delivers when it can again", async () => {
    const state = { broken: true };
    const clock = fastClock(20);
    const only = topic("local/only", {
      retry: { attemptsMax: 1 },
      sink: () => (state.broken ? unserved("no descriptor", { code: "no_descriptor" }) : undefined),
    });
    const { mg, of, count } = await setUp([only], { clock });
    mg.work();
    for (let n = 0; n < 100; n++) await mg.enqueue(only, { n });
    await until(() => of("unserved").filter(({ restMs }) => restMs !== null).length >= 2);
    expect(await count("dead")).toBe(0);
    state.broken = false;
    await until(async () => (await count("delivered")) === 100);
    expect(of("breaker")).toHaveLength(0);
    await mg.close();
  });

  it("N9: that can a little runs as many at once as go well, and gives back few", async () => {
    const places = { taken: 0 };
    const only = topic("local/few", {
      retry: { attemptsMax: 1 },
      async sink() {
        if (places.taken >= 5) throw unserved("no descriptor", { code: "no_descriptor" });
        places.taken++;
        await pause(5);
        places.taken--;
      },
    });
    const { mg, of, count } = await setUp([only], { concurrency: 50 });
    for (let n = 0; n < 300; n++) await mg.enqueue(only, { n });
    mg.work();
    await until(async () => (await count("delivered")) === 300, 20_000);
    expect(of("unserved").length).toBeLessThan(300);
    await mg.close();
  });

  it("deliver() stores what it could not try, due now and with no try on its record", async () => {
    const only = topic("local/only", { retry: { attemptsMax: 1 }, sink: () => unserved("no key", { code: "signing_failed" }) });
    const { mg, store, of } = await setUp([only]);
    const result = await mg.deliver(only, { n: 1 });
    expect(result).toMatchObject({ kind: "queued", stored: "primary", code: "signing_failed", tries: 0 });
    const view = await store.get(result.id);
    expect(view).toMatchObject({ status: "pending", attempts: 0 });
    expect((await store.history(result.id)).attempts).toHaveLength(0);
    expect(of("unserved")).toMatchObject([{ code: "signing_failed", restMs: 1_000 }]);
    expect(await mg.deliver(only, { n: 2 }), "it does not try again at once").toMatchObject({
      kind: "queued",
      code: "signing_failed",
    });
    expect(of("unserved")).toHaveLength(1);
    await mg.close();
  });
});
