/**
 * EV-8's caps as a signal: how much waits, for all and for one tenant, and whether a caller should reserve more. finalize() never refuses.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSettlementClient } from "../../src/presets/settlement/client.ts";
import type { SettlementOptions } from "../../src/presets/settlement/options.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createMemoryDLQStore } from "../../src/store/redis/dlq-port/port.ts";
import { type Billing, startBilling, testSigner } from "./billing.ts";
import { keptLog, movableClock, request, sceneOf, TEN_MINUTES } from "./scene.ts";

let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing[Symbol.asyncDispose]());

/** A sample serves for half a second: after this, what is asked is new. */
const LATER = 600;

function onStore(options: Partial<SettlementOptions> = {}) {
  const clock = movableClock();
  const store = createMemoryStore({ clock });
  const given = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, clock, log: keptLog().log };
  const client = createSettlementClient({ ...given, ...options });
  return { client, clock, [Symbol.asyncDispose]: () => client.close() };
}

const cost = (tenant_id: string, actual_cost_micro: string) => request({ tenant_id, actual_cost_micro });
const huge = "123456789012345678901234567890";

describe("admission", () => {
  it("EV-8: a tenant's exposure closes for that tenant alone, and finalize goes on", async () => {
    billing.answer({ status: 503 });
    await using scene = onStore({ maxExposureMicro: huge });
    const { client, clock } = scene;
    await client.ready();
    expect(await client.admission("a")).toEqual({ open: true, reason: null, pending: 0, exposureMicro: "0" });
    await client.finalize(cost("a", "123456789012345678901234567889"));
    await client.finalize(cost("b", "7"));
    clock.move(LATER);
    // One micro below the cap, which no double could tell from the cap.
    expect(await client.admission("a")).toMatchObject({ open: true, exposureMicro: "123456789012345678901234567889" });
    await client.finalize(cost("a", "1"));
    clock.move(LATER);
    expect(await client.admission("a")).toMatchObject({ open: false, pending: 3, exposureMicro: huge });
    expect((await client.admission("a")).reason).toContain("wait for this tenant");
    expect(await client.admission("b")).toMatchObject({ open: true, exposureMicro: "7" });
    expect(await client.finalize(cost("a", "5"))).toMatchObject({ status: "dlq", stored: "primary" });

    billing.answer("honest");
    clock.move(TEN_MINUTES);
    await client.replayDeadLetters();
    clock.move(LATER);
    expect(await client.admission("a")).toEqual({ open: true, reason: null, pending: 0, exposureMicro: "0" });
  });

  it.each(["store", "port"] as const)("EV-8: as many as maxPending wait: closed for everybody, on the %s", async (kind) => {
    billing.answer({ status: 503 });
    await using scene = kind === "store" ? onStore({ maxPending: 3 }) : sceneOf(billing, { maxPending: 3 });
    const { client, clock } = scene;
    await client.ready();
    for (let i = 0; i < 2; i++) await client.finalize(cost("a", "1"));
    expect(await client.admission("b")).toMatchObject({ open: true, pending: 2 });
    await client.finalize(cost("a", "1"));
    clock.move(LATER);
    const closed = await client.admission("b");
    expect(closed).toMatchObject({ open: false, pending: 3, exposureMicro: "0" });
    expect(closed.reason).toContain("3 obligations wait");
    expect(await client.finalize(cost("b", "1"))).toMatchObject({ status: "dlq" });
    clock.move(LATER);
    expect(await client.admission("b")).toMatchObject({ open: false, pending: 4 });
  });

  it("FIN-50: what is not known closes nothing, comes in time and never throws", async () => {
    const memory = createMemoryDLQStore();
    let asked = 0;
    const hangs = () => {
      asked++;
      return new Promise<never>(() => undefined);
    };
    const on = (counts: () => Promise<never>) => ({ ...memory, store: { ...memory.store, counts } });
    await using scene = sceneOf(billing, { dlqStore: on(hangs) });
    const unknown = { open: true, reason: null, pending: null, exposureMicro: null };
    // One question at a time, however many ask.
    expect(await Promise.all([1, 2, 3].map(() => scene.client.admission("a")))).toEqual([unknown, unknown, unknown]);
    expect(asked).toBe(1);
    await using throws = sceneOf(billing, { dlqStore: on(() => Promise.reject(new Error("no"))) });
    expect(await throws.client.admission("a")).toEqual(unknown);
  });

  it.each([
    ["maxPending 0", { maxPending: 0 }],
    ["maxPending beyond what can be added up", { maxPending: 1_001 }],
    ["an exposure that is no amount", { maxExposureMicro: "1.5", dlqStore: createMemoryStore() }],
    ["a port of a caller's own, which stands on no store", { dlqStore: { kind: "own", put: async () => "created" } as never }],
  ])("%s is refused at start", (_name, options) => {
    expect(() => sceneOf(billing, options)).toThrow(expect.objectContaining({ code: "invalid_config" }));
  });
});
