/**
 * Who this database is: a random id, made once and part of every enqueue, so that a caller's transaction of another database inserts
 * nothing instead of writing our lane numbers there. pin_lanes holds lanes against their retirement for a transaction that reads one
 * snapshot from beginning to end: it fails as a serialization conflict where one is gone already.
 */
import type { Migration } from "./migration.ts";

export const installation: Migration = {
  version: 9,
  name: "installation",
  sql: (s) => `
create table ${s}.installation (
  id uuid not null default gen_random_uuid(),
  single boolean primary key default true check (single));
insert into ${s}.installation default values;

create function ${s}.pin_lanes(lanes int[]) returns boolean language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $body$
begin
  perform from ${s}.lane l where l.id = any (lanes) for key share;
  return true;
end $body$;
`,
};
