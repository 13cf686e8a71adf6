/**
 * The place of a message in its ordering key is a number that the database gives it on its way in, and keeps through claims, retries and
 * replays: no producer's clock has a say. What was there before has the number 0 and comes first, by its id, as it always did.
 * `behind`: known to wait for an earlier one, so a claim that looks for heads need not walk past it (docs/decisions/0005).
 */
import type { Migration } from "./migration.ts";

export const order: Migration = {
  version: 14,
  name: "order",
  sql: (s) => `
create sequence ${s}.order_seq;
-- whoever may insert, may count: the caller's transaction has a role of its own
grant usage on sequence ${s}.order_seq to public;
alter table ${s}.ready_ordered add column seq bigint not null default 0, add column behind boolean not null default false;
alter table ${s}.ready_ordered alter column seq drop default;
alter table ${s}.order_lock add column seq bigint;
alter table ${s}.dead_letter add column seq bigint;

-- From the SQL function, or from an enqueue of the version before: its place is the end. Anything else without a number was in flight,
-- held or dead under the version before, which is to say the first of its key: its place is the front.
create function ${s}.order_place() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
begin
  new.seq := case when exists (select from ${s}.message m where m.id = new.id and m.created_at < statement_timestamp())
    or exists (select from ${s}.message_kept m where m.id = new.id) then 0 else nextval('${s}.order_seq') end;
  return new;
end $body$;
create trigger order_place before insert on ${s}.ready_ordered for each row when (new.seq is null) execute function ${s}.order_place();

-- A worker of the version before goes by ids, so it gets no ordered messages any more: its claims find every key taken.
create function ${s}.order_refuse() returns trigger language plpgsql as $body$
begin
  return null;
end $body$;
create trigger order_refuse before insert on ${s}.order_lock for each row when (new.seq is null) execute function ${s}.order_refuse();

-- A key that opens shows its next message, whoever opened it. A row that somebody holds is not waited for: it is shown already, or
-- it is being taken away.
create function ${s}.order_show() returns trigger language plpgsql as $body$
begin
  update ${s}.ready_ordered set behind = false where behind and id = any (array(
    select n.id from gone g cross join lateral (
      select n.id from ${s}.ready_ordered n where n.lane_id = g.lane_id and n.ordering_key = g.ordering_key
      order by n.seq, n.id limit 1 for update skip locked) n));
  return null;
end $body$;
create trigger order_show after delete on ${s}.order_lock referencing old table as gone for each statement execute function ${s}.order_show();
`,
};

/** Apart from the columns: a table is read and written as before while its indexes are made, only writes of ordered messages wait. */
export const orderIndexes: Migration = {
  version: 15,
  name: "order-indexes",
  sql: (s) => `
create unique index ready_ordered_place on ${s}.ready_ordered (lane_id, ordering_key, seq, id);
create index ready_ordered_due on ${s}.ready_ordered (lane_id, due, seq, id) where not behind;
alter table ${s}.ready_ordered drop constraint ready_ordered_pkey;
alter table ${s}.ready_ordered add constraint ready_ordered_pkey primary key using index ready_ordered_place;
alter table ${s}.ready_ordered set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
`,
};
