/**
 * The seed's names over our tables, for people and programs that know them: read-only, no row of their own, always up to date. So
 * `mv_top_pending` is a plain view over an index by confidence: nothing to refresh, nothing to be stale; the reader orders it
 * (DR-39).
 */
import type { Migration } from "./migration.ts";

export const recoveryViews: Migration = {
  version: 8,
  name: "recovery-views",
  sql: (s) => `
${candidates(s)}
${inputs(s)}
${records(s)}
${messages(s)}
`,
};

/** The latest round of each group that was merged into none: one row per failure_match_id (CON-25). */
const candidates = (s: string) => `create view ${s}.recovery_candidates as
select c.id, g.match_id as failure_match_id, c.action as suggestion, c.confidence, c.evaluation::json as explain, c.decision,
  g.occurrences as occurrence_count, g.last_at as last_occurrence_at, o.source, g.code as error_code, g.fingerprint as error_signature,
  a.actors as approved_by, a.at as approved_at, c.created_at, c.updated_at, c.action as selected_action_id,
  c.evaluation::json -> 'rules_evaluated' as rules_evaluated, c.execution_status, c.executed_at, c.execution_result::json as execution_result,
  case when o.source <> 'message' then regexp_replace(o.request_key, '^report:', '') end as idempotency_key, c.evaluation_status, c.evaluated_at, c.group_id, c.round
from ${s}.recovery_group g
join lateral (select * from ${s}.recovery_candidate c where c.group_id = g.id order by c.round desc limit 1) c on true
left join lateral (select o.source, o.request_key from ${s}.recovery_occurrence o where o.group_id = g.id order by o.id desc limit 1) o on true
left join lateral (select string_agg(a.actor, ', ' order by a.n) as actors, max(a.at) as at from ${s}.recovery_approval a
  where a.candidate_id = c.id) a on true
where g.merged_into is null;

create view ${s}.mv_top_pending as
select * from ${s}.recovery_candidates where decision = 'pending' order by confidence desc nulls last, id;`;

/** What was known about a failure, a row for each kind of input; the suggestion is the latest round of its group. */
const inputs = (s: string) => `create view ${s}.suggestion_input as
select o.id * 8 + v.k as id, c.id as suggestion_id, v.input_type, v.raw_value, v.normalized_value, v.parsed_data, 1.0::double precision as confidence,
  1.0::double precision as weight, o.source, o.at as created_at
from ${s}.recovery_occurrence o
join ${s}.recovery_group f on f.id = o.group_id
join ${s}.recovery_group g on g.id = coalesce(f.merged_into, f.id)
join lateral (select c.id from ${s}.recovery_candidate c where c.group_id = g.id order by c.round desc limit 1) c on true
cross join lateral (values
  (0, 'error_code', o.code, g.code, null::json),
  (1, 'error_message', o.text, g.template, o.payload::json),
  (2, 'stack_trace', o.stack, g.frame, null),
  (3, 'skill_context', o.skill, o.skill, null),
  (4, 'tenant_context', o.tenant_id, o.tenant_id, null)) v(k, input_type, raw_value, normalized_value, parsed_data)
where v.raw_value is not null;`;

const records = (s: string) => `create view ${s}.suggestion_action as
select d.id, d.id as action_code, j.a ->> 'name' as name, j.a ->> 'type' as action_type, j.a -> 'template' as template,
  array(select json_array_elements_text(coalesce(j.a -> 'applies_to_codes', '[]'))) as applies_to_error_codes,
  array(select json_array_elements_text(coalesce(j.a -> 'applies_to_topics', '[]'))) as applies_to_skills,
  coalesce(o.successes / nullif(o.successes + o.failures, 0), 0) as success_rate,
  coalesce(round((o.successes + o.failures)::numeric), 0)::bigint as total_applications,
  coalesce((j.a ->> 'automated')::boolean, false) as is_automated,
  coalesce(j.a ->> 'approval', 'one') <> 'none' or coalesce(j.a ->> 'risk', '') = 'risky' as requires_approval,
  coalesce((j.a ->> 'priority')::int, 50) as priority, coalesce((j.a ->> 'enabled')::boolean, true) as is_active, d.version, d.at as updated_at
from ${s}.recovery_document d
cross join lateral (select d.text::json as a) j
left join ${s}.recovery_outcome o on o.level = 'all' and o.scope = '' and o.action = d.id
where d.kind = 'action' and d.text is not null;

create view ${s}.suggestion_provenance as
select p.id, p.candidate_id as suggestion_id, p.event as event_type, p.details::json as details, p.rule as rule_id, p.action as action_id,
  p.confidence_before, p.confidence_after, p.actor, p.actor_type, p.reason, p.at as created_at, p.duration_ms
from ${s}.recovery_provenance p where p.candidate_id is not null;

create view ${s}.distributed_locks as
select name as lock_name, owner as holder_id, term as fencing_token, until as expires_at from ${s}.leader;

-- one line per replay, under the same key or a new one
create view ${s}.replay_log as
select p.message_id as original_msg_id, p.message_id as new_msg_id, p.at as replayed_at, p.actor as replayed_by, p.reason, null::uuid as redrive_id
from ${s}.provenance p where p.action = 'replay'
union all
select o.replay_of, o.message_id, coalesce(m.created_at, r.created_at), r.actor, r.reason, o.redrive_id
from ${s}.message_origin o left join ${s}.redrive r on r.id = o.redrive_id
left join lateral (select created_at from ${s}.message m where m.id = o.message_id
  union all select created_at from ${s}.message_kept m where m.id = o.message_id limit 1) m on true;`;

/** Messages of some topics with where they stand, as in statements/view.ts; when one was claimed is not kept: a lease knows its end. */
const standing = (s: string, topics: string) => `from ${s}.topic t join ${s}.lane l on l.topic_id = t.id
join (select id, created_at, lane_id, key, payload from ${s}.message union all
  select k.id, k.created_at, k.lane_id, k.key, k.payload from ${s}.message_kept k where not exists (select from ${s}.message m where m.id = k.id)) m
  on m.lane_id = l.id
left join lateral (select r.id, r.due from ${s}.ready r where r.id = m.id
  union all select o.id, o.due from ${s}.ready_ordered o where o.id = m.id) p on true
left join ${s}.dead_letter d on d.id = m.id
cross join lateral (select max(x.at) filter (where x.outcome in (1, 2)) as delivered_at, count(*) filter (where x.outcome > 2) as failures,
    (array_agg(x.error order by x.lease_id desc) filter (where x.outcome > 2))[1] as error
  from ${s}.attempt x where x.message_id = m.id) a
left join lateral (select g.owner, g.until from ${s}.lease g where p.id is null and m.id = any (g.ids) limit 1) h on true
where ${topics}`;

const PROCESSED_AT =
  "case when p.id is null then coalesce(a.delivered_at, case when d.resolution < 3 then d.died_at end) end as processed_at";

const messages = (s: string) => `create view ${s}.work_queue as
select m.id, substring(m.payload from '"candidate_id"\\s*:\\s*"?([0-9]{1,18})')::bigint as candidate_id, 'db'::text as method,
  l.priority, m.created_at as enqueued_at, h.until as claimed_until, h.owner as claimed_by, ${PROCESSED_AT},
  case when p.id is not null then null when a.delivered_at is not null then true when d.resolution < 3 then false end as success,
  a.error as error_message
${standing(s, "t.name = 'recovery/evaluate'")};

-- what the engine sends: notices, fallbacks, compensations
create view ${s}.outbox as
select m.id, split_part(t.name, '/', 1) as aggregate_type, m.key as aggregate_id, t.name as event_type, m.payload::json as payload, m.created_at,
  p.due as process_after, h.owner as claimed_by, ${PROCESSED_AT}, a.failures as retry_count, a.error
${standing(s, "t.name like 'recovery/%' and t.name <> 'recovery/evaluate'")};

-- a dead letter that was settled stays with its payload until retention takes both: nothing is trimmed that is not here (DR-11)
create view ${s}.dead_letter_archive as
select d.id, t.name as topic, nullif(l.tenant, '') as tenant_id, m.key, m.payload, d.attempts, d.code, d.error, d.died_at,
  d.settled_at as archived_at, case d.resolution when 1 then 'resolved' else 'discarded' end as reason
from ${s}.dead_letter d join ${s}.lane l on l.id = d.lane_id join ${s}.topic t on t.id = l.topic_id
join lateral (select key, payload from ${s}.message m where m.id = d.id
  union all select key, payload from ${s}.message_kept m where m.id = d.id limit 1) m on true
where d.resolution in (1, 2);`;
