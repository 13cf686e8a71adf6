/**
 * Runs the maintenance jobs: each in a loop of its own, so that a slow or failing one holds up no other, and those that
 * one process can do for all only under leadership, whose fence each of their writes carries.
 */
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { MaintenanceJob } from "../platform/job.ts";
import { startLoop } from "../platform/loop.ts";
import type { Random } from "../platform/random.ts";
import type { Store } from "../store/store.ts";
import { startLeader } from "./leader.ts";
import { runJob } from "./run-job.ts";

export interface Maintenance {
  stop(): Promise<void>;
}

export interface MaintenanceOptions {
  readonly store: Store;
  readonly owner: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly jobs: readonly MaintenanceJob[];
  /** Whose leadership it is, where others have theirs. */
  readonly name?: string | undefined;
}

/** What runs as seldom is also run when its process begins to lead: a chore of each day would else wait for a process that lives for a day. */
const SELDOM_MS = 3_600_000;

export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { store, owner, clock, random, events, jobs, name = "maintenance" } = options;
  const ledOnes = jobs.some(({ where }) => where === "leader");
  const led = () => loops.forEach(({ leads }) => void leads?.());
  const leader = ledOnes ? startLeader({ store, name, owner, clock, events, led }) : null;
  const loops = jobs.map((job) => {
    let first = job.firstEach ?? false;
    const loop = startLoop({
      clock,
      step: async (signal) => {
        const fence = job.where === "leader" ? (leader?.fence() ?? null) : null;
        const runs = first || job.where === "each" || fence !== null;
        const turn = { dryRun: false, batchSize: null, fence };
        const nextMs = runs ? (await runJob(job, turn, signal, { clock, events })).nextMs : undefined;
        first = false;
        // Processes that were started together drift apart.
        return nextMs ?? job.everyMs * (0.9 + random.next() * 0.2);
      },
      failed: (error, consecutive) => {
        const lost = isMakegoodError(error) && error.code === "leadership_lost";
        if (!lost) events.emit({ type: "store_error", during: job.name, error: errorText(error), consecutive });
        return Math.min(Math.max(job.everyMs, 1_000), 60_000);
      },
    });
    const deaf = job.hear?.(() => loop.nudge());
    return {
      leads: job.where === "leader" && job.everyMs >= SELDOM_MS ? () => loop.nudge() : null,
      stop() {
        deaf?.();
        return loop.stop();
      },
    };
  });
  events.emit({ type: "lifecycle", what: "maintenance_started", detail: { jobs: jobs.map(({ name }) => name) } });
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await leader?.stop();
    },
  };
}
