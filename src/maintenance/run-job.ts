/**
 * One run of a job, by the scheduler or by hand: what came of it is one event and one report. A run whose leadership ended meanwhile has
 * written nothing since, and counts as stopped: the next leader goes on where it was.
 */
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { JobTurn, MaintenanceJob, Ran } from "../platform/job.ts";

export interface JobReport {
  readonly name: string;
  /** `skipped`: another process is at it. `stopped`: it was told to, or lost its leadership, before it was through. */
  readonly result: "done" | "skipped" | "stopped" | "failed";
  readonly dryRun: boolean;
  readonly ms: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly more: boolean;
  readonly notes: readonly string[];
  readonly error: string | null;
}

interface RunParts {
  readonly clock: Clock;
  readonly events: Events;
}

/** Throws what the job throws, after saying so. */
export async function runJob(job: MaintenanceJob, turn: JobTurn, signal: AbortSignal, { clock, events }: RunParts) {
  const { name } = job;
  const startedMs = clock.monotonicMs();
  const say = (result: JobReport["result"], counts: Ran["counts"], error: string | null): number => {
    const ms = clock.monotonicMs() - startedMs;
    events.emit({ type: "job", name, result, ms, counts, error });
    return ms;
  };
  try {
    const answer = await job.run(signal, turn);
    const ran: Ran = typeof answer === "object" ? answer : { counts: {}, nextMs: answer ?? undefined };
    const { counts, more = false, notes = [] } = ran;
    const result = signal.aborted ? ("stopped" as const) : ("done" as const);
    const ms = say(result, counts, null);
    const report: JobReport = { name, result, dryRun: turn.dryRun, ms, counts, more, notes, error: null };
    return { report, nextMs: ran.nextMs ?? (more ? 0 : undefined) };
  } catch (error) {
    say(isMakegoodError(error) && error.code === "leadership_lost" ? "stopped" : "failed", {}, errorText(error));
    throw error;
  }
}
