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

export interface ListedJob extends Pick<MaintenanceJob, "name" | "everyMs" | "where" | "about"> {
  readonly rehearses: boolean;
}

export interface Jobs {
  list(): ListedJob[];
  /** Throws `job_not_found`, and `invalid_request` for a dry run of a job that has none. What the job throws is in the report. */
  run(name: string, how?: RunByHand): Promise<JobReport>;
}

interface Parts {
  readonly holder: string;
  readonly clock: Clock;
  readonly events: Events;
  /** Jobs, and the store in which they are locked: the one that they write to. */
  readonly sets: readonly { readonly store: Store; readonly jobs: readonly MaintenanceJob[] }[];
  /** Those of a Makegood that works inside of this one, for recovery. */
  readonly beside: Jobs | null;
}

export const lockOf = (name: string): string => `job:${name}`;
/** What stands before the name of a job of the home of recovery. */
const BESIDE = "recovery-home-";

export function createJobs({ holder, clock, events, sets, beside }: Parts): Jobs {
  const known = sets.flatMap(({ store, jobs }) => {
    const locks = createLocks(store, holder, { clock, events });
    return jobs.map((job) => ({ job, locks }));
  });

  const list = (): ListedJob[] => [
    ...known.map(({ job: { name, everyMs, where, about, rehearses = false } }) => ({ name, everyMs, where, about, rehearses })),
    ...(beside?.list() ?? []).map((job) => ({ ...job, name: `${BESIDE}${job.name}` })),
  ];

  function find(name: string): (typeof known)[number] {
    const found = known.find(({ job }) => job.name === name);
    const names = list().map((one) => one.name);
    if (!found) throw new MakegoodError("job_not_found", `there is no job ${name}: there are ${names.join(", ")}`, { name });
    return found;
  }

  const keep = (lock: Lock) =>
    startLoop({
      clock: inBackground(clock),
      step: async () => ((await lock.extend()) ? LOCK_MS.reconcile / 3 : LOCK_MS.reconcile),
      failed: () => LOCK_MS.reconcile / 10,
    });

  async function runOnce({ job, locks }: (typeof known)[number], how: RunByHand, signal: AbortSignal): Promise<JobReport> {
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
    list,
    async run(name, how = {}) {
      if (beside && name.startsWith(BESIDE)) return { ...(await beside.run(name.slice(BESIDE.length), how)), name };
      const found = find(name);
      if (how.dryRun && !found.job.rehearses)
        throw new MakegoodError("invalid_request", `${name} has no dry run: it only does what cannot be seen before`, {
          errors: [{ field: "dry_run", detail: `${name} has none` }],
        });
      return runOnce(found, how, new AbortController().signal);
    },
  };
}
