/**
 * The Store conformance suite: what every store must do, contention and fencing included. It knows no test runner; with
 * vitest a file is three lines: `for (const c of storeConformance(h)) it(`${c.group}: ${c.name}`, c.run)`.
 */

import { allotCases } from "./allot.ts";
import { breakerCases } from "./breakers.ts";
import { claimOrderCases } from "./claim-order.ts";
import { contentionCases } from "./contention.ts";
import { dedupeCases } from "./dedupe.ts";
import { dueCases } from "./due.ts";
import { enqueueCases } from "./enqueue.ts";
import { fencingCases } from "./fencing.ts";
import { fromInsideCases } from "./from-inside.ts";
import { directTryCases, namedClaimCases } from "./handed-down.ts";
import type { Case, StoreHarness } from "./harness.ts";
import { interveneCases, interveneRaceCases } from "./intervene.ts";
import { leadershipCases } from "./leadership.ts";
import { limitCases } from "./limits.ts";
import { manyKeysCases } from "./many-keys.ts";
import { orderingCases } from "./ordering.ts";
import { orderingContentionCases } from "./ordering-contention.ts";
import { placeCases } from "./ordering-place.ts";
import { pagingCases } from "./paging.ts";
import { pendingCases } from "./pending.ts";
import { pruneCases } from "./prune.ts";
import { reclaimCases } from "./reclaim.ts";
import { retriedCases } from "./retried.ts";
import { play, type Scene } from "./scene.ts";
import { settleCases } from "./settle.ts";
import { topicCases } from "./topics.ts";
import { traitCases } from "./traits.ts";
import { noTransactionCases, transactionCases } from "./transactions.ts";
import { wakeCases } from "./wake.ts";
import { workerCases } from "./workers.ts";

/** How many ordering keys stand in the way of others; the largest number takes minutes and runs only when asked for. */
const MANY_KEYS = [10, 1_000];
const MANY_KEYS_LARGE = 100_000;

/** The cases a store must pass; each opens a fresh store and closes it again. They may run at once. `large`: those that take minutes, too. */
export function storeConformance(harness: StoreHarness, { large = false }: { readonly large?: boolean } = {}): Case[] {
  const manyKeys = (large ? [...MANY_KEYS, MANY_KEYS_LARGE] : MANY_KEYS).map(manyKeysCases);
  const groups: [group: string, cases: Record<string, (scene: Scene) => Promise<void>>][] = [
    ["enqueue", enqueueCases],
    ["dedupe", dedupeCases],
    ["transactions", harness.transaction ? transactionCases : noTransactionCases],
    ["claim order", claimOrderCases],
    ["handed down", { ...directTryCases, ...namedClaimCases }],
    ["ordering", { ...orderingCases, ...placeCases, ...orderingContentionCases }],
    ["many keys", Object.assign({}, ...manyKeys)],
    ["fencing", fencingCases],
    ["settle", settleCases],
    ["reclaim", reclaimCases],
    ["retried", retriedCases],
    ["from inside", fromInsideCases],
    ["intervene", { ...interveneCases, ...interveneRaceCases }],
    ["cancel and reschedule", pendingCases],
    ["paging", { ...pagingCases, ...dueCases }],
    ["prune", pruneCases],
    ["leadership", leadershipCases],
    ["topics", { ...topicCases, ...breakerCases }],
    ["workers", workerCases],
    ["allot", allotCases],
    ["wake", wakeCases],
    ["limits", limitCases],
    ["traits", traitCases],
    ["contention", contentionCases],
  ];
  return groups.flatMap(([group, cases]) =>
    Object.entries(cases).map(([name, run]) => ({ group, name, run: () => play(harness, run) })),
  );
}
