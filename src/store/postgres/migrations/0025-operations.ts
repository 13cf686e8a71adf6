/**
 * Leadership that is checked when a write commits, locks by the seeds' names, and retention: archives in chunks that are written in the
 * transaction that deletes, and a record of each run. Provenance may leave only that way, and only what is old; else it stays append-only.
 * Additive: a process of the version before leads, writes and prunes as it did.
 */
import type { Migration } from "./migration.ts";

const definer = "language plpgsql security definer set search_path = pg_catalog, pg_temp";

export const operations: Migration = {
  version: 25,
  name: "operations",
  sql: (s) => `
${leadership(s)}
${locks(s)}
${archive(s)}
${retention(s)}
`,
};

const leadership = (s: string) => `-- a term only grows, also when the row of a lock was cleaned away in between
create sequence ${s}.leader_term;
select setval('${s}.leader_term', (select coalesce(max(term), 0) + 1 from ${s}.leader));
alter table ${s}.leader alter column term set default nextval('${s}.leader_term');

-- what is written here is refused at commit unless its leadership holds then: a client that was frozen in between commits nothing
create unlogged table ${s}.led_write (
  n bigint generated always as identity primary key,
  name text not null,
  owner text not null,
  term bigint not null);
create function ${s}.check_led_write() returns trigger ${definer} as $body$
begin
  delete from ${s}.led_write where n = new.n;
  if not exists (select from ${s}.leader l where l.name = new.name and l.owner = new.owner and l.term = new.term
    and l.until > clock_timestamp()) then
    raise exception 'makegood: leadership_lost: term % of % has ended: nothing was written', new.term, new.name using errcode = '23514';
  end if;
  return null;
end $body$;
create constraint trigger check_led_write after insert on ${s}.led_write deferrable initially deferred
  for each row execute function ${s}.check_led_write();`;

/** REC-47: the four about locks, on the table that leaderships stand in. */
const locks = (s: string) => `create function ${s}.acquire_lock(lock_name text, holder text, ttl_seconds int) returns boolean
language sql set search_path = pg_catalog, pg_temp as $body$
  with t as (insert into ${s}.leader as l (name, owner, until)
    values (lock_name, holder, clock_timestamp() + ttl_seconds * interval '1 second')
    on conflict (name) do update set owner = excluded.owner, until = excluded.until,
      term = case when l.owner <> excluded.owner or l.until < clock_timestamp() then greatest(l.term + 1, excluded.term) else l.term end
    where l.owner = excluded.owner or l.until < clock_timestamp() returning 1)
  select exists (select from t) $body$;
create function ${s}.extend_lock(lock_name text, holder text, ttl_seconds int) returns boolean
language sql set search_path = pg_catalog, pg_temp as $body$
  with t as (update ${s}.leader set until = clock_timestamp() + ttl_seconds * interval '1 second'
    where name = lock_name and owner = holder and until > clock_timestamp() returning 1)
  select exists (select from t) $body$;
create function ${s}.release_lock(lock_name text, holder text) returns boolean
language sql set search_path = pg_catalog, pg_temp as $body$
  with t as (update ${s}.leader set until = clock_timestamp() - interval '1 ms'
    where name = lock_name and owner = holder and until > clock_timestamp() returning 1)
  select exists (select from t) $body$;
create function ${s}.cleanup_expired_locks() returns bigint
language sql set search_path = pg_catalog, pg_temp as $body$
  with t as (delete from ${s}.leader where ctid = any (array(
    select ctid from ${s}.leader where until < clock_timestamp() limit 1000 for update skip locked)) returning 1)
  select count(*) from t $body$;`;

const archive = (
  s: string,
) => `-- body: a JSON object a line; null where it was written elsewhere, or where only the fact was to be kept.
-- chain: over all chunks of the class up to this one, so that one that is missing is noticed. xid: who may delete what is in it
create table ${s}.archive_chunk (
  id bigint generated always as identity primary key,
  class text collate "C" not null,
  at timestamptz not null default statement_timestamp(),
  rows int not null check (rows > 0),
  bytes bigint not null,
  first_id text collate "C" not null,
  last_id text collate "C" not null,
  first_at timestamptz,
  last_at timestamptz,
  sha256 text not null,
  chain text not null,
  xid xid8 not null default pg_current_xact_id(),
  place text not null,
  sealed boolean not null default false,
  body text);
create index archive_chunk_class on ${s}.archive_chunk (class, id);
create index archive_chunk_xid on ${s}.archive_chunk (xid);
create index archive_chunk_here on ${s}.archive_chunk (id) where body is not null;

create function ${s}.keep_archive() returns trigger ${definer} as $body$
begin
  if tg_op = 'UPDATE' and (old.id, old.class, old.at, old.rows, old.bytes, old.first_id, old.last_id, old.sha256, old.chain, old.xid)
    = (new.id, new.class, new.at, new.rows, new.bytes, new.first_id, new.last_id, new.sha256, new.chain, new.xid)
    and old.body is not null and new.body is null and new.place <> old.place then
    return new;
  end if;
  raise exception 'an archived chunk never changes; its text may only move elsewhere, once' using errcode = 'integrity_constraint_violation';
end $body$;
create trigger keep_archive before update or delete on ${s}.archive_chunk for each row execute function ${s}.keep_archive();

-- append-only but for what is older than a week and went to the archive in the same transaction
create function ${s}.refuse_unarchived() returns trigger ${definer} as $body$
begin
  if tg_op = 'DELETE' and old.at < statement_timestamp() - interval '7 days' and exists (
    select from ${s}.archive_chunk c where c.xid = pg_current_xact_id() and c.class = tg_argv[0]
      and old.id between c.first_id::bigint and c.last_id::bigint) then
    return old;
  end if;
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end $body$;
create or replace trigger provenance_append_only before update or delete on ${s}.provenance
  for each row execute function ${s}.refuse_unarchived('provenance');
create or replace trigger recovery_provenance_append_only before update or delete on ${s}.recovery_provenance
  for each row execute function ${s}.refuse_unarchived('recovery_provenance');`;

const retention = (
  s: string,
) => `-- one line for each run that found something; first_id and last_id: of what went, in the order of its class
create table ${s}.retention_jobs (
  id bigint generated always as identity primary key,
  class text collate "C" not null,
  started_at timestamptz not null default statement_timestamp(),
  updated_at timestamptz not null default statement_timestamp(),
  holder text not null,
  kept_ms bigint not null,
  archived bigint not null default 0,
  deleted bigint not null default 0,
  bytes bigint not null default 0,
  first_id text,
  last_id text,
  result text not null default 'running' check (result in ('running', 'done', 'stopped', 'failed')),
  error text);
create index retention_jobs_class on ${s}.retention_jobs (class, id);`;
