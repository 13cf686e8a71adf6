/**
 * The kernel's tables: the promise is written once and never updated; what is due is a narrow row that a claim deletes;
 * a lease is one row for a whole batch; each attempt leaves one row. See docs/decisions/0002.
 */
import type { Migration } from "./migration.ts";

export const kernel: Migration = {
  version: 1,
  name: "kernel",
  sql: (s) => `
create table ${s}.topic (
  id int generated always as identity primary key,
  name text collate "C" not null unique,
  definition text not null,
  secrets text,
  source text not null check (source in ('api', 'file', 'code')),
  revision int not null default 1,
  deleted boolean not null default false,
  paused boolean not null default false,
  disabled_reason text,
  breaker_state smallint not null default 0 check (breaker_state between 0 and 2),
  breaker_until timestamptz,
  breaker_trips int not null default 0,
  breaker_reason text,
  probe_owner text,
  probe_until timestamptz,
  updated_at timestamptz not null default statement_timestamp());

-- the unit of fairness, priority, pause and watermark; kind: 0 plain, 1 suspects in small batches, 2 suspects alone, 3 ordered
create table ${s}.lane (
  id int generated always as identity primary key,
  topic_id int not null references ${s}.topic,
  tenant text collate "C" not null default '',
  priority smallint not null default 0 check (priority between -100 and 100),
  kind smallint not null default 0 check (kind between 0 and 3),
  unique (topic_id, tenant, priority, kind));

-- insert-only; one partition a day by the time in the id; no default partition, so that a day can be detached concurrently
create table ${s}.message (
  id uuid not null,
  created_at timestamptz not null default statement_timestamp(),
  lane_id int not null,
  schema_version int,
  handed_down boolean,
  key text collate "C",
  ordering_key text collate "C",
  traceparent text,
  payload text not null,
  primary key (id)) partition by range (id);

-- bodies that outlive their day
create table ${s}.message_kept (like ${s}.message including defaults, primary key (id));

-- a key protects as long as its row lives, whatever became of the message; hash: first half of sha256 of the payload
create table ${s}.dedupe (
  topic_id int not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  id uuid not null,
  hash uuid not null,
  primary key (topic_id, tenant, key));

-- pending; rows are inserted and deleted, never updated (a claim relies on their ctid)
create table ${s}.ready (
  due timestamptz not null,
  id uuid not null,
  lane_id int not null,
  attempts smallint not null default 0 check (attempts >= 0),
  base smallint not null default 0 check (base between 0 and attempts),
  primary key (id))
  with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_scale_factor = 0.2);
create index ready_due on ${s}.ready (lane_id, due, id);

-- pending with an ordering key: only the head of a key may be claimed
create table ${s}.ready_ordered (
  lane_id int not null,
  ordering_key text collate "C" not null,
  id uuid not null unique,
  due timestamptz not null,
  attempts smallint not null default 0 check (attempts >= 0),
  base smallint not null default 0 check (base between 0 and attempts),
  suspicion smallint not null default 0 check (suspicion between 0 and 2),
  primary key (lane_id, ordering_key, id));

-- one in flight per ordering key; a strict topic's dead head keeps its row
create table ${s}.order_lock (
  lane_id int not null,
  ordering_key text collate "C" not null,
  id uuid not null unique,
  primary key (lane_id, ordering_key));

-- why a pending message is held: its ready row is due at infinity
create table ${s}.held (
  id uuid primary key,
  reason text not null,
  at timestamptz not null default statement_timestamp());

-- one row per claimed batch; the token is the fence
create table ${s}.lease (
  id bigint generated always as identity primary key,
  token uuid not null default gen_random_uuid(),
  until timestamptz not null,
  suspicion smallint not null default 0,
  owner text not null,
  ids uuid[] not null,
  attempts smallint[] not null,
  bases smallint[] not null,
  lanes int[] not null)
  with (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
create index lease_until on ${s}.lease (until);

-- outcome: 1 delivered, 2 duplicate, 3 retry, 4 reject, 5 unknown, 6 lost, 7 interrupted. One row per (message, lease): the second fence
create table ${s}.attempt (
  message_id uuid not null,
  lease_id bigint not null,
  at timestamptz not null default statement_timestamp(),
  duration_ms int,
  n smallint not null check (n >= 0),
  outcome smallint not null check (outcome between 1 and 7),
  counted boolean not null default true,
  next_due timestamptz,
  code text,
  error text,
  primary key (message_id, lease_id)) partition by range (message_id);
create table ${s}.attempt_old partition of ${s}.attempt default;

-- resolution: 0 open, 1 resolved, 2 discarded, 3 replayed (no longer dead; the row keeps generation and revision)
create table ${s}.dead_letter (
  id uuid primary key,
  lane_id int not null,
  attempts smallint not null,
  generation smallint not null default 0,
  resolution smallint not null default 0 check (resolution between 0 and 3),
  revision int not null default 1,
  died_at timestamptz not null default statement_timestamp(),
  settled_at timestamptz,
  code text,
  error text);
create index dead_letter_open on ${s}.dead_letter (lane_id, id) where resolution = 0;

-- append-only: who did what to a message, and why
create table ${s}.provenance (
  id bigint generated always as identity primary key,
  at timestamptz not null default statement_timestamp(),
  message_id uuid not null,
  actor text not null,
  action text not null,
  reason text);
create index provenance_message on ${s}.provenance (message_id, id);

-- workers that want a NOTIFY; a hint, so it need not survive a crash
create unlogged table ${s}.waiter (owner text primary key, until timestamptz not null);

create table ${s}.leader (
  name text primary key,
  owner text not null,
  term bigint not null default 1,
  until timestamptz not null);

create function ${s}.refuse_change() returns trigger language plpgsql as $body$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end $body$;
create trigger message_insert_only before update on ${s}.message for each row execute function ${s}.refuse_change();
create trigger attempt_insert_only before update on ${s}.attempt for each row execute function ${s}.refuse_change();
create trigger provenance_append_only before update or delete on ${s}.provenance for each row execute function ${s}.refuse_change();
create trigger ready_never_updated before update on ${s}.ready for each row execute function ${s}.refuse_change();
`,
};
