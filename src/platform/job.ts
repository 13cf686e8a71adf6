/**
 * A maintenance job: a chore that runs every so often beside delivery. Each must be safe if two run at once, because
 * leadership saves work and never provides safety (I9).
 */
export interface MaintenanceJob {
  readonly name: string;
  readonly everyMs: number;
  /** `each`: in every worker. `leader`: only where the leadership is held, since one is enough. */
  readonly where: "each" | "leader";
  /** Every process makes the first run: it often starts because the leader has just died, and that one's lease still runs. */
  readonly firstEach?: boolean | undefined;
  /** A number: how long until the next run, where that is not `everyMs`; 0: at once. */
  run(signal: AbortSignal): Promise<void> | Promise<number>;
  /** Calls `now` when there is something to do already. Returns how to end that. */
  readonly hear?: ((now: () => void) => () => void) | undefined;
}
