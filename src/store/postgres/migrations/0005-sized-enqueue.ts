/**
 * Less work for a single enqueue and a single claim. The SQL function says how large a payload is, as every other way in does, so
 * a claim need not look it up; rows that do not say count as the largest payload there may be, and a batch of them is small.
 * One of the two checks on `ready` goes: PostgreSQL prepares each again for each statement, and the other implies it.
 */
import { enqueueSql } from "./0002-enqueue-function.ts";
import type { Migration } from "./migration.ts";

export const sizedEnqueue: Migration = {
  version: 5,
  name: "sized-enqueue",
  sql: (s) => `
alter table ${s}.ready drop constraint ready_attempts_check;
${enqueueSql(s, true)}`,
};
