/**
 * What an action is worth is learned from executions, one observation for each group that an execution touched, with what was repaired
 * before it and how its receiver stood. What was counted per message before is not carried over: it was neither one per execution nor knew
 * of repairs. Its table stays for a process of the version before, and is not read any more.
 */
import type { Migration } from "./migration.ts";

export const observations: Migration = {
  version: 22,
  name: "observations",
  sql: (s) => `
alter table ${s}.recovery_group add column cause text collate "C";
-- what the person who asked for it said was repaired before
alter table ${s}.redrive add column repair text;

-- run: the redrive's version when it began to run; one that is resumed is observed anew. healed, failed: messages, so far
create table ${s}.recovery_observation (
  redrive_id uuid not null,
  run int not null,
  group_id bigint not null,
  action text collate "C" not null,
  by_person boolean not null,
  repair text,
  breaker_open boolean not null,
  delivered_since boolean not null,
  down_ms double precision,
  healed bigint not null default 0 check (healed >= 0),
  failed bigint not null default 0 check (failed >= 0),
  at timestamptz not null,
  primary key (redrive_id, group_id, run));
create index recovery_observation_group on ${s}.recovery_observation (group_id, at) where healed + failed > 0;
create index recovery_observation_at on ${s}.recovery_observation (at) where healed + failed > 0;

create or replace view ${s}.suggestion_action as
select d.id, d.id as action_code, j.a ->> 'name' as name, j.a ->> 'type' as action_type, j.a -> 'template' as template,
  array(select json_array_elements_text(coalesce(j.a -> 'applies_to_codes', '[]'))) as applies_to_error_codes,
  array(select json_array_elements_text(coalesce(j.a -> 'applies_to_topics', '[]'))) as applies_to_skills,
  coalesce(o.success_rate, 0) as success_rate, coalesce(o.n, 0) as total_applications,
  coalesce((j.a ->> 'automated')::boolean, false) as is_automated,
  coalesce(j.a ->> 'approval', 'one') <> 'none' or coalesce(j.a ->> 'risk', '') = 'risky' as requires_approval,
  coalesce((j.a ->> 'priority')::int, 50) as priority, coalesce((j.a ->> 'enabled')::boolean, true) as is_active, d.version, d.at as updated_at
from ${s}.recovery_document d
cross join lateral (select d.text::json as a) j
left join lateral (select count(*) as n, avg(o.healed::double precision / (o.healed + o.failed)) as success_rate from ${s}.recovery_observation o
  where o.action = d.id and o.healed + o.failed > 0 and o.repair is null) o on true
where d.kind = 'action' and d.text is not null;
`,
};
