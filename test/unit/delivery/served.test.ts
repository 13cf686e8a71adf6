/** Who serves a topic, as every process of a store can tell (N14, N18). */
import { describe, expect, it } from "vitest";
import { createMemoryStore, topic, unserved } from "../../../src/index.ts";
import { LIMITS } from "../../../src/message/limits.ts";
import { servedBy, type WorkerNote } from "../../../src/message/worker-note.ts";
import { setUp, until } from "./support.ts";

const note = (owner: string, more: Partial<WorkerNote> = {}): WorkerNote => ({
  owner,
  patterns: ["*"],
  functions: [],
  unserved: [],
  ...more,
});
const http = { name: "a/http", sink: { kind: "http" } } as const;
const fn = { name: "a/fn", sink: { kind: "function" } } as const;
const refused = (error: string) => ({ unserved: [{ topic: http.name, code: "address_refused", error }] });

describe("servedBy", () => {
  it("nobody at all, nobody with the right pattern, nobody with the function", () => {
    expect(servedBy([]).why(http)?.code).toBe("no_worker");
    expect(servedBy([note("w", { patterns: ["b/*"] })]).why(http)?.code).toBe("no_worker");
    expect(servedBy([note("w")]).why(http)).toBeNull();
    expect(servedBy([note("w")]).why(fn)).toMatchObject({ code: "no_worker", reason: expect.stringContaining("function") });
    expect(servedBy([note("w"), note("v", { functions: [fn.name] })]).why(fn)).toBeNull();
    expect(servedBy([note("w", { functions: null })]).why(fn), "too many to name").toBeNull();
  });

  it("one that can is enough; if none can, every reason is told", () => {
    expect(servedBy([note("w", refused("loopback")), note("v")]).why(http)).toBeNull();
    const none = servedBy([note("w", refused("loopback")), note("v", refused("private")), note("u", refused("loopback"))]);
    expect(none.why(http)).toEqual({ code: "address_refused", reason: "loopback; private" });
  });

  it("with more workers than a store keeps notes of, nobody is said to be missing", () => {
    const many = Array.from({ length: LIMITS.workersMax }, (_, n) => note(`w${n}`));
    expect(servedBy(many).why(fn)).toBeNull();
  });
});

describe("a worker", () => {
  it("says what it serves when it starts, what it cannot when it finds out, and nothing when it has stopped", async () => {
    const store = createMemoryStore();
    const here = topic("a/here", { sink: () => unserved("not today", { code: "not_today" }) });
    const { mg } = await setUp([here], { store, sharedStore: true });
    await store.topics.put({ ...here.definition, name: "a/elsewhere" }, "api");
    await store.topics.put(
      { ...here.definition, name: "a/broken", sink: { kind: "webhook", url: "https://example.com/" } },
      "api",
    );
    const worker = mg.work({ topics: ["a/*"] });
    await until(async () => (await store.topics.workers())[0]?.unserved.length === 1);
    expect(await store.topics.workers()).toEqual([
      {
        owner: worker.owner,
        patterns: ["a/*"],
        functions: ["a/here"],
        unserved: [{ topic: "a/broken", code: "no_sink", error: "a webhook sink needs at least one secret" }],
      },
    ]);
    await mg.enqueue(here, {});
    await until(async () => (await store.topics.workers())[0]?.unserved.length === 2);
    const served = servedBy(await store.topics.workers());
    expect(served.why(here.definition)).toEqual({ code: "not_today", reason: "not today" });
    expect(served.why({ ...here.definition, name: "a/elsewhere" })?.code).toBe("no_worker");
    await mg.close();
    expect(await store.topics.workers()).toEqual([]);
  });
});
