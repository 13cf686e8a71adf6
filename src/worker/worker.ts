/**
 * What a worker offers to the code that started it. The dispatcher does the work.
 */

export interface WorkOptions {
  /** Names or patterns such as `audit/*`; absent: every topic that has a sink in this process. */
  readonly topics?: readonly string[] | undefined;
  /** How many attempts at once. */
  readonly concurrency?: number | undefined;
  /** False: delivers and takes back lost leases, but leaves retention to other processes. */
  readonly maintenance?: boolean | undefined;
  /** Aborting it stops the worker as stop() does. */
  readonly signal?: AbortSignal | undefined;
}

export interface WorkOffOptions extends WorkOptions {
  /** It ends after this, whatever is left; 60 s unless said. */
  readonly timeoutMs?: number | undefined;
}

/** What was attempted meanwhile, by all workers of this process. */
export interface WorkedOff {
  readonly attempts: number;
  readonly delivered: number;
  /** Became dead letters. The rest of the attempts failed, and their messages wait. */
  readonly dead: number;
  /** What ended it early; null: nothing did. */
  readonly error: unknown;
}

export interface TickOptions extends Omit<WorkOptions, "signal"> {
  /** The whole call ends within this, and a little before it whatever still runs is interrupted. */
  readonly budgetMs: number;
}

export interface Ticked extends WorkedOff {
  /** In how many milliseconds something may be attempted; 0: there is more to do now. Null: nothing waits here, or `error` says why nobody knows. */
  readonly nextDueInMs: number | null;
}

export interface StopOptions {
  /** How long attempts under way may take to finish; then they are interrupted, which does not count as a failure. */
  readonly drainMs?: number | undefined;
}

export interface WorkerStatus {
  readonly state: "working" | "draining" | "stopped";
  /** Attempts under way. */
  readonly running: number;
  /** Claimed and not started. */
  readonly waiting: number;
  /** Outcomes that are not written yet. */
  readonly unsettled: number;
  /** Failures of the store in a row; 0 when the last call succeeded. */
  readonly storeFailures: number;
}

export interface Worker extends AsyncDisposable {
  readonly owner: string;
  status(): WorkerStatus;
  /** Stops claiming, gives back what was not started, waits for the rest. Idempotent. */
  stop(options?: StopOptions): Promise<void>;
}
