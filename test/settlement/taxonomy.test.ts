/**
 * Every answer of the billing service and what becomes of the obligation (T-6, DF-19, DF-20): settled, waiting, or a dead letter.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../support/processes.ts";
import { type Billing, type Reply, startBilling, testSigner } from "./billing.ts";
import { request, sceneOf, TEN_MINUTES } from "./scene.ts";

let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing[Symbol.asyncDispose]());

const agreed = (call: { reservationId: string; accountId: string; actualCostMicro: string }, over: object = {}) => ({
  reservationId: call.reservationId,
  accountId: call.accountId,
  actualCostMicro: call.actualCostMicro,
  state: "finalized",
  ...over,
});

const SETTLED = [200, 201, 202, 204];
const REJECTED = [400, 402, 413, 422];
const MISPLACED = [301, 302, 307, 308, 404, 405, 410, 421];
const RETRIED = [401, 403, 408, 425, 429, 500, 502, 503, 504, 507];

describe("statuses", () => {
  it.each(SETTLED)("%i is finalized", async (status) => {
    billing.answer({ status });
    await using scene = sceneOf(billing);
    expect(await scene.client.finalize(request())).toEqual({ ok: true, status: "finalized" });
    expect(await scene.client.getDLQSize()).toBe(0);
  });

  it.each(REJECTED)("DF-19: %i is a dead letter at once and is never replayed", async (status) => {
    billing.answer({ status, body: "no" });
    await using scene = sceneOf(billing);
    const given = request();
    const result = await scene.client.finalize(given);
    expect(result).toMatchObject({ ok: false, status: "dlq", id: given.reservation_id });
    expect(await scene.client.getDLQSize()).toBe(0);
    expect(await scene.store.getTerminal(given.reservation_id)).toMatchObject({ resolution: "open", response_status: status });
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 0 });
    expect(billing.callsOf(given.reservation_id)).toHaveLength(1);
  });

  it.each(RETRIED)("DF-19: %i waits for a replay", async (status) => {
    billing.answer({ status });
    await using scene = sceneOf(billing);
    const given = request();
    expect(await scene.client.finalize(given)).toMatchObject({ ok: false, status: "dlq" });
    expect(await scene.store.get(given.reservation_id)).toMatchObject({ attempt_count: 1, response_status: status });
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toEqual({ replayed: 1, succeeded: 1, failed: 0, terminal: 0 });
    expect(await scene.client.getDLQSize()).toBe(0);
    expect(billing.ledger.get(given.reservation_id)).toMatchObject({ amount: given.actual_cost_micro });
  });

  it.each(MISPLACED)(
    "N15: %i of the whole address waits with an alarm; of this reservation it is a dead letter (DF-19)",
    async (status) => {
      billing.answer({ status, body: "<html>nothing here</html>" });
      await using scene = sceneOf(billing);
      const [waits, dies] = [request(), request()];
      expect(await scene.client.finalize(waits)).toMatchObject({
        status: "dlq",
        reason: expect.stringContaining(`http_${status}: `),
      });
      expect(await scene.store.get(waits.reservation_id)).toMatchObject({ attempt_count: 1, response_status: status });
      expect(scene.kept.of("refuses our credentials or configuration")).toMatchObject([{ code: `http_${status}` }]);
      billing.answer({ status, body: { reservationId: dies.reservation_id, state: "unknown" } });
      await scene.client.finalize(dies);
      expect(await scene.store.getTerminal(dies.reservation_id)).toMatchObject({ resolution: "open", response_status: status });
    },
  );

  it.each([301, 404])(
    "N15: %i of the whole address is an outage: no replay is charged, and all goes on when it is put right",
    async (status) => {
      billing.answer({ status, body: "<html>nothing here</html>" });
      await using scene = sceneOf(billing);
      const owed = [request(), request()];
      for (const one of owed) await scene.client.finalize(one);
      for (let pass = 0; pass < 8; pass++) {
        scene.clock.move(TEN_MINUTES);
        await scene.client.replayDeadLetters();
      }
      for (const { reservation_id: id } of owed) expect(await scene.store.get(id)).toMatchObject({ attempt_count: 1 });
      billing.answer("honest");
      scene.clock.move(TEN_MINUTES);
      await scene.client.replayDeadLetters();
      await expect.poll(() => scene.client.getDLQSize()).toBe(0);
      for (const { reservation_id: id } of owed) expect(billing.ledger.has(id)).toBe(true);
    },
  );

  it("N12, FIN-67: nothing of what the receiver says is kept, logged or shown", async () => {
    const secret = "4111111111111111 ada@example.org";
    for (const status of [301, 400, 404, 409, 422, 429, 500]) {
      billing.answer({ status, body: status === 409 ? { state: "failed", note: secret } : `card ${secret}` });
      await using scene = sceneOf(billing, { maxRetries: 1 });
      const given = request();
      const result = await scene.client.finalize(given);
      scene.clock.move(TEN_MINUTES);
      await scene.client.replayDeadLetters();
      const messages = await scene.store.store.list({ limit: 10 });
      const histories = await Promise.all(messages.data.map(({ id }) => scene.store.store.history(id)));
      const kept = [await scene.store.get(given.reservation_id), await scene.store.listTerminal()];
      const all = JSON.stringify([result, scene.kept.lines, messages, histories, kept, await scene.client.health()]);
      expect(all).not.toMatch(/4111|example\.org/);
      expect(all).toContain(status === 409 ? "settled_differently" : `http_${status}`);
    }
  });

  it.each([401, 403])("DF-19: %i also rings the alarm", async (status) => {
    billing.answer({ status });
    await using scene = sceneOf(billing);
    await scene.client.finalize(request());
    expect(scene.kept.of("refuses our credentials")).toMatchObject([{ level: "error", code: `http_${status}` }]);
  });

  it("DF-19: Retry-After is honoured, up to an hour", async () => {
    billing.answer({ status: 429, headers: { "retry-after": "1200" } });
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    billing.answer("honest");
    scene.clock.move(19 * 60_000);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 0 });
    scene.clock.move(61_000);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 1, succeeded: 1 });
  });
});

describe("without an answer", () => {
  it("DF-34: a timeout after the service acted is settled by a replay with the same key, once", async () => {
    billing.answer((_call, nth) => (nth === 1 ? "act-and-hang" : "honest"));
    await using scene = sceneOf(billing, { timeoutMs: 100 });
    const given = request();
    expect(await scene.client.finalize(given)).toMatchObject({ status: "dlq", reason: expect.stringContaining("timeout") });
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 1, succeeded: 1 });
    expect(billing.callsOf(given.reservation_id).map(({ key }) => key)).toEqual([given.reservation_id, given.reservation_id]);
    expect(scene.client.counts()).toMatchObject({ unverified: 0 });
  });

  it("CON-15: a broken connection is tried again at once, at most twice", async () => {
    billing.answer((_call, nth) => (nth === 1 ? "act-and-reset" : "honest"));
    await using scene = sceneOf(billing);
    expect(await scene.client.finalize(request())).toEqual({ ok: true, status: "idempotent" });
    billing.answer("reset");
    const given = request();
    expect(await scene.client.finalize(given)).toMatchObject({ status: "dlq" });
    expect(billing.callsOf(given.reservation_id).length).toBeLessThanOrEqual(3);
  });

  it("a refused connection waits for a replay", async () => {
    const gone = await startBilling();
    await gone[Symbol.asyncDispose]();
    await using scene = sceneOf(gone);
    expect(await scene.client.finalize(request())).toMatchObject({
      status: "dlq",
      reason: expect.stringContaining("connection_refused"),
    });
    expect(await scene.client.getDLQSize()).toBe(1);
  });

  it("EV-8: five failures open the breaker; what was not sent spends no attempt, and all are settled when the service is back", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    const before = billing.calls.length;
    const given = Array.from({ length: 8 }, () => request());
    for (const one of given) expect(await scene.client.finalize(one)).toMatchObject({ status: "dlq" });
    expect(billing.calls.length - before).toBe(5);
    expect(await scene.client.getDLQSize()).toBe(8);
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    await until("all are settled", async () => {
      await scene.client.replayDeadLetters();
      return (await scene.client.getDLQSize()) === 0;
    });
    expect(given.filter(({ reservation_id }) => billing.ledger.has(reservation_id))).toHaveLength(8);
  });

  it.each(["signing_failed", "settlement_in_progress"])(
    "N4: %s of one tenant, again and again, stops no other tenant",
    async (code) => {
      const good = testSigner();
      const s2sSigner = {
        sign: (claims: Parameters<typeof good.sign>[0]) =>
          code === "signing_failed" && claims.tenantId === "bad" ? Promise.reject(new Error("no key")) : good.sign(claims),
      };
      billing.answer(({ accountId }) => (accountId === "bad" ? { status: 409, body: { state: "processing" } } : "honest"));
      await using scene = sceneOf(billing, { s2sSigner });
      for (let n = 0; n < 12; n++) {
        expect(await scene.client.finalize(request({ tenant_id: "bad" }))).toMatchObject({
          reason: expect.stringContaining(code),
        });
        expect(await scene.client.finalize(request())).toEqual({ ok: true, status: "finalized" });
      }
    },
  );
});

describe("DF-20: a 409 is as good as what stands in it", () => {
  const cases: [string, (call: Parameters<typeof agreed>[0]) => unknown, "idempotent" | "dead" | "waits", number][] = [
    ["the same amount, settled", (call) => agreed(call), "idempotent", 0],
    [
      "snake_case and nested",
      ({ actualCostMicro }) => ({ reservation: { actual_cost_micro: actualCostMicro, status: "SETTLED" } }),
      "idempotent",
      0,
    ],
    ["printed over several lines", (call) => JSON.stringify(agreed(call), null, 2), "idempotent", 0],
    ["another amount", (call) => agreed(call, { actualCostMicro: "1500001" }), "dead", 0],
    ["another account", (call) => agreed(call, { accountId: "tenant-2" }), "dead", 0],
    ["released", (call) => agreed(call, { state: "released" }), "dead", 0],
    ["another amount and no state", () => ({ actual_cost_micro: "7" }), "dead", 0],
    ["still under way", (call) => agreed(call, { state: "processing" }), "waits", 0],
    ["nothing in it", () => "", "idempotent", 1],
    ["not JSON", () => "<html>conflict</html>", "idempotent", 1],
    ["an amount without a state", ({ actualCostMicro }) => ({ actualCostMicro }), "idempotent", 1],
    ["a state without an amount", () => ({ state: "finalized" }), "idempotent", 1],
    ["an amount that a double has rounded", () => '{"actualCostMicro":9007199254740993,"state":"finalized"}', "idempotent", 1],
  ];
  it.each(cases)("%s", async (_name, bodyOf, expected, unverified) => {
    billing.answer((call): Reply => ({ status: 409, body: bodyOf(call) }));
    await using scene = sceneOf(billing);
    const given = request();
    const result = await scene.client.finalize(given);
    expect(scene.client.counts().unverified).toBe(unverified);
    expect(scene.kept.of("unverified")).toHaveLength(unverified);
    if (expected === "idempotent") expect(result).toEqual({ ok: true, status: "idempotent" });
    else expect(result).toMatchObject({ ok: false, status: "dlq" });
    expect(await scene.store.getTerminal(given.reservation_id)).toEqual(expected === "dead" ? expect.anything() : null);
    expect(await scene.client.getDLQSize()).toBe(expected === "waits" ? 1 : 0);
  });

  it("EV-4: an amount that is not canonical is read with good will and counted", async () => {
    billing.answer(({ actualCostMicro }) => ({
      status: 409,
      body: `{"actualCostMicro":${actualCostMicro},"state":"finalized"}`,
    }));
    await using scene = sceneOf(billing);
    expect(await scene.client.finalize(request())).toEqual({ ok: true, status: "idempotent" });
    expect(scene.client.counts()).toMatchObject({ unverified: 0, normalised: 1 });
  });
});

describe("DF-20: a reservation that can be read settles what a bare 409 leaves open", () => {
  const reservationPath = "/api/internal/reservations/{id}";
  type Told = (call: Parameters<typeof agreed>[0]) => ReturnType<Parameters<Billing["reservations"]>[0]>;
  const cases: [string, Told, "idempotent" | "dead" | "waits", number][] = [
    ["it agrees", (call) => ({ status: 200, body: agreed(call) }), "idempotent", 0],
    ["another amount", (call) => ({ status: 200, body: agreed(call, { actualCostMicro: "1" }) }), "dead", 0],
    ["another account", (call) => ({ status: 200, body: agreed(call, { accountId: "tenant-2" }) }), "dead", 0],
    ["another reservation", (call) => ({ status: 200, body: agreed(call, { reservationId: "other" }) }), "dead", 0],
    ["voided", (call) => ({ status: 200, body: agreed(call, { state: "VOIDED" }) }), "dead", 0],
    ["reserved, and not settled at all", (call) => ({ status: 200, body: agreed(call, { state: "RESERVE_HELD" }) }), "waits", 0],
    ["no amount in it either", () => ({ status: 200, body: { state: "finalized" } }), "idempotent", 1],
    ["it is not known", () => ({ status: 404 }), "idempotent", 1],
    ["it cannot be read now", () => ({ status: 503 }), "idempotent", 1],
    ["it is elsewhere", () => ({ status: 302, headers: { location: "/other" } }), "idempotent", 1],
    ["the connection breaks", () => "reset", "idempotent", 1],
    ["no answer within the deadline", () => "hang", "idempotent", 1],
    ["more than a reservation can be", () => ({ status: 200, body: "x".repeat(20_000) }), "idempotent", 1],
    ["compressed", () => ({ status: 200, body: "{}", headers: { "content-encoding": "gzip" } }), "idempotent", 1],
  ];
  it.each(cases)("%s", async (_name, told, expected, unverified) => {
    let seen: Parameters<typeof agreed>[0] | undefined;
    billing.answer((call): Reply => {
      seen = call;
      return { status: 409 };
    });
    billing.reservations(() => told(seen as Parameters<typeof agreed>[0]));
    await using scene = sceneOf(billing, { reservationPath });
    const given = request({ reservation_id: `res/${request().reservation_id} ü` });
    const before = billing.read.length;
    const result = await scene.client.finalize(given);
    if (expected === "idempotent") expect(result).toEqual({ ok: true, status: "idempotent" });
    else expect(result).toMatchObject({ ok: false, status: "dlq" });
    expect(scene.client.counts().unverified).toBe(unverified);
    expect(await scene.store.getTerminal(given.reservation_id)).toEqual(expected === "dead" ? expect.anything() : null);
    expect(await scene.client.getDLQSize()).toBe(expected === "waits" ? 1 : 0);
    // Asked once, by its exact id, with a token for it.
    expect(billing.read.slice(before)).toEqual([{ reservationId: given.reservation_id, tokenFor: given.reservation_id }]);
  });

  it("is asked only then, also in a replay, and not at all unless it is wanted", async () => {
    billing.reservations(() => "honest");
    const before = billing.read.length;
    await using wanted = sceneOf(billing, { reservationPath });
    billing.answer((call) => ({ status: 409, body: agreed(call) }));
    await wanted.client.finalize(request());
    billing.answer("honest");
    await wanted.client.finalize(request());
    expect(billing.read).toHaveLength(before);
    billing.answer((_call, nth) => (nth === 1 ? "act-and-hang" : { status: 409 }));
    await using replayed = sceneOf(billing, { reservationPath, timeoutMs: 500 });
    const given = request();
    await replayed.client.finalize(given);
    replayed.clock.move(TEN_MINUTES);
    expect(await replayed.client.replayDeadLetters()).toMatchObject({ succeeded: 1 });
    expect(replayed.client.counts().unverified).toBe(0);
    expect(billing.read.slice(before)).toMatchObject([{ reservationId: given.reservation_id }]);
    billing.answer({ status: 409 });
    await using without = sceneOf(billing);
    await without.client.finalize(request());
    expect(billing.read).toHaveLength(before + 1);
    expect(without.client.counts().unverified).toBe(1);
  });

  it.each(["http://other/{id}", "//other/{id}", "reservations/{id}", "/reservations", "/{id}/{id}", "/r?id={id}", "/a b/{id}"])(
    "the path %s is refused at start",
    (path) => {
      expect(() => sceneOf(billing, { reservationPath: path })).toThrow(expect.objectContaining({ code: "invalid_config" }));
    },
  );
});
