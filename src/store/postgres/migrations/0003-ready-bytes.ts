/**
 * How large a pending message is stands beside what is due, so that a claim can end its batch by bytes before it reads a body.
 * Null: not known (a retry, or written by an older version); the claim looks it up. Lists of a lease are kept as they come: to
 * compress what lives for milliseconds costs more than it saves.
 */
import type { Migration } from "./migration.ts";

export const readyBytes: Migration = {
  version: 3,
  name: "ready-bytes",
  sql: (s) => `
alter table ${s}.ready add column bytes int;
alter table ${s}.lease alter column ids set storage external, alter column attempts set storage external,
  alter column bases set storage external, alter column lanes set storage external;
`,
};
