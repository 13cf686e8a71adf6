/**
 * What all workers share of a topic's rate (a bucket for each topic and tenant that has one; lost in a crash it begins full) and of its
 * places (who has how many until when; kept like everything that must not be counted twice).
 */
import type { Migration } from "./migration.ts";

export const allot: Migration = {
  version: 13,
  name: "allot",
  sql: (s) => `
create unlogged table ${s}.starts (
  topic text collate "C" not null,
  bucket text collate "C" not null,
  rate float8 not null,
  burst float8 not null,
  wanted float8 not null,
  granted float8 not null,
  tokens float8 not null,
  at timestamptz not null,
  primary key (topic, bucket)) with (fillfactor = 50);

create table ${s}.slot (
  topic text collate "C" not null,
  owner text not null,
  held int not null check (held > 0),
  until timestamptz not null,
  primary key (topic, owner)) with (fillfactor = 50);

-- each statement sees what was committed before the lock was had: the sum is never an old one
create function ${s}.occupy(p_owner text, p_topics text[], p_totals int[], p_wants int[], p_ttl_ms bigint, p_now timestamptz)
returns int[] language plpgsql as $body$
declare
  result int[] := '{}';
  moment timestamptz;
  others bigint;
  got int;
begin
  for i in 1 .. coalesce(array_length(p_topics, 1), 0) loop
    perform pg_advisory_xact_lock(hashtextextended(p_topics[i], '${s}.slot'::regclass::oid::bigint));
    moment := coalesce(p_now, clock_timestamp());
    delete from ${s}.slot where topic = p_topics[i] and until <= moment;
    select coalesce(sum(held), 0) into others from ${s}.slot where topic = p_topics[i] and owner <> p_owner;
    got := greatest(0, least(p_wants[i], p_totals[i] - others));
    if got = 0 then
      delete from ${s}.slot where topic = p_topics[i] and owner = p_owner;
    else
      insert into ${s}.slot as o (topic, owner, held, until)
      values (p_topics[i], p_owner, got, moment + p_ttl_ms * interval '1 ms')
      on conflict (topic, owner) do update set held = excluded.held, until = excluded.until;
    end if;
    result := result || got;
  end loop;
  return result;
end $body$;
`,
};
