/**
 * Audit records. An event id is unique over all time, which a constraint of a partitioned table cannot say, so identities stand in
 * a table of their own; the records stand in months and leave by whole months. Neither is ever updated, no record is deleted.
 */
import type { Migration } from "./migration.ts";

export const audit: Migration = {
  version: 4,
  name: "audit",
  sql: (s) => `
-- hash: first half of sha256 of the payload; (recorded_at, seq) leads to the record
create table ${s}.audit_event (
  event_id text collate "C" primary key check (octet_length(event_id) between 1 and 255),
  seq bigint generated always as identity,
  hash uuid not null,
  recorded_at timestamptz not null);

-- one partition a month by the time of storing: that one is ours, an occurred_at is whatever a producer's clock says
create table ${s}.audit_record (
  seq bigint not null,
  recorded_at timestamptz not null,
  event_id text collate "C" not null,
  audit_type text collate "C" not null,
  correlation_id text collate "C" not null,
  occurred_at timestamptz not null,
  actor text not null,
  resource text not null,
  outcome text not null,
  payload text not null,
  primary key (recorded_at, seq)) partition by range (recorded_at);
create index audit_record_correlation on ${s}.audit_record (correlation_id, seq);
create index audit_record_type on ${s}.audit_record (audit_type, seq);
create index audit_record_seq on ${s}.audit_record (seq);
create index audit_record_occurred on ${s}.audit_record (occurred_at);

create trigger audit_event_insert_only before update on ${s}.audit_event for each row execute function ${s}.refuse_change();
create trigger audit_record_append_only before update or delete on ${s}.audit_record for each row execute function ${s}.refuse_change();
`,
};
