/**
 * Jobs that a person or a timer runs: each under a lock of its own, so that a second one at the same time reports that it was skipped, and
 * with the same writes and fences as the scheduler's. One run is bounded; `more` says that another is worth it.
 */
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, inBackground } from "../platform/clock.ts";
import type { MaintenanceJob } from "../platform/job.ts";
import { startLoop } from "../platform/loop.ts";
import type { Store } from "../store/store.ts";
import { createLocks, LOCK_MS, type Lock } from "./locks.ts";
import { type JobReport, runJob } from "./run-job.ts";

export interface RunByHand {
  readonly dryRun?: boolean | undefined;
  readonly batchSize?: number | undefined;
  /** Runs without a lock, beside whatever else runs: for a person who knows that nothing does, or that it does no harm. */
  readonly skipLeaderElection?: boolean | undefined;
}

export interface ListedJob extends Pick<MaintenanceJob, "name" | "everyMs" | "where"> {
  readonly about: string;
  readonly rehearses: boolean;
}

export interface Jobs {
  list(): ListedJob[];
  /** Throws `job_not_found`, and `invalid_request` for a dry run of a job that has none. What the job throws is in the report. */
  run(name: string, how?: RunByHand): Promise<JobReport>;
}

interface Parts {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly events: Events;
  readonly jobs: readonly MaintenanceJob[];
}

export const lockOf = (name: string): string => `job:${name}`;

export function createJobs({ store, holder, clock, events, jobs }: Parts): Jobs {
  const listed = jobs.filter(({ about }) => about !== undefined);
  const locks = createLocks(store, holder, { clock, events });

  function find(name: string): MaintenanceJob {
    const job = listed.find((one) => one.name === name);
    const names = listed.map((one) => one.name).join(", ");
    if (!job) throw new MakegoodError("job_not_found", `there is no job ${name}: there are ${names}`, { name });
    return job;
  }

  const keep = (lock: Lock) =>
    startLoop({
      clock: inBackground(clock),
      step: async () => ((await lock.extend()) ? LOCK_MS.reconcile / 3 : LOCK_MS.reconcile),
      failed: () => LOCK_MS.reconcile / 10,
    });

  async function runOnce(job: MaintenanceJob, how: RunByHand, signal: AbortSignal): Promise<JobReport> {
    const { name } = job;
    const { dryRun = false, batchSize = null } = how;
    const lock = dryRun || how.skipLeaderElection ? undefined : await locks.acquire(lockOf(name));
    const nothing = { name, dryRun, ms: 0, counts: {}, more: false, notes: [], error: null };
    if (lock === null) {
      events.emit({ type: "job", name, result: "skipped", ms: 0, counts: {}, error: null });
      return { ...nothing, result: "skipped", notes: ["another process is at it"] };
    }
    const kept = lock && keep(lock);
    try {
      const turn = { dryRun, batchSize, fence: lock?.fence ?? null };
      return (await runJob(job, turn, signal, { clock, events })).report;
    } catch (error) {
      const lost = isMakegoodError(error) && error.code === "leadership_lost";
      return { ...nothing, result: lost ? "stopped" : "failed", error: errorText(error) };
    } finally {
      await kept?.stop();
      await lock?.release().catch(() => {});
    }
  }

  return {
    list: () =>
      listed.map(({ name, everyMs, where, about = "", rehearses = false }) => ({ name, everyMs, where, about, rehearses })),
    async run(name, how = {}) {
      const job = find(name);
      if (how.dryRun && !job.rehearses)
        throw new MakegoodError("invalid_request", `${name} has no dry run: it only does what cannot be seen before`, {
          errors: [{ field: "dry_run", detail: `${name} has none` }],
        });
      return runOnce(job, how, new AbortController().signal);
    },
  };
}
