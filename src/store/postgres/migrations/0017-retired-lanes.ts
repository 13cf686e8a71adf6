/**
 * Lanes that had nothing for a day are deleted (docs/decisions/0022). Since when a lane has nothing stands in a table of its own, because
 * lanes themselves are never updated. A transaction with one snapshot for all of it may still see a lane that is gone: pin_lanes now says so
 * instead of failing, and `enqueue` in SQL makes it again, as every other way in does.
 */
import { enqueueSql } from "./0002-enqueue-function.ts";
import type { Migration } from "./migration.ts";

export const retiredLanes: Migration = {
  version: 17,
  name: "retired-lanes",
  sql: (s) => `
create table ${s}.lane_idle (lane_id int primary key, since timestamptz not null);
create index lane_idle_since on ${s}.lane_idle (since);

create or replace function ${s}.pin_lanes(lanes int[]) returns boolean language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $body$
begin
  perform from ${s}.lane l where l.id = any (lanes) for key share;
  return true;
exception when serialization_failure then
  return false;
end $body$;

${enqueueSql(s, true, true)}`,
};
