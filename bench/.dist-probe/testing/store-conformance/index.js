/**
 * The Store conformance suite: what every store must do, contention and fencing included. It knows no test runner; with
 * vitest a file is three lines: `for (const c of storeConformance(h)) it(`${c.group}: ${c.name}`, c.run)`.
 */
import { claimOrderCases } from "./claim-order.js";
import { contentionCases } from "./contention.js";
import { dedupeCases } from "./dedupe.js";
import { enqueueCases } from "./enqueue.js";
import { fencingCases } from "./fencing.js";
import { interveneCases, interveneRaceCases } from "./intervene.js";
import { leadershipCases } from "./leadership.js";
import { limitCases } from "./limits.js";
import { orderingCases } from "./ordering.js";
import { orderingContentionCases } from "./ordering-contention.js";
import { pagingCases } from "./paging.js";
import { pruneCases } from "./prune.js";
import { reclaimCases } from "./reclaim.js";
import { play } from "./scene.js";
import { settleCases } from "./settle.js";
import { breakerCases, topicCases } from "./topics.js";
import { traitCases } from "./traits.js";
import { noTransactionCases, transactionCases } from "./transactions.js";
import { wakeCases } from "./wake.js";
/** The cases a store must pass; each opens a fresh store and closes it again. They may run at once. */
export function storeConformance(harness) {
    const groups = [
        ["enqueue", enqueueCases],
        ["dedupe", dedupeCases],
        ["transactions", harness.transaction ? transactionCases : noTransactionCases],
        ["claim order", claimOrderCases],
        ["ordering", { ...orderingCases, ...orderingContentionCases }],
        ["fencing", fencingCases],
        ["settle", settleCases],
        ["reclaim", reclaimCases],
        ["intervene", { ...interveneCases, ...interveneRaceCases }],
        ["paging", pagingCases],
        ["prune", pruneCases],
        ["leadership", leadershipCases],
        ["topics", { ...topicCases, ...breakerCases }],
        ["wake", wakeCases],
        ["limits", limitCases],
        ["traits", traitCases],
        ["contention", contentionCases],
    ];
    return groups.flatMap(([group, cases]) => Object.entries(cases).map(([name, run]) => ({ group, name, run: () => play(harness, run) })));
}
//# sourceMappingURL=index.js.map