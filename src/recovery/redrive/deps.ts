/**
 * What the redrives need of the rooms around them, as plain objects and functions, and what can be set about their runner.
 */
import type { TopicRecord } from "../../message/topic.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Store } from "../../store/store.ts";
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

export interface RedriveDeps {
  readonly recovery: Pick<Records, "redrives" | "candidate">;
  readonly store: Pick<Store, "topics" | "get">;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  /** Names this process in claims. */
  readonly owner: string;
  /** Whether this process has a sink for the topic. */
  readonly serves: (topic: TopicRecord) => boolean;
  /** Throws `payload_rejected_by_schema` when the text does not fit the topic's schema. */
  readonly checkPayload: (topic: string, text: string) => void | Promise<void>;
  readonly settings?: Partial<RedriveSettings> | undefined;
}
