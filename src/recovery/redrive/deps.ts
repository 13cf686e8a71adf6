/** What the redrives need of the rooms around them, and what can be set about their runner. */
import type { RecoveryDeps } from "../engine.ts";
import type { Records } from "../records.ts";

export const REDRIVE_SETTINGS = {
  /** How long a runner that was killed keeps its redrive from the others. */
  leaseMs: 10_000,
  /** How often a runner with room looks for work without a nudge. */
  pollMs: 1_000,
  /** How long one process keeps a redrive before others may have it. */
  workMs: 5_000,
  /** How many redrives one process works on at a time. */
  heldMax: 8,
  /** A resolved message that nobody replayed for so long stays resolved. */
  quietMs: 300_000,
  /** A dry run that nobody resumed is cancelled after so long. */
  plannedMs: 24 * 3_600_000,
};
export type RedriveSettings = Readonly<typeof REDRIVE_SETTINGS>;

export interface RedriveDeps extends Pick<RecoveryDeps, "store" | "events" | "ids" | "clock" | "serves" | "checkPayload"> {
  readonly recovery: Pick<Records, "redrives" | "candidate">;
  /** Names this process in claims. */
  readonly owner: string;
  readonly settings?: Partial<RedriveSettings> | undefined;
}
