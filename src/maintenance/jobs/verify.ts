/**
 * Conservation all the time: each minute a slice, of at most 200 ms of the store's time for the comparison of everything, so that the ids are
 * all compared about every ten minutes, and beside it what was accepted meanwhile, which is bounded in the same way.
 */
import type { MaintenanceJob } from "../../platform/job.ts";
import type { ConservationReport, PassOptions } from "../../store/conservation.ts";

const EVERY_MS = 60_000;
const BUDGET_MS = 200;

export function verifyJob(verify: { run(options: PassOptions): Promise<ConservationReport> }): MaintenanceJob {
  return {
    name: "verify",
    everyMs: EVERY_MS,
    where: "leader",
    about: "compares what was accepted with what is here, a slice at a time",
    async run(signal) {
      const { divergencesTotal, pass } = await verify.run({ reach: "slice", budgetMs: BUDGET_MS, signal });
      return { counts: { divergences: divergencesTotal, pass } };
    },
  };
}
