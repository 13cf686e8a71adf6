/**
 * What conservation remembers (docs/decisions/0035): an account for each topic, tenant and hour, the ids that were accepted and are not
 * settled, seals in a chain, what lay in each day, and what does not add up. No statement of delivery reads or writes any of it. The index
 * by time is made here for days to come; days that exist get theirs one after the other (day-indexes.ts).
 */
import type { Migration } from "./migration.ts";

export const conservation: Migration = {
  version: 26,
  name: "conservation",
  sql: (s) => `
-- one row, made by the first pass. Accepted are the messages of transactions before from_xid, and of those before to_xid the ones up to
-- cursor; phase: 0 reading message_kept, 1 reading message, 2 nothing left to read
create table ${s}.conservation (
  single boolean primary key default true check (single),
  phase smallint not null default 0,
  from_xid bigint not null default 0,
  to_xid bigint not null,
  floor timestamptz not null default '-infinity',
  cursor uuid not null default '00000000-0000-0000-0000-000000000000',
  accepted_n bigint not null default 0,
  accepted_hash numeric not null default 0,
  seal_no bigint not null default 0,
  head text not null default '',
  pass bigint not null default 0,
  passed_at timestamptz,
  walk_at uuid not null default '00000000-0000-0000-0000-000000000000',
  walk_began timestamptz,
  rolled_at timestamptz,
  deep_at uuid not null default '00000000-0000-0000-0000-000000000000',
  deep_began timestamptz,
  deep_rolled_at timestamptz,
  state text not null default 'unknown' check (state in ('whole', 'broken', 'unknown')),
  reason text,
  since timestamptz not null default statement_timestamp(),
  -- which writing of the database it is: another one after a dump was read back, because transactions have other numbers then
  home_xid text not null);

-- what an outside witness is compared with
create table ${s}.conservation_pass (
  no bigint primary key,
  at timestamptz not null,
  next_xid bigint not null,
  accepted_n bigint not null,
  accepted_hash numeric not null,
  seal_no bigint not null,
  head text not null);

create table ${s}.conservation_bucket (
  id int generated always as identity primary key,
  topic text collate "C" not null,
  tenant text collate "C" not null,
  hour timestamptz not null,
  money_field text,
  accepted_n bigint not null default 0,
  accepted_hash numeric not null default 0,
  accepted_body numeric not null default 0,
  accepted_money numeric not null default 0,
  unpriced_n bigint not null default 0,
  delivered_n bigint not null default 0,
  resolved_n bigint not null default 0,
  discarded_n bigint not null default 0,
  settled_hash numeric not null default 0,
  archived_n bigint not null default 0,
  archived_hash numeric not null default 0,
  archived_body numeric not null default 0,
  archived_money numeric not null default 0,
  sealed bigint,
  unique (topic, tenant, hour));
create index conservation_bucket_open on ${s}.conservation_bucket (hour) where sealed is null;

-- accepted and not settled when it was last looked at
create table ${s}.conservation_open (
  id uuid primary key,
  bucket int not null,
  hash bigint not null,
  body bigint not null,
  money numeric)
  with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
create index conservation_open_bucket on ${s}.conservation_open (bucket) include (hash);

create table ${s}.conservation_seal (
  no bigint primary key,
  bucket int not null,
  topic text collate "C" not null,
  tenant text collate "C" not null,
  hour timestamptz not null,
  n bigint not null,
  hash numeric not null,
  body numeric not null,
  money numeric not null,
  at timestamptz not null default statement_timestamp(),
  head text not null);
create trigger conservation_seal_append_only before update or delete on ${s}.conservation_seal
  for each row execute function ${s}.refuse_change();

create table ${s}.conservation_day (
  name text collate "C" primary key,
  n bigint not null,
  hash numeric not null,
  gone_at timestamptz);

create table ${s}.conservation_divergence (
  id bigint generated always as identity primary key,
  scope text not null,
  kind text not null,
  topic text,
  tenant text,
  hour timestamptz,
  place text collate "C" not null default '',
  count bigint not null,
  ids text[] not null default '{}',
  detail text,
  found_at timestamptz not null default statement_timestamp());
create index conservation_divergence_scope on ${s}.conservation_divergence (scope, place);

-- a payload that PostgreSQL cannot take apart, or without a number at that place, has no price; that must not end a pass
create function ${s}.money_of(payload text, field text) returns numeric language plpgsql immutable strict
set search_path = pg_catalog, pg_temp as $body$
declare
  found text := payload::json #>> string_to_array(field, '.');
begin
  return case when found ~ '^-?[0-9]{1,40}(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' then found::numeric end;
exception when others then
  return null;
end $body$;

create index message_created on only ${s}.message using brin (created_at) with (pages_per_range = 32, autosummarize = on);
create index message_kept_created on ${s}.message_kept using brin (created_at) with (pages_per_range = 32, autosummarize = on);
`,
};
