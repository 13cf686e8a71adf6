/**
 * The usage conformance suite: what every engine of the usage seam must do, contention included. It knows no test runner; with
 * vitest a file is one line: `for (const c of usageConformance(h)) it(`${c.group}: ${c.name}`, c.run)`.
 */
import type { Case } from "../store-conformance/harness.ts";
import { finalizeCases, noTransactionCases, transactionCases } from "./finalize.ts";
import { reserveCases } from "./reserve.ts";
import { playUsage, type UsageHarness, type UsageScene } from "./scene.ts";

export function usageConformance(harness: UsageHarness, traits: { readonly transactions: boolean }): Case[] {
  const groups: [group: string, cases: Record<string, (scene: UsageScene) => Promise<void>>][] = [
    ["reserve", reserveCases],
    ["finalize", finalizeCases],
    ["transactions", traits.transactions ? transactionCases : noTransactionCases],
  ];
  return groups.flatMap(([group, cases]) =>
    Object.entries(cases).map(([name, run]) => ({ group, name, run: () => playUsage(harness, run) })),
  );
}
