/**
 * Lanes of a fifth kind, for messages that failed before, and what a breaker needs beside its own state: the tenants that are held alone,
 * and until when the messages that failed before rest. A worker of the version before sees neither and goes on as it did.
 */
import type { Migration } from "./migration.ts";

export const breaker: Migration = {
  version: 10,
  name: "breaker",
  sql: (s) => `
alter table ${s}.lane drop constraint lane_kind_check, add constraint lane_kind_check check (kind between 0 and 4);
alter table ${s}.topic add column rest_until timestamptz, add column held_tenants jsonb not null default '{}';
`,
};
