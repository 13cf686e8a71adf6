/**
 * Who serves which topics, as each worker says of itself every few seconds: a row per worker, rewritten in place.
 */
import type { Migration } from "./migration.ts";

export const workers: Migration = {
  version: 11,
  name: "workers",
  sql: (s) => `
create table ${s}.worker (
  owner text primary key,
  note text not null,
  until timestamptz not null) with (fillfactor = 50);
`,
};
