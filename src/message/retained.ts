/** What retention takes, by the names that the archive, `retention_jobs`, events and metrics know it by: one list for all of them. */
export const RETIRED_NAMES = [
  /** Messages. */
  "delivered",
  /** Dead letters that were resolved or discarded. */
  "dead",
  "occurrences",
  "redrive_items",
  "provenance",
  "recovery_provenance",
  "replays",
  "usage_turns",
  "audit",
] as const;

export type RetiredName = (typeof RETIRED_NAMES)[number];
