/**
 * Reclaim: a worker that crashed, stalled or was cut off loses its lease to exactly one other, and every message that was
 * in it comes back once, under a new token.
 */
import assert from "node:assert/strict";
import { conclude } from "../../message/conclude.ts";
import type { ClaimedMessage, NewMessage } from "../../message/message.ts";
import { retryPolicy } from "../../message/retry-policy.ts";
import type { Store } from "../../store/store.ts";
import { countOf, DELIVERED, idsOf, KEYED, MINUTE, retry, SECOND, seen, sorted } from "./fixtures.ts";
import { type Scene, settles } from "./scene.ts";

function reclaim(scene: Scene, ms: number, limit = 100, store: Store = scene.store): Promise<ClaimedMessage[]> {
  return store.reclaim({ owner: "other", leaseMs: 30_000, limit, ...scene.at(ms) });
}

/** What the kernel does with a lost claim: conclude() decides, settle() writes. */
async function settleLost(scene: Scene, ms: number, lost: readonly ClaimedMessage[]): Promise<void> {
  const policy = retryPolicy({ policy: "exponential", attemptsMax: 3, jitter: "none" });
  assert.ok(policy);
  for (const message of lost) {
    const { settlement } = conclude(message, { kind: "lost" }, { policy, ordering: "none", onUnknown: "retry" });
    await scene.settled(ms, [message], settlement);
  }
}

/** One that is lost whenever it is claimed. */
async function killer(scene: Scene, fields: Partial<NewMessage>): Promise<void> {
  const [id] = await scene.accept(0, fields);
  // Two losses under suspicion, which charge no message, then its three attempts alone.
  const rounds = [
    [1, 0],
    [1, 1],
    [1, 2],
    [2, 2],
    [3, 2],
  ];
  for (const [round, expected] of rounds.entries()) {
    const ms = (round + 1) * 10 * MINUTE;
    const { attempt, suspicion } = await scene.takeOne(ms);
    assert.deepEqual([attempt, suspicion], expected);
    await settleLost(scene, ms + MINUTE, await reclaim(scene, ms + MINUTE));
  }
  const view = await seen(scene.store, id as string);
  assert.deepEqual([view.status, view.resolution, view.attempts, view.lastCode], ["dead", "open", 3, "lease_lost"]);
  const { attempts } = await scene.store.history(id as string);
  assert.deepEqual(
    attempts.map(({ attempt, outcome, counted }) => [attempt, outcome, counted]),
    rounds.map(([attempt], round) => [attempt, "lost", round > 1]),
  );
  await scene.nothing(100 * MINUTE);
}

function byLease(claimed: readonly ClaimedMessage[]): ClaimedMessage[][] {
  const leases = new Map<string, ClaimedMessage[]>();
  for (const one of claimed) leases.set(one.claim.lease, [...(leases.get(one.claim.lease) ?? []), one]);
  return [...leases.values()];
}

export const reclaimCases: Record<string, (scene: Scene) => Promise<void>> = {
  "CON-20, DO-1: what was processing when its lease ran out is claimable again": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.take(1, 1);
    await settleLost(scene, 32 * SECOND, await reclaim(scene, 31 * SECOND));
    const again = await scene.takeOne(2 * MINUTE);
    assert.deepEqual([again.id, again.attempt, again.suspicion], [id, 1, 1]);
  },

  "a lease is taken over after its end and not before": async (scene) => {
    await scene.accept(0);
    await scene.take(1, 1_000, { leaseMs: 10_000 });
    assert.deepEqual(await reclaim(scene, 10_999), []);
    assert.equal((await reclaim(scene, 11_001)).length, 1);
  },

  "what comes back is what was claimed, without its payload, under a new token": async (scene) => {
    await scene.accept(0, { key: "k", tenantId: "t1", priority: 4, traceparent: "00-ab-cd-01", schemaVersion: 2 });
    const [claimed] = await scene.take(1, 1);
    const [taken] = await reclaim(scene, 31 * SECOND);
    assert.ok(claimed && taken);
    const { claim, ...rest } = taken;
    const { claim: before, ...expected } = claimed;
    assert.deepEqual(rest, { ...expected, payload: "" });
    assert.notEqual(claim.token, before.token);
  },

  "a dry run says what would be taken over, and leaves it to its holder": async (scene) => {
    await scene.accept(0, {}, {});
    const claimed = await scene.take(2, 1);
    const look = (ms: number) =>
      scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit: 100, dryRun: true, ...scene.at(ms) });
    assert.deepEqual(await look(29 * SECOND), []);
    const seen = await look(31 * SECOND);
    assert.deepEqual(sorted(idsOf(seen)), sorted(idsOf(claimed)));
    assert.deepEqual(await scene.store.settle(settles(seen, DELIVERED), scene.at(31 * SECOND)), ["lost", "lost"]);
    // Late, and nobody else has it.
    await scene.settled(32 * SECOND, claimed, DELIVERED);
    assert.deepEqual(await look(MINUTE), []);
  },

  "only what was not settled comes back": async (scene) => {
    await scene.accept(0, {}, {}, {}, {});
    const claimed = await scene.take(4, 1);
    await scene.settled(2, claimed.slice(0, 1), DELIVERED);
    await scene.settled(2, claimed.slice(1, 2), retry(MINUTE));
    const taken = await reclaim(scene, 31 * SECOND);
    assert.deepEqual(sorted(idsOf(taken)), sorted(idsOf(claimed.slice(2))));
    assert.ok(taken.every(({ attempt }) => attempt === 1));
  },

  "a lease with everything settled just goes": async (scene) => {
    await scene.accept(0, {}, {});
    const [first, second] = await scene.take(2, 1);
    await scene.settled(2, [first!], DELIVERED);
    await scene.settled(3, [second!], DELIVERED);
    assert.deepEqual(await reclaim(scene, MINUTE), []);
  },

  "an extended lease is not taken over": async (scene) => {
    await scene.accept(0);
    const claimed = await scene.takeOne(1);
    assert.deepEqual(await scene.store.extend([claimed.claim], 60_000, scene.at(20 * SECOND)), ["extended"]);
    assert.deepEqual(await reclaim(scene, 79 * SECOND), []);
    assert.equal((await reclaim(scene, 81 * SECOND)).length, 1);
  },

  "oldest first, as many leases as asked for": async (scene) => {
    await scene.accept(0, ...Array.from({ length: 6 }, () => ({})));
    const leases = [];
    for (let i = 0; i < 3; i++) leases.push(await scene.take(2, i * SECOND + 1));
    assert.deepEqual(sorted(idsOf(await reclaim(scene, MINUTE, 1))), sorted(idsOf(leases[0]!)));
    assert.deepEqual(sorted(idsOf(await reclaim(scene, MINUTE, 5))), sorted(idsOf([...leases[1]!, ...leases[2]!])));
    assert.deepEqual(await reclaim(scene, MINUTE, 5), []);
  },

  "a lease that was taken over can be lost again": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.take(1, 1);
    const first = await reclaim(scene, 31 * SECOND);
    const second = await reclaim(scene, 62 * SECOND);
    assert.deepEqual(idsOf(second), [id]);
    assert.deepEqual(await scene.settle(63 * SECOND, first, DELIVERED), ["lost"]);
    await scene.settled(64 * SECOND, second, DELIVERED);
  },

  "DO-2: a message that kills every worker ends as a dead letter with a row for each attempt": (scene) => killer(scene, {}),

  "DO-2, I6: so does one with an ordering key": (scene) => killer(scene, { topic: KEYED, orderingKey: "a" }),

  "I6: suspects with ordering keys come in small groups, then alone, and share no lease with others": async (scene) => {
    const keyed = (count: number, name: string) =>
      Array.from({ length: count }, (_, i) => ({ topic: KEYED, orderingKey: `${name}${i}` }));
    const ids = await scene.accept(0, ...keyed(12, "a"));
    await scene.take(12, 1);
    await settleLost(scene, 32 * SECOND, await reclaim(scene, 31 * SECOND));
    await scene.accept(33 * SECOND, ...keyed(3, "b"), {});
    const groups = byLease(await scene.take(16, 40 * SECOND));
    for (const group of groups) {
      const suspects = group.filter(({ suspicion }) => suspicion === 1);
      assert.ok(suspects.length === 0 || (suspects.length === group.length && group.length <= 8), "suspects by themselves, few");
    }
    assert.deepEqual(sorted(idsOf(groups.flat().filter(({ suspicion }) => suspicion === 1))), sorted(ids));
    await settleLost(scene, 2 * MINUTE, await reclaim(scene, 2 * MINUTE));
    const again = byLease(await scene.take(16, 3 * MINUTE));
    const alone = again.filter(([first]) => first?.suspicion === 2);
    assert.ok(alone.every((group) => group.length === 1));
    assert.deepEqual(sorted(idsOf(alone.flat())), sorted(ids));
    for (const id of ids) assert.equal((await scene.store.history(id)).attempts.filter(({ counted }) => counted).length, 0);
  },

  "DO-2: the batch mates of a killer are not charged; suspects come back apart": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {});
    await scene.take(3, 1);
    await settleLost(scene, 32 * SECOND, await reclaim(scene, 31 * SECOND));
    for (const id of ids) assert.equal((await seen(scene.store, id)).attempts, 0);
    const again = await scene.take(3, 40 * SECOND, { lanes: ({ suspicion }) => suspicion === 1 });
    assert.ok(again.every(({ attempt, suspicion }) => attempt === 1 && suspicion === 1));
  },

  "several reclaim at once: each lease goes to one of them": async (scene) => {
    await scene.accept(0, ...Array.from({ length: 40 }, () => ({})));
    for (let i = 0; i < 20; i++) await scene.take(2, i + 1);
    const instances = await scene.instances(8);
    const rounds = await Promise.all(instances.map((store) => reclaim(scene, MINUTE, 5, store)));
    const rest = await reclaim(scene, MINUTE);
    const taken = [...rounds.flat(), ...rest];
    assert.equal(taken.length, 40);
    assert.equal(new Set(idsOf(taken)).size, 40);
    await scene.settled(MINUTE + 1, taken, DELIVERED);
    assert.equal(await countOf(scene.store, "delivered"), 40);
  },

  "settle against reclaim: every message ends exactly once": async (scene) => {
    const [holder, thief] = await scene.instances(2);
    assert.ok(holder && thief);
    await scene.accept(0, ...Array.from({ length: 120 }, () => ({})));
    const leases: ClaimedMessage[][] = [];
    for (let i = 0; i < 30; i++) leases.push(await scene.take(4, i + 1));
    // Half of each lease is settled while others take it over.
    const late = leases.map(async (lease) => {
      const results = await holder.settle(settles(lease.slice(0, 2), DELIVERED), scene.at(MINUTE));
      return lease.slice(0, 2).filter((_, i) => results[i] === "settled");
    });
    const thefts = Array.from({ length: 10 }, () => reclaim(scene, MINUTE, 3, thief));
    const [won, taken] = [(await Promise.all(late)).flat(), (await Promise.all(thefts)).flat()];
    taken.push(...(await reclaim(scene, MINUTE)));
    const ends = sorted(idsOf([...won, ...taken]));
    assert.equal(new Set(ends).size, ends.length, "nobody may be both settled and taken over");
    assert.equal(ends.length, 120, "nobody may be neither");
    await scene.settled(MINUTE + 1, taken, DELIVERED);
    for (const id of ends) assert.equal((await scene.store.history(id)).attempts.length, 1);
    assert.equal(await countOf(scene.store, "delivered"), 120);
  },
};
