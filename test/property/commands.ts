/**
 * The random commands of the model run: each does one thing to the store, says what the model expects of it, and checks
 * conservation afterwards.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { ClaimedMessage, NewMessage, Suspicion } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { KEYED, newMessage, PLAIN, STRICT } from "../../src/testing/store-conformance/fixtures.ts";
import { agrees, conserved, type Entry, type Model, type Real } from "./model.ts";

export type StoreCommand = fc.AsyncCommand<Model, Real>;

const DAY = 24 * 3_600_000;
const KEPT_MS = 2 * DAY;

type Step = (model: Model, real: Real, at: { now: Date }) => Promise<Entry | undefined>;

/** Time passes, one step is made, and what it touched and the whole are compared. */
function command(name: string, passMs: number, step: Step): StoreCommand {
  return {
    check: () => true,
    toString: () => `${name} after ${passMs} ms`,
    async run(model, real) {
      model.nowMs += passMs;
      const touched = await step(model, real, { now: new Date(real.startMs + model.nowMs) });
      if (touched) await agrees(touched, real);
      await conserved(model, real);
    },
  };
}

const pick = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(1, list.length)];

const passMs = fc.oneof({ arbitrary: fc.constant(1), weight: 3 }, fc.integer({ min: 1, max: 20_000 }));

const fields = fc.record({
  topic: fc.constantFrom(PLAIN, KEYED, STRICT),
  tenantId: fc.constantFrom(null, "t1"),
  key: fc.option(fc.constantFrom("k1", "k2", "k3", "k4"), { freq: 2 }),
  orderingKey: fc.option(fc.constantFrom("o1", "o2"), { freq: 3 }),
  payload: fc.constantFrom('{"a":1}', '{"a":1}', '{"a":2}'),
  delayMs: fc.constantFrom(0, 0, 0, 5_000),
  priority: fc.constantFrom(0, 0, 3),
});

const enqueue = fc.tuple(passMs, fc.array(fields, { minLength: 1, maxLength: 4 })).map(([ms, batch]) =>
  command(`enqueue ${batch.length}`, ms, async (model, { store, nextId }, at) => {
    const messages = batch.map((each) => newMessage(nextId(), each));
    const known = new Set(model.entries.keys());
    const expected = model.enqueue(messages, (topic) => topic !== PLAIN);
    const results = await store.enqueue(messages, at);
    if (expected.some(({ kind }) => kind === "conflict")) {
      for (const [i, { kind, id }] of expected.entries()) if (kind === "conflict") assert.equal(results[i]?.id, id);
      assert.ok(results.some(({ kind }) => kind === "conflict"));
      assert.equal(model.entries.size, known.size);
    } else {
      assert.deepEqual(results, expected);
    }
    return undefined;
  }),
);

const enqueueAgain = fc.tuple(passMs, fc.nat(1_000)).map(([ms, at]) =>
  command("enqueue the same again", ms, async (model, { store }, now) => {
    const entry = pick(
      [...model.entries.values()].filter(({ status }) => status !== "pruned"),
      at,
    );
    if (!entry) return undefined;
    const message: NewMessage = entry.message;
    assert.deepEqual(await store.enqueue([message], now), [{ kind: "accepted", id: message.id }], "I1");
    return entry;
  }),
);

const claim = fc
  .record({
    ms: passMs,
    limit: fc.integer({ min: 1, max: 4 }),
    leaseMs: fc.constantFrom(1_000, 30_000),
    bytesMax: fc.constantFrom(20, 10_000),
  })
  .map(({ ms, limit, leaseMs, bytesMax }) =>
    command(`claim ${limit}`, ms, async (model, { store }, at) => {
      const due = [...model.entries.values()].filter((entry) => model.claimable(entry));
      let batch: ClaimedMessage[] = [];
      // Twice more when it comes up short: a store may look past a late row once, never for good.
      for (let tries = 0; tries < 3 && batch.length === 0; tries++) {
        const lanes = (await store.lanes(at)).map(({ lane }) => ({ lane, limit }));
        batch = await store.claim({ owner: "worker", leaseMs, lanes, bytesMax, ...at });
      }
      assert.equal(batch.length > 0, due.length > 0, "I11: what is due is claimable");
      for (const message of batch) model.claimed(message, leaseMs);
      return batch[0] && model.entries.get(batch[0].id);
    }),
  );

const failed = { outcome: "retry", code: "http_503", error: "unavailable" } as const;
const settlement: fc.Arbitrary<Settlement> = fc.oneof(
  { arbitrary: fc.constant<Settlement>({ kind: "delivered", outcome: "delivered" }), weight: 3 },
  fc
    .record({ delayMs: fc.constantFrom(0, 0, 7_000), counted: fc.boolean(), suspicion: fc.constantFrom<Suspicion>(0, 1, 2) })
    .map((rest): Settlement => ({ kind: "retry", ...rest, ...failed })),
  fc.boolean().map((blocksOrder): Settlement => ({ kind: "dead", blocksOrder, ...failed })),
  fc.boolean().map((counted): Settlement => ({ kind: "hold", reason: "outcome_unknown", counted, ...failed })),
  fc.constant<Settlement>({ kind: "release" }),
);

const settle = fc.tuple(passMs, fc.nat(1_000), settlement).map(([ms, at, how]) =>
  command(`settle as ${how.kind}`, ms, async (model, { store, startMs }, now) => {
    const entry = pick(model.of("processing"), at);
    if (!entry?.claim) return undefined;
    const { id, claim: held, attempt } = entry.claim;
    const results = await store.settle([{ id, claim: held, attempt, durationMs: 1, settlement: how }], now);
    assert.deepEqual(results, ["settled"], "a claim that nobody took over counts, late or not");
    model.settled(entry, how);
    if (how.kind === "release") {
      // Back where it was or due now: a store may do either.
      const dueMs = ((await store.get(id))?.nextAttemptAt?.getTime() ?? 0) - startMs;
      assert.ok(dueMs === entry.dueMs || dueMs === model.nowMs);
      entry.dueMs = dueMs;
    }
    return entry;
  }),
);

const settleStale = fc.tuple(passMs, fc.nat(1_000), settlement).map(([ms, at, how]) =>
  command(`settle a stale claim as ${how.kind}`, ms, async (model, { store }, now) => {
    const stale = pick(model.stale, at);
    if (!stale) return undefined;
    const { id, claim: held, attempt } = stale;
    const results = await store.settle([{ id, claim: held, attempt, durationMs: 1, settlement: how }], now);
    assert.deepEqual(results, ["lost"], "I4");
    return model.entries.get(id);
  }),
);

const extend = fc.tuple(passMs, fc.nat(1_000)).map(([ms, at]) =>
  command("extend", ms, async (model, { store }, now) => {
    const held = pick([...model.of("processing").flatMap((entry) => entry.claim ?? []), ...model.stale], at);
    if (!held) return undefined;
    const lease = model.leases.get(held.claim.lease);
    const live = lease?.token === held.claim.token;
    assert.deepEqual(await store.extend([held.claim], 30_000, now), [live ? "extended" : "lost"]);
    if (lease && live) lease.untilMs = model.nowMs + 30_000;
    return model.entries.get(held.id);
  }),
);

const reclaim = fc.tuple(fc.constantFrom(1, 5_000, 60_000), fc.constantFrom(1, 100)).map(([ms, limit]) =>
  command(`reclaim ${limit}`, ms, async (model, { store }, at) => {
    const expired = [...model.leases].filter(([, { untilMs }]) => untilMs < model.nowMs).map(([lease]) => lease);
    const taken = await store.reclaim({ owner: "other", leaseMs: 30_000, limit, ...at });
    const leases = new Set(taken.map(({ claim: held }) => held.lease));
    assert.equal(leases.size, Math.min(limit, expired.length), "CON-20: what ran out comes back");
    assert.ok([...leases].every((lease) => expired.includes(lease)));
    for (const message of taken) {
      const entry = model.entries.get(message.id);
      assert.ok(entry?.claim && entry.claim.claim.token !== message.claim.token);
      const { claim: _, payload: __, ...before } = entry.claim;
      assert.deepEqual({ ...message, claim: undefined, payload: undefined }, { ...before, claim: undefined, payload: undefined });
      model.stale.push(entry.claim);
      entry.claim = message;
      model.leases.set(message.claim.lease, { token: message.claim.token, untilMs: model.nowMs + 30_000 });
    }
    const unsettled = model.of("processing").filter((entry) => entry.claim && leases.has(entry.claim.claim.lease));
    assert.equal(taken.length, unsettled.length, "all that was unsettled, and nothing twice");
    return undefined;
  }),
);

const intervene = fc
  .record({
    ms: passMs,
    at: fc.nat(1_000),
    action: fc.constantFrom("replay", "resolve", "discard", "cancel", "reschedule"),
    fence: fc.constantFrom("none", "seen", "stale"),
    delayMs: fc.constantFrom(0, 3_000, 60_000),
  })
  .map(({ ms, at, action, fence, delayMs }) =>
    command(`${action} (revision: ${fence})`, ms, async (model, { store }, now) => {
      const entry = pick([...model.entries.values()], at);
      if (!entry) return undefined;
      const { id } = entry.message;
      const view = await store.get(id);
      const revision = fence === "none" || !view ? undefined : view.revision + (fence === "stale" ? 1 : 0);
      const result = await store.intervene({ id, action, actor: "person", reason: null, revision, delayMs, ...now });
      const done = entry.status !== "pruned" && fence !== "stale" && model.allows(entry, action);
      assert.equal(result.kind === "done", done, `${action} of ${entry.status} was answered ${result.kind}`);
      if (entry.status === "pruned") assert.equal(result.kind, "not_found");
      if (result.kind === "done") {
        assert.equal(result.message.revision, (view?.revision ?? 0) + 1);
        model.intervened(entry, action, delayMs);
      }
      return entry;
    }),
  );

const prune = fc.tuple(fc.constantFrom(1, DAY, 5 * DAY), fc.constantFrom(2, 1_000)).map(([ms, limit]) =>
  command("prune", ms, async (model, { store }, at) => {
    for (let calls = 0; calls < 100; calls++) if ((await store.prune({ keptMs: KEPT_MS, limit, ...at })) === 0) break;
    for (const entry of model.entries.values()) {
      if (entry.settledMs === null || entry.status === "pruned") continue;
      const gone = (await store.get(entry.message.id)) === null;
      const age = model.nowMs - entry.settledMs;
      assert.ok(!gone || age >= KEPT_MS, "I2: not before its time");
      assert.ok(gone || age < KEPT_MS + 2 * DAY, "gone two days after its time at the latest");
      if (gone) entry.status = "pruned";
    }
    return undefined;
  }),
);

/** Every command, the frequent ones several times. */
export const storeCommands: fc.Arbitrary<StoreCommand>[] = [
  enqueue,
  enqueue,
  enqueueAgain,
  claim,
  claim,
  claim,
  settle,
  settle,
  settle,
  settleStale,
  extend,
  reclaim,
  intervene,
  intervene,
  prune,
];
