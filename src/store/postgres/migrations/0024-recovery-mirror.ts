/**
 * Dead letters of another store that recovery here stands beside (decision 0033): which message of ours stands for which of theirs, and for
 * which of its deaths. Empty where recovery is in the same store as the messages.
 */
import type { Migration } from "./migration.ts";

export const recoveryMirror: Migration = {
  version: 24,
  name: "recovery-mirror",
  sql: (s) => `
-- attempts: of the primary's message when it died for the last time that is counted here
create table ${s}.recovery_mirror (primary_id uuid primary key, message_id uuid not null unique, attempts int not null);
`,
};
