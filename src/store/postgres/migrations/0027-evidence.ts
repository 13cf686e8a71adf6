/**
 * Tamper evidence (decision 0036). A row of audit or provenance is noted in the transaction that writes it, numbered once it is committed,
 * and sealed into blocks. Nothing is written twice, nothing waits for anything, and no old row is touched: those are numbered in their
 * turn, up to the id that stood here. A record of audit leaves only in a transaction that wrote down its departure.
 */
import type { Migration } from "./migration.ts";

const SOURCES = [
  [1, "audit_record", "seq", "recorded_at"],
  [2, "provenance", "id", "at"],
  [3, "recovery_provenance", "id", "at"],
] as const;

const tables = (s: string) => `
-- rows that were written and have no number yet
create table ${s}.evidence_pending (source smallint, id bigint, at timestamptz not null, primary key (source, id));

-- of each source: old rows have numbers up to done_id, and are those up to until_id
create table ${s}.evidence_source (source smallint primary key, done_id bigint not null, until_id bigint not null);

-- the process that numbers or seals holds this row, so numbers become visible in their order
create table ${s}.evidence_state (next_pos bigint not null, single boolean primary key default true check (single));
insert into ${s}.evidence_state (next_pos) values (1);

-- salt: of rows that have none themselves; gone: the departure that took the row, 0: it was not there any more when it was to be numbered
create table ${s}.evidence_leaf (
  source smallint not null,
  pos bigint not null,
  id bigint not null,
  at timestamptz not null,
  leaf bytea not null check (octet_length(leaf) = 32),
  salt uuid,
  gone bigint,
  primary key (source, pos),
  unique (source, id));
create index evidence_leaf_gone on ${s}.evidence_leaf (gone, pos) where gone is not null;
create trigger evidence_leaf_kept before update of source, pos, id, at, leaf or delete on ${s}.evidence_leaf
  for each row execute function ${s}.refuse_change();

-- hash: of the note's text, which names the block before; one chain, whichever process seals
create table ${s}.evidence_block (
  height bigint primary key check (height > 0),
  previous bytea not null unique,
  first_pos bigint not null unique,
  last_pos bigint not null check (last_pos >= first_pos),
  root bytea not null,
  hash bytea not null,
  sealed_at timestamptz not null,
  note text not null);
create index evidence_block_last on ${s}.evidence_block (last_pos);
create trigger evidence_block_append_only before update or delete on ${s}.evidence_block
  for each row execute function ${s}.refuse_change();

-- rows that left: by their leaves' gone, or where from_at is set all of that time that had not left before
create table ${s}.evidence_departure (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('retired', 'erased')),
  source smallint not null,
  first_pos bigint not null,
  last_pos bigint not null,
  from_at timestamptz,
  to_at timestamptz,
  count bigint not null,
  root bytea not null,
  at timestamptz not null,
  actor text not null,
  reason text not null,
  note text not null);
create trigger evidence_departure_append_only before update or delete on ${s}.evidence_departure
  for each row execute function ${s}.refuse_change();

-- what was written outside as well
create table ${s}.evidence_anchor (kind text, number bigint, at timestamptz not null default statement_timestamp(), place text not null,
  primary key (kind, number));
`;

/** Rows are noted by statement: one insert however many there are. */
const watched = (s: string, [source, table, id, at]: (typeof SOURCES)[number]) => `
alter table ${s}.${table} add column salt uuid;
alter table ${s}.${table} alter column salt set default gen_random_uuid();
create function ${s}.${table}_evidence() returns trigger language plpgsql as $body$
begin
  insert into ${s}.evidence_pending (source, id, at) select ${source}, ${id}, ${at} from fresh;
  return null;
end $body$;
create trigger ${table}_evidence after insert on ${s}.${table} referencing new table as fresh
  for each statement execute function ${s}.${table}_evidence();
insert into ${s}.evidence_source (source, done_id, until_id) select ${source}, 0, coalesce(max(${id}), 0) from ${s}.${table};
`;

export const evidence: Migration = {
  version: 27,
  name: "evidence",
  sql: (s) => `${tables(s)}
create function ${s}.refuse_unrecorded() returns trigger language plpgsql as $body$
begin
  if coalesce(current_setting('makegood.departs', true), '') <> pg_current_xact_id()::text then
    raise exception '% is append-only: a row leaves with the record of its departure', tg_table_name using errcode = 'integrity_constraint_violation';
  end if;
  return old;
end $body$;
create or replace trigger audit_record_append_only before update on ${s}.audit_record for each row execute function ${s}.refuse_change();
create trigger audit_record_leaves before delete on ${s}.audit_record for each row execute function ${s}.refuse_unrecorded();
${SOURCES.map((one) => watched(s, one)).join("")}
-- a hold keeps its records past every retention; by record, or by what records belong to
create table ${s}.audit_hold (
  id bigint generated always as identity primary key,
  event_id text collate "C",
  correlation_id text collate "C",
  reason text not null,
  placed_by text not null,
  placed_at timestamptz not null,
  released_by text,
  released_at timestamptz,
  release_reason text,
  check ((event_id is null) <> (correlation_id is null)));
create index audit_hold_active on ${s}.audit_hold (correlation_id, event_id) where released_at is null;
`,
};
