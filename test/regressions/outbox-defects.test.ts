/**
 * Defects of the seeds' outbox that must not be rebuilt, by their numbers, where the conformance suite does not carry them
 * already (DO-1, 2, 3, 5, 6, 8, 10, 19, 20, 21 are in them; DO-9 and DO-11 also in faults 22 and 33).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { scene } from "../faults/scene.ts";
import { until } from "../support/processes.ts";

vi.setConfig({ testTimeout: 60_000 });

describe("outbox defects", () => {
  it("DO-4: a batch that takes longer than its lease, one message after the other, is not delivered twice", async () => {
    const started: string[] = [];
    const sink = async (_payload: unknown, { id }: { id: string }): Promise<void> => {
      started.push(id);
      await sleep(300);
    };
    const declared = topic("slow/batch", { sink, leaseMs: 1_000, concurrency: 1 });
    await using stage = await scene({ topics: [declared], concurrency: 1 });
    await using other = await createMakegood({
      store: createPostgresStore({ url: stage.url, schema: stage.schema }),
      topics: [declared],
      concurrency: 1,
      pollMs: 100,
    });
    const ids = await stage.send("slow/batch", 12);
    stage.mg.work();
    await until("the first worker has begun", () => started.length > 0);
    other.work();
    await stage.settled();
    expect({ starts: started.length, ids: new Set(started) }).toEqual({ starts: 12, ids: new Set(ids) });
    expect(await stage.check({ attemptsMax: 1 })).toEqual([]);
  });

  it("DO-7: the claim's order is served by an index, without a sort, however deep the lane is", async () => {
    await using stage = await scene({ topics: [topic("deep/lane")] });
    await stage.mg.enqueue("deep/lane", 0);
    await stage.sql(
      `insert into ready (due, id, lane_id) select statement_timestamp(), next_id(), (select min(id) from lane) from generate_series(1, 20000)`,
    );
    await stage.sql("analyze ready");
    const plan = await stage.sql(
      "explain select ctid, * from ready where lane_id = (select min(id) from lane) and due <= now() order by due, id limit 500 for update skip locked",
    );
    const text = plan.map((row) => String(row["QUERY PLAN"])).join("\n");
    expect(text).toMatch(/Index (Only )?Scan using ready_due/);
    expect(text).not.toContain("Sort");
  });

  it("DO-11: a receiver that is out of order costs nobody his budget; a message that is wrong costs only its own", async () => {
    const retry = { attemptsMax: 2, baseMs: 50, maxMs: 50 };
    const mended = new AbortController();
    const sink = (payload: unknown) => {
      if (payload === "wrong") return { kind: "reject", code: "wrong", error: "will never fit" };
      if (!mended.signal.aborted) throw new Error("the receiver is down");
      return undefined;
    };
    await using stage = await scene({ topics: [topic("out/age", { sink, retry })], concurrency: 4 });
    await stage.send("out/age", 200);
    stage.mg.work();
    await until("the breaker holds", () => stage.of("breaker").some(({ state }) => state === "open"));
    await sleep(2_000);
    // Only those that were under way or probed spent anything: the other hundreds wait with their budget whole.
    const [spent] = await stage.sql("select count(distinct message_id)::int as n from attempt where counted");
    expect(Number(spent?.n)).toBeLessThan(40);
    mended.abort();
    const { id } = await stage.mg.enqueue("out/age", "wrong");
    await stage.settled();
    expect(await stage.store.get(id)).toMatchObject({ status: "dead", attempts: 1 });
    expect((await stage.counts()).delivered).toBeGreaterThan(160);
  });

  it("DO-12: a dead letter is announced, counted and recoverable", async () => {
    const mended = new AbortController();
    const sink = () => {
      if (!mended.signal.aborted) throw new Error("no");
    };
    await using stage = await scene({ topics: [topic("un/billed", { sink, retry: { attemptsMax: 1 } })] });
    stage.mg.work();
    const { id } = await stage.mg.enqueue("un/billed", { amount: 5 });
    await until("it is announced", () => stage.of("attempt").some((event) => event.id === id && event.status === "dead"));
    const [dead] = (await stage.store.counts()).filter(({ status }) => status === "dead");
    expect(dead).toMatchObject({ topic: "un/billed", resolution: "open", count: 1 });
    mended.abort();
    await stage.mg.replay(id, { actor: "person", reason: "the receiver is mended" });
    await stage.settled();
    expect(await stage.store.get(id)).toMatchObject({ status: "delivered" });
    expect((await stage.store.history(id)).provenance).toMatchObject([{ actor: "person", action: "replay" }]);
  });

  it("DO-16: what is settled stays settled, what was promised stays as it was: the tables refuse anything else", async () => {
    await using stage = await scene({ topics: [topic("fixed/it", { sink: () => undefined })] });
    stage.mg.work();
    const { id } = await stage.mg.enqueue("fixed/it", 1);
    await stage.settled();
    await stage.mg.enqueue("fixed/it", 2, { delayMs: 60_000 });
    const refused: [string, RegExp][] = [
      ["update message set payload = '2'", /append-only/],
      ["update attempt set outcome = 3", /append-only/],
      ["update ready set due = now()", /append-only/],
      [`insert into ready (due, id, lane_id, attempts) values (now(), '${id}', 1, -1)`, /check constraint/],
      [`insert into attempt (message_id, lease_id, n, outcome) values ('${id}', 0, 1, 9)`, /check constraint/],
      ["update topic set breaker_state = 7", /check constraint/],
      ["insert into lane (topic_id, priority) select id, 101 from topic", /check constraint/],
    ];
    for (const [text, reason] of refused) await expect(stage.sql(text), text).rejects.toThrow(reason);
    await expect(stage.mg.replay(id, { actor: "person" })).rejects.toMatchObject({ code: "wrong_state" });
  });

  it("DO-17: an error is kept bounded and writable, whatever the receiver said", async () => {
    const sink = () => {
      throw new Error(`\u0000${"boom \ud800 ".repeat(50_000)}`);
    };
    await using stage = await scene({ topics: [topic("long/error", { sink, retry: { attemptsMax: 1 } })] });
    stage.mg.work();
    const { id } = await stage.mg.enqueue("long/error", 1);
    await stage.settled();
    const view = await stage.store.get(id);
    expect(view).toMatchObject({ status: "dead", lastCode: "handler_error" });
    expect(view?.lastError).toContain("boom");
    expect(Buffer.byteLength(view?.lastError ?? "")).toBeLessThanOrEqual(2_048);
    expect(view?.lastError).not.toContain("\u0000");
  });
});
