/**
 * A message with an ordering key that failed stays in its lane, so its row says that it did: only those that never failed say something
 * about their receiver. The version before neither reads nor writes it: what it handles counts as never failed.
 */
import type { Migration } from "./migration.ts";

export const failedHeads: Migration = {
  version: 16,
  name: "failed-heads",
  sql: (s) => `
alter table ${s}.ready_ordered add column failed boolean not null default false;
alter table ${s}.order_lock add column failed boolean not null default false;
`,
};
