/**
 * Numbers of the recovery engine that cost the same at any size. Triggers write each change of a count as a row of its own, which no other
 * transaction waits for; a job adds them up, so a number is what was added up and the few rows since. The trigger on `dead_letter` says in
 * its WHEN what it is about: a message that dies or is delivered calls nothing; deaths wait while the open ones are counted here for
 * the first time, about 1 s for a million. Reported failures that have not ended are counted in their group's row itself: who writes them
 * holds it.
 */
import type { Migration } from "./migration.ts";

export const rollingCounts: Migration = {
  version: 23,
  name: "rolling-counts",
  sql: (s) => `
${counts(s)}
${reports(s)}
${indexes(s)}
${views(s)}
${firstCount(s)}
`,
};

/** The group that a dead letter is open in; null: in none. */
const openIn = (d: string) => `case when ${d}.resolution = 0 and ${d}.ingested_attempts = ${d}.attempts then ${d}.group_id end`;
const stateOf = (c: string) => `concat_ws('/', ${c}.decision, ${c}.evaluation_status, ${c}.execution_status)`;
const definer = "language plpgsql security definer set search_path = pg_catalog, pg_temp";

const counts = (
  s: string,
) => `-- open dead letters of the group and of those merged into it, without what is still in recovery_open
alter table ${s}.recovery_group add column open bigint not null default 0;
create table ${s}.recovery_open (group_id bigint not null, n bigint not null)
  with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index recovery_open_group on ${s}.recovery_open (group_id);
-- groups, occurrences, open (groups), and candidates by their three states; a number is the sum of its rows
create table ${s}.recovery_tally (name text collate "C" not null, n bigint not null)
  with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create function ${s}.count_open() returns trigger ${definer} as $body$
declare
  before bigint := ${openIn("old")};
  after bigint := ${openIn("new")};
begin
  if before is not null then insert into ${s}.recovery_open values (before, -1); end if;
  if after is not null then insert into ${s}.recovery_open values (after, 1); end if;
  return null;
end $body$;
create trigger count_open_new after insert on ${s}.dead_letter for each row
  when (new.group_id is not null) execute function ${s}.count_open();
create trigger count_open after update on ${s}.dead_letter for each row
  when (${openIn("old")} is distinct from ${openIn("new")}) execute function ${s}.count_open();
create trigger count_open_gone after delete on ${s}.dead_letter for each row
  when (old.resolution = 0 and old.group_id is not null) execute function ${s}.count_open();

create function ${s}.count_group() returns trigger ${definer} as $body$
begin
  insert into ${s}.recovery_tally
    select x.name, x.after - x.before from (values
      ('groups', (old.id is not null and old.merged_into is null)::int::bigint, (new.id is not null and new.merged_into is null)::int::bigint),
      ('occurrences', case when old.merged_into is null then coalesce(old.occurrences, 0) else 0 end,
        case when new.merged_into is null then coalesce(new.occurrences, 0) else 0 end),
      ('open', coalesce(old.merged_into is null and old.open > 0, false)::int::bigint,
        coalesce(new.merged_into is null and new.open > 0, false)::int::bigint)) x(name, before, after)
    where x.after <> x.before;
  return null;
end $body$;
create trigger count_group after insert or update or delete on ${s}.recovery_group for each row execute function ${s}.count_group();

create function ${s}.count_candidate() returns trigger ${definer} as $body$
begin
  if tg_op <> 'INSERT' then insert into ${s}.recovery_tally values (${stateOf("old")}, -1); end if;
  if tg_op <> 'DELETE' then insert into ${s}.recovery_tally values (${stateOf("new")}, 1); end if;
  return null;
end $body$;
create trigger count_candidate_new after insert or delete on ${s}.recovery_candidate for each row execute function ${s}.count_candidate();
create trigger count_candidate after update on ${s}.recovery_candidate for each row
  when (${stateOf("old")} is distinct from ${stateOf("new")}) execute function ${s}.count_candidate();`;

/** Of rows of `recovery_occurrence`, how many each group has that others reported and that have not ended. */
const openReports = (s: string, rows: string, sign = "") => `select g.id, ${sign}count(*) as n from ${rows} o
      join ${s}.recovery_group g on g.id = o.group_id and o.id > g.reports_closed where o.message_id is null and o.sent_id is null group by g.id`;

/** Once for a statement, however many rows it writes. */
const reports = (s: string) => `-- open reported failures of the group itself, without those that were merged into it
alter table ${s}.recovery_group add column reports bigint not null default 0;
create index recovery_group_reported on ${s}.recovery_group (id) where reports > 0;

create function ${s}.count_reports_new() returns trigger ${definer} as $body$
begin
  update ${s}.recovery_group k set reports = k.reports + x.n from (${openReports(s, "made")}) x where k.id = x.id;
  return null;
end $body$;
create trigger count_reports_new after insert on ${s}.recovery_occurrence referencing new table as made
  for each statement execute function ${s}.count_reports_new();

create function ${s}.count_reports() returns trigger ${definer} as $body$
begin
  update ${s}.recovery_group k set reports = k.reports + x.n
    from (select y.id, sum(y.n) as n from (${openReports(s, "made")} union all ${openReports(s, "was", "-")}) y group by y.id) x
    where k.id = x.id and x.n <> 0;
  return null;
end $body$;
create trigger count_reports after update on ${s}.recovery_occurrence referencing old table as was new table as made
  for each statement execute function ${s}.count_reports();

-- where others have ended, those that are left are counted
create function ${s}.count_reports_left() returns trigger ${definer} as $body$
begin
  new.reports := (select count(*) from ${s}.recovery_occurrence o where o.group_id = new.id and o.message_id is null and o.sent_id is null
    and o.id > new.reports_closed);
  return new;
end $body$;
create trigger count_reports_left before update on ${s}.recovery_group for each row
  when (old.reports_closed <> new.reports_closed) execute function ${s}.count_reports_left();`;

/** What a list may filter by stands at the end of the index that orders it: rows that do not fit are passed over without being read. */
const indexes = (
  s: string,
) => `create index recovery_group_recent on ${s}.recovery_group (last_at, id, first_at, open, topic, code)
  where merged_into is null;
create index recovery_group_size on ${s}.recovery_group (open, occurrences, id, last_at, first_at, topic, code) where merged_into is null;
create index recovery_group_scope on ${s}.recovery_group (topic, code, last_at, id);
drop index ${s}.recovery_group_last, ${s}.recovery_group_topic;

create index recovery_candidate_evaluation on ${s}.recovery_candidate (evaluation_status, id);
create index recovery_candidate_execution on ${s}.recovery_candidate (execution_status, id);
create index recovery_candidate_action on ${s}.recovery_candidate (action, id);
drop index ${s}.recovery_candidate_executing, ${s}.recovery_candidate_top;
create index recovery_candidate_top on ${s}.recovery_candidate (confidence desc, id) where decision = 'pending';
create index recovery_candidate_best on ${s}.recovery_candidate (confidence desc nulls last, id) where decision = 'pending';

create index redrive_status on ${s}.redrive (status, id);
create index redrive_item_ended on ${s}.redrive_item (redrive_id, state, n) where state >= 2;`;

/** As before, but told from the candidate's side: so its own indexes lead, and who wants the first few reads no others. In the order of its reader (DR-39): one of its own here would be done first, over all there is. */
const views = (s: string) => `create or replace view ${s}.mv_top_pending as
select c.id, g.match_id as failure_match_id, c.action as suggestion, c.confidence, c.evaluation::json as explain, c.decision,
  g.occurrences as occurrence_count, g.last_at as last_occurrence_at, o.source, g.code as error_code, g.fingerprint as error_signature,
  a.actors as approved_by, a.at as approved_at, c.created_at, c.updated_at, c.action as selected_action_id,
  c.evaluation::json -> 'rules_evaluated' as rules_evaluated, c.execution_status, c.executed_at, c.execution_result::json as execution_result,
  case when o.source <> 'message' then regexp_replace(o.request_key, '^report:', '') end as idempotency_key, c.evaluation_status, c.evaluated_at, c.group_id, c.round
from ${s}.recovery_candidate c
join ${s}.recovery_group g on g.id = c.group_id and g.merged_into is null
left join lateral (select o.source, o.request_key from ${s}.recovery_occurrence o where o.group_id = g.id order by o.id desc limit 1) o on true
left join lateral (select string_agg(a.actor, ', ' order by a.n) as actors, max(a.at) as at from ${s}.recovery_approval a
  where a.candidate_id = c.id) a on true
where c.decision = 'pending' and c.round = (select max(n.round) from ${s}.recovery_candidate n where n.group_id = c.group_id);`;

const firstCount = (s: string) => `-- after the triggers, which this update goes through as any other
insert into ${s}.recovery_tally
  select 'groups', count(*) from ${s}.recovery_group where merged_into is null
  union all select 'occurrences', coalesce(sum(occurrences), 0) from ${s}.recovery_group where merged_into is null
  union all select ${stateOf("c")}, count(*) from ${s}.recovery_candidate c group by 1;
update ${s}.recovery_group g set open = n.n
from (select coalesce(m.merged_into, m.id) as id, count(*) as n from ${s}.dead_letter d join ${s}.recovery_group m on m.id = d.group_id
  where d.resolution = 0 and d.ingested_attempts = d.attempts group by 1) n
where g.id = n.id;
update ${s}.recovery_group k set reports = x.n from (${openReports(s, `${s}.recovery_occurrence`)}) x where k.id = x.id;`;
