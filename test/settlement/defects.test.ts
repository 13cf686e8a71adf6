/**
 * Defects of the seeds' client that must not come back, each under its number: attempts, conflicts, quarantine, isolation,
 * overlapping ticks. On the port in memory with a clock that is moved; what needs Redis and real kills stands in the files beside this one.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MakegoodError } from "../../src/message/errors.ts";
import { payloadHash } from "../../src/message/validate.ts";
import { createIds } from "../../src/platform/ids.ts";
import { systemRandom } from "../../src/platform/random.ts";
import type { DLQPort } from "../../src/store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore } from "../../src/store/redis/dlq-port/port.ts";
import type { Store } from "../../src/store/store.ts";
import { until } from "../support/processes.ts";
import { type Billing, startBilling, testSigner } from "./billing.ts";
import { movableClock, request, sceneOf, TEN_MINUTES } from "./scene.ts";

let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing[Symbol.asyncDispose]());

const MINUTE = 60_000;
/** The longest waits that jitter allows. */
const unluckiest = { ...systemRandom, next: () => 0.999_999_999 };

describe("attempts", () => {
  it("DF-13: a replay in memory counts its attempts and comes to an end", async () => {
    billing.answer({ status: 500 });
    await using scene = sceneOf(billing, { dlqStore: undefined });
    await scene.client.finalize(request());
    const terminal: number[] = [];
    for (let i = 0; i < 7; i++) {
      scene.clock.move(TEN_MINUTES);
      terminal.push((await scene.client.replayDeadLetters()).terminal);
    }
    expect(terminal).toEqual([0, 0, 0, 0, 1, 0, 0]);
    expect(await scene.client.getDLQSize()).toBe(0);
    expect(scene.kept.of("terminal drop")).toHaveLength(1);
  });

  it("DF-14: a failed replay raises the count by one and stores nothing else", async () => {
    billing.answer({ status: 500 });
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    const counts: (number | undefined)[] = [];
    for (let i = 0; i < 4; i++) {
      scene.clock.move(TEN_MINUTES);
      await scene.client.replayDeadLetters();
      counts.push((await scene.store.get(given.reservation_id))?.attempt_count);
    }
    expect(counts).toEqual([2, 3, 4, 5]);
    expect(scene.kept.of("entry")).toHaveLength(1);
    expect(await scene.store.count()).toBe(1);
  });

  it("DF-15: five replays after 1, 2, 4, 8 and 10 minutes; the last step is used", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing, { random: unluckiest });
    const given = request();
    await scene.client.finalize(given);
    const replays: number[] = [];
    for (const minutes of [1, 2, 4, 8, 10]) {
      scene.clock.move(minutes * MINUTE - 1_500);
      expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 0 });
      scene.clock.move(1_600);
      const { replayed, terminal } = await scene.client.replayDeadLetters();
      replays.push(replayed + 10 * terminal);
    }
    expect(replays).toEqual([1, 1, 1, 1, 11]);
    expect(billing.callsOf(given.reservation_id)).toHaveLength(6);
  });

  it("FIN-37: a first failure is an entry with attempt_count 1, due within a minute", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    const entry = await scene.store.get(given.reservation_id);
    expect(entry).toMatchObject({ ...given, attempt_count: 1, response_status: 503 });
    const waitMs = Date.parse(entry?.next_attempt_at ?? "") - Date.parse(entry?.created_at ?? "");
    expect(waitMs).toBeGreaterThanOrEqual(30_000 - 50);
    expect(waitMs).toBeLessThanOrEqual(60_000 + 50);
  });

  it("DF-16: a second finalize of a waiting obligation touches neither attempts nor schedule", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    const before = await scene.store.get(given.reservation_id);
    scene.clock.move(10_000);
    expect(await scene.client.finalize({ ...given, trace_id: "told again" })).toMatchObject({ status: "dlq" });
    expect(await scene.store.get(given.reservation_id)).toEqual(before);
    expect(await scene.client.getDLQSize()).toBe(1);
  });
});

describe("what contradicts or has no name", () => {
  it("DF-17: another cost or tenant for a waiting reservation: the first stands, the second is recorded, the alarm rings", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    expect(await scene.client.finalize({ ...given, actual_cost_micro: "2" })).toMatchObject({ status: "dlq" });
    expect(await scene.client.finalize({ ...given, tenant_id: "tenant-2" })).toMatchObject({ status: "dlq" });
    expect(await scene.store.get(given.reservation_id)).toMatchObject(given);
    const quarantined = (await scene.store.listQuarantine()).map(({ fields }) => [fields.actual_cost_micro, fields.tenant_id]);
    expect(quarantined).toEqual([
      ["2", "tenant-1"],
      ["1500000", "tenant-2"],
    ]);
    expect(scene.kept.of("conflict")).toHaveLength(2);
  });

  it("DF-17: a second cost for a settled reservation is a dead letter, because the receiver knows the first", async () => {
    billing.answer("honest");
    await using scene = sceneOf(billing);
    const given = request();
    expect(await scene.client.finalize(given)).toMatchObject({ status: "finalized" });
    expect(await scene.client.finalize({ ...given, actual_cost_micro: "2" })).toMatchObject({
      status: "dlq",
      reason: expect.stringContaining("settled_differently"),
    });
    expect(billing.ledger.get(given.reservation_id)?.amount).toBe("1500000");
  });

  it("DF-18: requests without a reservation id are each kept under an id of their own", async () => {
    billing.answer("honest");
    await using scene = sceneOf(billing);
    const before = billing.calls.length;
    const results = await Promise.all(
      ["", undefined, null, 7].map((id) => scene.client.finalize(request({ reservation_id: id as string }))),
    );
    const ids = results.map((result) => (result.ok ? "" : result.id));
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(await scene.store.getTerminal(id)).toMatchObject({ actual_cost_micro: "1500000" });
    expect(billing.calls.length).toBe(before);
  });

  it.each([
    ["negative", "-5"],
    ["a decimal", "1.5"],
    ["a number", 1.5],
    ["an exponent", "1e6"],
    ["a leading zero", "007"],
    ["a plus", "+7"],
    ["minus zero", "-0"],
    ["words", "abc"],
    ["empty", ""],
    ["missing", undefined],
    ["31 digits", "1".repeat(31)],
    ["not a number", Number.NaN],
    ["ten kilobytes", "9".repeat(10_000)],
  ])("FIN-43: a cost that is %s never throws, never leaves, and ends as dlq under a generated id", async (_name, value) => {
    billing.answer("honest");
    await using scene = sceneOf(billing);
    const given = request({ actual_cost_micro: value as string });
    const result = await scene.client.finalize(given);
    expect(result).toMatchObject({ ok: false, status: "dlq", id: expect.stringMatching(/^invalid-/) });
    const record = await scene.store.getTerminal(result.ok ? "" : result.id);
    expect(record?.terminal_reason).toContain(given.reservation_id);
    expect(billing.callsOf(given.reservation_id)).toHaveLength(0);
    // The reservation itself is not taken: the same one with a good cost goes through.
    expect(await scene.client.finalize({ ...given, actual_cost_micro: "5" })).toMatchObject({ status: "finalized" });
  });

  it("FIN-43: a getter that throws, a revoked proxy and a cycle are dead letters too", async () => {
    await using scene = sceneOf(billing);
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const cycle: Record<string, unknown> = {};
    cycle.reservation_id = cycle;
    const throwing = {
      get reservation_id(): string {
        throw new Error("no");
      },
    };
    for (const input of [proxy, cycle, throwing]) {
      expect(await scene.client.finalize(input as never)).toMatchObject({ status: "dlq", stored: "memory" });
    }
    expect(await scene.store.listTerminal()).toHaveLength(3);
  });
});

/** The port in memory on a store whose calls fail as a network does; what stays outside of our reach in a real server. */
function failing(port: DLQPort, ...names: (keyof Store)[]): DLQPort {
  const broken = Object.fromEntries(
    names.map((name) => [name, () => Promise.reject(new MakegoodError("store_unavailable", `${name} failed`))]),
  );
  return { ...port, store: { ...port.store, ...broken } };
}

describe("isolation", () => {
  it("DF-21: an entry that cannot be read takes no other with it, and the counts are real", async () => {
    billing.answer("honest");
    await using scene = sceneOf(billing);
    const others = [request(), request(), request()];
    const kept = { reason: "test", response_status: null, attempt_count: 1 };
    for (const one of others) await scene.store.put({ ...one, ...kept }, { delayMs: 0 });
    const payload = '{"reservation_id":';
    const bad = {
      id: createIds()(),
      topic: "billing/finalize",
      tenantId: "t",
      key: "bad",
      payload,
      payloadHash: payloadHash(payload),
    };
    const rest = { delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
    await scene.store.store.enqueue([{ ...bad, ...rest }]);
    expect(await scene.client.replayDeadLetters()).toEqual({ replayed: 4, succeeded: 3, failed: 0, terminal: 1 });
    for (const { reservation_id } of others) expect(billing.ledger.has(reservation_id)).toBe(true);
    expect(await scene.store.listTerminal()).toMatchObject([{ terminal_reason: "invalid_request: its payload cannot be read" }]);
  });

  it("DF-21: a signer that fails for one tenant delays that one alone", async () => {
    const good = testSigner();
    billing.answer({ status: 503 });
    let broken: boolean = false;
    const s2sSigner = {
      sign: (claims: Parameters<typeof good.sign>[0]) =>
        broken && claims.tenantId === "bad" ? Promise.reject(new Error("no key")) : good.sign(claims),
    };
    await using scene = sceneOf(billing, { s2sSigner });
    await scene.client.finalize(request({ tenant_id: "bad" }));
    await scene.client.finalize(request());
    broken = true;
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toEqual({ replayed: 2, succeeded: 1, failed: 1, terminal: 0 });
    expect(scene.kept.of("credentials")).toMatchObject([{ code: "signing_failed" }]);
  });

  it("Build 6: a key that is missing for days spends no attempt, and the obligation is settled when it is there", async () => {
    const good = testSigner();
    let broken: boolean = true;
    const s2sSigner = {
      sign: (claims: Parameters<typeof good.sign>[0]) => (broken ? Promise.reject(new Error("no key")) : good.sign(claims)),
    };
    billing.answer("honest");
    await using scene = sceneOf(billing, { s2sSigner });
    const given = request();
    await scene.client.finalize(given);
    for (let n = 0; n < 12; n++) {
      scene.clock.move(TEN_MINUTES);
      expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 1, failed: 1, terminal: 0 });
    }
    broken = false;
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ succeeded: 1 });
    expect(billing.ledger.has(given.reservation_id)).toBe(true);
  });

  it("a signer that throws, hangs or answers nonsense ends as dlq within the deadline", async () => {
    billing.answer("honest");
    const signers = [
      () => {
        throw new Error("at once");
      },
      () => Promise.reject(new Error("later")),
      () => new Promise<string>(() => undefined),
      async () => "two\r\nlines: yes",
      async () => undefined as unknown as string,
    ];
    for (const sign of signers) {
      await using scene = sceneOf(billing, { s2sSigner: { sign }, timeoutMs: 50 });
      expect(await scene.client.finalize(request())).toMatchObject({
        status: "dlq",
        reason: expect.stringContaining("signing_failed"),
      });
    }
  });

  it("FIN-36: replayDeadLetters never throws; a store that fails gives zeros and a line", async () => {
    const store = failing(createMemoryDLQStore(), "lanes", "counts", "list");
    await using scene = sceneOf(billing, { dlqStore: store });
    expect(await scene.client.replayDeadLetters()).toEqual({ replayed: 0, succeeded: 0, failed: 0, terminal: 0 });
    expect(scene.kept.of("STORE FAILURE")).toContainEqual(expect.objectContaining({ level: "error", during: "replay" }));
  });

  it("DF-11, FIN-41: a store that refuses leaves the entry in memory and whole in the log, and finalize says dlq", async () => {
    const store = failing(createMemoryDLQStore(), "enqueue");
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing, { dlqStore: store });
    const given = request();
    expect(await scene.client.finalize(given)).toMatchObject({ ok: false, status: "dlq", stored: "memory", survives: "nothing" });
    expect(scene.kept.lines.filter(({ level }) => level === "error").find(({ entry }) => entry)?.entry).toMatchObject(given);
    expect(scene.kept.of("degraded")).toMatchObject([{ from: "memory", to: "memory", reason: "enqueue failed" }]);
    expect(await scene.client.getDLQSize()).toBe(1);
  });

  it("CON-27: a replay whose process dies again and again comes to an end", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    billing.answer("honest");
    let lost = 0;
    while ((await scene.store.getTerminal(given.reservation_id)) === null && lost < 20) {
      scene.clock.move(TEN_MINUTES);
      if ((await scene.store.claimForReplay(given.reservation_id, 1_000)) !== null) lost++;
    }
    // Twice it is only suspected, then each counts.
    expect(lost).toBe(7);
    expect(billing.callsOf(given.reservation_id)).toHaveLength(1);
  });
});

describe("ticks", () => {
  it("DF-23: calls during a pass share it, and nothing is sent twice", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    const given = [request(), request(), request()];
    for (const one of given) await scene.client.finalize(one);
    billing.answer((call) =>
      given.some(({ reservation_id }) => reservation_id === call.reservationId) ? { status: 200, afterMs: 50 } : "honest",
    );
    scene.clock.move(TEN_MINUTES);
    const passes = await Promise.all([1, 2, 3].map(() => scene.client.replayDeadLetters()));
    expect(passes).toEqual(passes.map(() => ({ replayed: 3, succeeded: 3, failed: 0, terminal: 0 })));
    for (const { reservation_id } of given) expect(billing.callsOf(reservation_id)).toHaveLength(2);
  });

  it("DF-23: entries that others claimed do not starve the rest", async () => {
    const clock = movableClock();
    const store = createMemoryDLQStore({ clock, batchLimit: 5 });
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing, { dlqStore: store, clock });
    const given = Array.from({ length: 10 }, () => request());
    for (const one of given) await store.put({ ...one, reason: "test", response_status: null, attempt_count: 1 }, { delayMs: 0 });
    for (const { reservation_id } of given.slice(0, 5)) await store.claimForReplay(reservation_id, 60_000);
    billing.answer("honest");
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 5, succeeded: 5 });
    for (const { reservation_id } of given.slice(5)) expect(billing.ledger.has(reservation_id)).toBe(true);
  });

  it("DF-23: a started client replays by itself, with one worker however often it is started, until it is closed", async () => {
    billing.answer({ status: 503 });
    const scene = sceneOf(billing, { retryDelaysMs: [20], maxRetries: 1_000 });
    const given = request();
    await scene.client.finalize(given);
    billing.answer("honest");
    scene.client.start({ everyMs: 1_000 });
    scene.client.start({ everyMs: 1_000 });
    await until("it is settled", async () => (await scene.store.count()) === 0);
    expect(billing.callsOf(given.reservation_id)).toHaveLength(2);
    billing.answer({ status: 503 });
    const later = request();
    await scene.client.finalize(later);
    await scene.client.close();
    const calls = billing.callsOf(later.reservation_id).length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(billing.callsOf(later.reservation_id)).toHaveLength(calls);
  });

  it("FIN-45: two clients share nothing", async () => {
    billing.answer({ status: 503 });
    await using one = sceneOf(billing, { dlqStore: undefined });
    await using two = sceneOf(billing, { dlqStore: undefined });
    await one.client.finalize(request());
    expect([await one.client.getDLQSize(), await two.client.getDLQSize()]).toEqual([1, 0]);
    expect(two.client.counts()).toMatchObject({ dlq: 0 });
  });
});
