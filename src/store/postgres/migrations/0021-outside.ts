/**
 * Failures that other services reported can be ended: which of them are open, what was sent for them, and in which version a group was
 * resolved. Additive: columns without a rewrite, two indexes that leave our own messages out. And the seed's view has a row for each match
 * id that was supplied from outside, not only for a group's own.
 */
import type { Migration } from "./migration.ts";

export const outside: Migration = {
  version: 21,
  name: "outside",
  sql: (s) => `
-- reports_closed: reported failures up to this occurrence have ended
alter table ${s}.recovery_group add column reports_closed bigint not null default 0, add column resolved_in text,
  add column resolved_at timestamptz, add column resolved_by text, add column regressed_in text, add column regressed_at timestamptz;
-- sent_id: the message that carries it now, sent by this execution
alter table ${s}.recovery_occurrence add column version text, add column redrive_topic text collate "C", add column sent_id uuid,
  add column sent_by text collate "C";
-- reports_through: when this execution succeeds, reported failures up to here have ended
alter table ${s}.recovery_candidate add column reports_through bigint;
create index recovery_occurrence_reported on ${s}.recovery_occurrence (group_id, id) where message_id is null and sent_id is null;
create index recovery_occurrence_sent on ${s}.recovery_occurrence (sent_by) where sent_by is not null;

create or replace view ${s}.recovery_candidates as
${rows(
  s,
  `(select g.id, g.match_id from ${s}.recovery_group g where g.merged_into is null
  union select coalesce(f.merged_into, f.id), m.match_id from ${s}.recovery_match m join ${s}.recovery_group f on f.id = m.group_id)`,
)};
`,
};

/** The latest round of a group for each match id that leads to it. */
const rows = (s: string, matches: string) => `select c.id, m.match_id as failure_match_id, c.action as suggestion, c.confidence,
  c.evaluation::json as explain, c.decision, g.occurrences as occurrence_count, g.last_at as last_occurrence_at, o.source, g.code as error_code,
  g.fingerprint as error_signature, a.actors as approved_by, a.at as approved_at, c.created_at, c.updated_at, c.action as selected_action_id,
  c.evaluation::json -> 'rules_evaluated' as rules_evaluated, c.execution_status, c.executed_at, c.execution_result::json as execution_result,
  case when o.source <> 'message' then regexp_replace(o.request_key, '^report:', '') end as idempotency_key, c.evaluation_status, c.evaluated_at,
  c.group_id, c.round
from ${matches} m join ${s}.recovery_group g on g.id = m.id
join lateral (select * from ${s}.recovery_candidate c where c.group_id = g.id order by c.round desc limit 1) c on true
left join lateral (select o.source, o.request_key from ${s}.recovery_occurrence o where o.group_id = g.id order by o.id desc limit 1) o on true
left join lateral (select string_agg(a.actor, ', ' order by a.n) as actors, max(a.at) as at from ${s}.recovery_approval a
  where a.candidate_id = c.id) a on true`;
