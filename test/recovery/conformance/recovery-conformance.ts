/**
 * The recovery conformance suite: what every engine of the recovery seam must do, contention and fencing included. It knows no test
 * runner; with vitest a file is one line: `for (const c of recoveryConformance(h)) it(`${c.group}: ${c.name}`, c.run)`.
 */
import type { Case } from "../../../src/testing/store-conformance/harness.ts";
import { approvalCases, executionCases, listCases, moveCases, writeCases } from "./candidates.ts";
import { carriedCases } from "./carried.ts";
import { ingestContentionCases, redriveContentionCases, writeContentionCases } from "./contention.ts";
import { countedOnceCases } from "./counted-once.ts";
import { editCases } from "./edit.ts";
import { groupCases, mergeCases, splitCases } from "./groups.ts";
import { deathCases, ingestCases, matchIdCases, roundCases } from "./ingest.ts";
import { prunedCases } from "./pruned.ts";
import { documentCases, outcomeCases, provenanceCases, statsCases } from "./records.ts";
import { changeCases, selectCases, startCases } from "./redrive-list.ts";
import { lookAgainCases, lookCases, watchCases } from "./redrive-look.ts";
import { carrierCases, leaseCases, sendCases } from "./redrive-run.ts";
import { playRecovery, type RecoveryHarness, type RecoveryScene } from "./scene.ts";
import { seenCases } from "./seen.ts";

/** Each case opens a fresh engine and closes it again. */
export function recoveryConformance(harness: RecoveryHarness): Case[] {
  const groups: [group: string, cases: Record<string, (scene: RecoveryScene) => Promise<void>>][] = [
    ["ingest", ingestCases],
    ["match ids", matchIdCases],
    ["deaths", { ...deathCases, ...countedOnceCases }],
    ["rounds", roundCases],
    ["candidates", { ...writeCases, ...approvalCases, ...executionCases, ...moveCases, ...listCases }],
    ["groups", { ...groupCases, ...mergeCases, ...splitCases }],
    ["records", { ...provenanceCases, ...outcomeCases, ...documentCases, ...statsCases }],
    ["redrives", { ...selectCases, ...seenCases, ...startCases, ...changeCases }],
    ["running", { ...leaseCases, ...sendCases, ...carrierCases, ...carriedCases }],
    ["looking", { ...lookCases, ...watchCases, ...lookAgainCases }],
    ["editing", editCases],
    ["pruned", prunedCases],
    ["contention", { ...ingestContentionCases, ...writeContentionCases, ...redriveContentionCases }],
  ];
  return groups.flatMap(([group, cases]) =>
    Object.entries(cases).map(([name, run]) => ({ group, name, run: () => playRecovery(harness, run) })),
  );
}
