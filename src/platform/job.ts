/**
 * A maintenance job: a chore that runs every so often beside delivery, or once because a person asks for it. Each must be safe if two run
 * at once, because leadership saves work and never provides safety (I9); what a led job writes is refused once its leadership has ended.
 */
export interface MaintenanceJob {
  readonly name: string;
  readonly everyMs: number;
  /** `each`: in every worker. `leader`: only where the leadership is held, since one is enough. */
  readonly where: "each" | "leader";
  /** Every process makes the first run: it often starts because the leader has just died, and that one's lease still runs. */
  readonly firstEach?: boolean | undefined;
  /** What it does, in one line, for who lists the jobs or runs one by hand. */
  readonly about: string;
  /** Whether it knows what it would do without doing it. */
  readonly rehearses?: boolean | undefined;
  /** A number: how long until the next run, where that is not `everyMs`; 0: at once. */
  run(signal: AbortSignal, turn: JobTurn): Promise<void> | Promise<number> | Promise<Ran>;
  /** Calls `now` when there is something to do already. Returns how to end that. */
  readonly hear?: ((now: () => void) => () => void) | undefined;
}

type More = Pick<MaintenanceJob, "hear" | "firstEach">;

/** A job of every process, with nothing more to it than this. */
export const each = (
  name: string,
  about: string,
  everyMs: number,
  run: MaintenanceJob["run"],
  more: More = {},
): MaintenanceJob => ({
  ...{ name, about, everyMs, run, ...more },
  where: "each",
});

/** A job of one process, which every process does once at its start. */
export const led = (
  name: string,
  about: string,
  everyMs: number,
  run: MaintenanceJob["run"],
  more: More = {},
): MaintenanceJob => ({
  ...each(name, about, everyMs, run, more),
  ...{ where: "leader", firstEach: true },
});

/** The same job, one run at a time in this process, by the scheduler or by hand: what it keeps between runs is its own. */
export function inTurn(job: MaintenanceJob): MaintenanceJob {
  let last: Promise<unknown> = Promise.resolve();
  return {
    ...job,
    run(signal, turn) {
      const ran = last.then((): Promise<unknown> => job.run(signal, turn));
      last = ran.catch(() => {});
      return ran as ReturnType<MaintenanceJob["run"]>;
    },
  };
}

/** What one run of a job is given. */
export interface JobTurn {
  /** It counts what it would do and changes nothing. Only ever true for a job that `rehearses`. */
  readonly dryRun: boolean;
  /** How many at once, where a person wants it; null: as the job does it. */
  readonly batchSize: number | null;
  /** What each write must still be under when it commits; null: a run for which nobody was elected. */
  readonly fence: Fence | null;
}

/** A run that nobody asked for in particular. */
export const USUAL_TURN: JobTurn = { dryRun: false, batchSize: null, fence: null };

/** A leadership as it was given: a write under it is refused once another one leads, or the lease has run out. */
export interface Fence {
  readonly name: string;
  readonly owner: string;
  readonly term: string;
}

/** What came of one run. */
export interface Ran {
  /** By plain words, such as `archived` or `deleted`. */
  readonly counts: Readonly<Record<string, number>>;
  /** A run is bounded: there is more to do, and the next one is made at once. */
  readonly more?: boolean | undefined;
  /** How long until the next run, where that is not `everyMs`. */
  readonly nextMs?: number | undefined;
  /** What a person should read. */
  readonly notes?: readonly string[] | undefined;
}
