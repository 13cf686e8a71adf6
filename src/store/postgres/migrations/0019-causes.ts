/** The signatures of causes are documents of the recovery engine. */
import type { Migration } from "./migration.ts";

export const causes: Migration = {
  version: 19,
  name: "causes",
  sql: (s) => `
alter table ${s}.recovery_document drop constraint recovery_document_kind_check,
  add constraint recovery_document_kind_check check (kind in ('rule', 'cause', 'group_rule', 'action', 'templates'));
`,
};
