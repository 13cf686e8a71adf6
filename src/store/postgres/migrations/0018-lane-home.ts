/**
 * Each lane carries the installation that it belongs to, so that an enqueue learns from one row both that its lane is there and that the
 * database is its own. The column follows a change of the installation's id; lanes are written in no other way after they are made.
 */
import type { Migration } from "./migration.ts";

export const laneHome: Migration = {
  version: 18,
  name: "lane-home",
  sql: (s) => `
-- security definer: who may make a lane need not be able to read more than before
create function ${s}.installation_id() returns uuid language sql stable security definer
set search_path = pg_catalog, pg_temp as $body$ select id from ${s}.installation limit 1 $body$;

alter table ${s}.lane add column home uuid;
update ${s}.lane set home = ${s}.installation_id();
alter table ${s}.lane alter column home set default ${s}.installation_id();

create function ${s}.move_lanes_home() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $body$
begin
  update ${s}.lane set home = new.id where home is distinct from new.id;
  return null;
end $body$;
create trigger move_lanes_home after insert or update on ${s}.installation
  for each row execute function ${s}.move_lanes_home();
`,
};
