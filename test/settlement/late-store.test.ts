/**
 * A store that opens late, a reservation that a person has closed, hooks that throw, and the client's own ERROR line: what the attack found (N2, N8, N11).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MakegoodError } from "../../src/message/errors.ts";
import { createSettlementClient } from "../../src/presets/settlement/client.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { readLine } from "../../src/store/ladder/format/error-line.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createMemoryDLQStore } from "../../src/store/redis/dlq-port/port.ts";
import type { Store } from "../../src/store/store.ts";
import { freshDirectory } from "../journal/support.ts";
import { fragile } from "../ladder/support.ts";
import { until } from "../support/processes.ts";
import { type Billing, startBilling, testSigner } from "./billing.ts";
import { keptLog, movableClock, request, sceneOf, TEN_MINUTES } from "./scene.ts";

let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing[Symbol.asyncDispose]());

/** Says that it is durable, and opens when it is told to. */
function lateStore() {
  const inner = createMemoryStore();
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const store: Store = {
    ...inner,
    traits: { ...inner.traits, name: "late", survives: "power-loss" },
    open: () => opened.then(() => inner.open()),
  };
  return { store, inner, open };
}

describe("N2: a store that opens late", () => {
  it("what fails meanwhile moves up, dead letters are listed, and nobody says ready before", async () => {
    const { store, inner, open } = lateStore();
    const kept = keptLog();
    const makegood = { errorLog: () => undefined };
    await using client = createSettlementClient({
      billingUrl: billing.url,
      s2sSigner: testSigner(),
      dlqStore: store,
      log: kept.log,
      makegood,
    });
    billing.answer({ status: 503 });
    const [waits, invalid] = [request(), request({ actual_cost_micro: "x" })];
    for (const one of [waits, invalid]) {
      expect(await client.finalize(one)).toMatchObject({ status: "dlq", stored: "memory", survives: "nothing" });
    }
    expect(client.isDurable()).toBe(false);
    expect(await client.health()).toMatchObject({ dlq_durable: false, ready_for_billing: false });
    await expect(client.ready({ timeoutMs: 30 })).rejects.toThrow("not open within");
    await expect(client.ready({ signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
    const ready = client.ready();
    open();
    await ready;
    await until("moved up", async () => (await inner.list({ topic: "billing/finalize", limit: 10 })).data.length === 2);
    const { data } = await inner.list({ topic: "billing/finalize", limit: 10 });
    expect(data.map(({ status }) => status).toSorted()).toEqual(["dead", "pending"]);
    await until("durable", () => client.isDurable());
    await until("ready for billing", async () => (await client.health()).ready_for_billing);
  });

  it("a store that refuses us: ready() says why, what fails is below, and it moves up when it is mended", async () => {
    const inner = createMemoryStore();
    let refuses: boolean = true;
    const open = async (): Promise<void> => {
      if (refuses) throw new MakegoodError("durable_entries_left", "entries of the layout before");
      return inner.open();
    };
    const store: Store = { ...inner, traits: { ...inner.traits, name: "strict", survives: "power-loss" }, open };
    const kept = keptLog();
    const given = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, log: kept.log };
    await using client = createSettlementClient({ ...given, makegood: { errorLog: () => undefined } });
    billing.answer({ status: 503 });
    expect(await client.finalize(request())).toMatchObject({ status: "dlq", stored: "memory", survives: "nothing" });
    await expect(client.ready()).rejects.toMatchObject({ code: "durable_entries_left" });
    expect(kept.of("STORE FAILURE")).toMatchObject([{ during: "open" }]);
    refuses = false;
    await until("moved up", async () => (await inner.list({ topic: "billing/finalize", limit: 10 })).data.length === 1);
    await client.ready();
    await until("durable", () => client.isDurable());
  });

  it("with a journal it is on disk from the first call on", async () => {
    const { store, open } = lateStore();
    const directory = await freshDirectory();
    const given = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, log: keptLog().log };
    await using client = createSettlementClient({ ...given, journalDir: directory });
    billing.answer({ status: 503 });
    const one = request();
    expect(await client.finalize(one)).toMatchObject({ stored: "journal", survives: "power-loss" });
    const { entries } = await readJournal({ directory });
    expect(entries.map(({ entry }) => entry?.message.key)).toEqual([one.reservation_id]);
    open();
    await client.ready();
  });
});

const fail = (): never => {
  throw new Error("no log");
};

it("Build 2: nothing is durable while something lies where it survives nothing, also when the store itself is back", async () => {
  const [primary, secondary] = [fragile(), fragile(false)];
  await using scene = sceneOf(billing, { dlqStore: primary.store, makegood: { secondary: secondary.store, errorLog: () => {} } });
  await scene.client.ready();
  await until("all was looked at", () => scene.client.isDurable());
  primary.mode = "refuses";
  billing.answer({ status: 503 });
  expect(await scene.client.finalize(request())).toMatchObject({ stored: "secondary", survives: "nothing" });
  secondary.mode = "refuses";
  primary.mode = "up";
  expect(await scene.client.finalize(request())).toMatchObject({ stored: "primary" });
  expect(scene.client.isDurable()).toBe(false);
  expect(await scene.client.health()).toMatchObject({ dlq_durable: false, ready_for_billing: false });
  secondary.mode = "up";
  await until("it has moved up", () => scene.client.isDurable());
});

describe("N8", () => {
  it.each(["resolved", "discarded"] as const)(
    "a finalize for a reservation that was %s says so, in its result and in a line",
    async (as) => {
      await using scene = sceneOf(billing);
      const given = request();
      billing.answer({ status: 422 });
      await scene.client.finalize(given);
      await scene.store.resolveTerminal(given.reservation_id, { as, actor: "ada", reason: "by hand" });
      billing.answer({ status: 503 });
      for (const one of [given, { ...given, trace_id: "another" }]) {
        expect(await scene.client.finalize(one)).toMatchObject({
          status: "dlq",
          closed: as,
          reason: expect.stringContaining(`${as} by ada (by hand)`),
        });
      }
      expect(scene.kept.of("DLQ closed")).toHaveLength(2);
      expect(scene.kept.of("DLQ closed")[0]).toMatchObject({ level: "error", resolution: as, entry: given });
    },
  );

  it("so does one that was told while the store was away, when it meets the closed one; another trace is no contradiction", async () => {
    const primary = fragile();
    await using scene = sceneOf(billing, { dlqStore: primary.store, journalDir: await freshDirectory() });
    await scene.client.ready();
    const given = request();
    billing.answer({ status: 422 });
    await scene.client.finalize(given);
    const [first] = (await primary.store.list({ topic: "billing/finalize", limit: 1 })).data;
    await primary.store.intervene({ id: first?.id as string, action: "resolve", actor: "ada", reason: "by hand" });
    primary.mode = "refuses";
    billing.answer({ status: 503 });
    for (const trace_id of ["trace-1", "another"])
      expect(await scene.client.finalize({ ...given, trace_id })).toMatchObject({ stored: "journal", survives: "power-loss" });
    expect(scene.kept.of("conflict")).toEqual([]);
    primary.mode = "up";
    await until("named", async () => scene.kept.of("DLQ closed").length > 0);
    const entry = { reservation_id: given.reservation_id, reason: expect.stringContaining("resolved by ada (by hand)") };
    expect(scene.kept.of("DLQ closed")).toMatchObject([{ level: "error", resolution: "resolved", entry }]);
    expect((await primary.store.list({ topic: "billing/finalize", limit: 9 })).data).toHaveLength(1);
  });

  it("after replayTerminal there are exactly maxRetries replays", async () => {
    await using scene = sceneOf(billing);
    const given = request();
    billing.answer({ status: 422 });
    await scene.client.finalize(given);
    billing.answer({ status: 500 });
    await scene.store.replayTerminal(given.reservation_id);
    let replayed = 0;
    for (let n = 0; n < 8; n++) {
      replayed += (await scene.client.replayDeadLetters()).replayed;
      scene.clock.move(TEN_MINUTES);
    }
    expect(replayed).toBe(5);
    expect(await scene.store.getTerminal(given.reservation_id)).toMatchObject({ resolution: "open" });
  });

  /** A promise that nobody waits for would end the process; here it would end the run. */
  it.each([
    ["throws", (): never => fail()],
    ["rejects", async (): Promise<void> => fail()],
  ])("a log that %s changes no result and ends no process; members that are undefined are absent", async (_how, throws) => {
    const log = { debug: throws, info: throws, warn: throws, error: throws };
    await using scene = sceneOf(billing, { log, makegood: { errorLog: throws, onEvent: throws } });
    billing.answer({ status: 503 });
    const { trace_id: _, ...given } = request();
    expect(await scene.client.finalize({ ...given, trace_id: undefined, event_id: undefined } as never)).toMatchObject({
      status: "dlq",
      id: given.reservation_id,
    });
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ succeeded: 1 });
  });
});

describe("N11", () => {
  it("the client's ERROR line is read back by journal import, as what it was", async () => {
    const lines: string[] = [];
    const write = (_text: string, fields?: object): void => void lines.push(JSON.stringify({ level: "error", ...fields }));
    const clock = movableClock();
    const store = createMemoryDLQStore({ clock });
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: write };
    await using scene = sceneOf(billing, { log, dlqStore: store, clock });
    const [waits, dead] = [request(), request()];
    billing.answer(({ reservationId }) => ({ status: reservationId === waits.reservation_id ? 503 : 422 }));
    for (const one of [waits, dead]) await scene.client.finalize(one);
    // What can never be sent says so also when it comes from a line.
    for (const one of [request({ actual_cost_micro: "x" }), { ...waits, actual_cost_micro: "2" }])
      await scene.client.finalize(one);
    const read = lines.flatMap((line) => readLine(line, null) ?? []);
    expect(read).toMatchObject([
      { ok: true, entry: { message: { topic: "billing/finalize", key: waits.reservation_id, directTry: { code: "http_503" } } } },
      { ok: true, entry: { message: { key: dead.reservation_id, directTry: { rejected: true } } } },
      { ok: true, entry: { message: { key: expect.stringContaining("invalid-"), directTry: { rejected: true } } } },
      { ok: true, entry: { message: { key: expect.stringContaining("conflict-"), directTry: { rejected: true } } } },
    ]);
    expect(lines.filter((line) => line.includes("makegood_entry"))).toHaveLength(4);
    const stored = await store.store.list({ topic: "billing/finalize", limit: 10 });
    for (const { id, payload } of stored.data) {
      expect(read.find((one) => one.ok && one.entry.message.id === id)).toMatchObject({ entry: { message: { payload } } });
    }
  });
});
