/**
 * Lists by index with any filter. The days that exist already get theirs one after the other without blocking writers
 * (day-indexes.ts): a migration must not hold up an enqueue for as long as it takes to index a large day. Days that are made later have it
 * from the start.
 */
import type { Migration } from "./migration.ts";

export const lists: Migration = {
  version: 12,
  name: "lists",
  sql: (s) => `
create index message_lane on only ${s}.message (lane_id, id);
create index message_kept_lane on ${s}.message_kept (lane_id, id);
create index dead_letter_state on ${s}.dead_letter (resolution, id);
create index dead_letter_lane on ${s}.dead_letter (lane_id, resolution, id);
drop index ${s}.dead_letter_open;
`,
};
