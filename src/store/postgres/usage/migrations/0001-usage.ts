/**
 * The usage preset's tables. A turn that has ended names its settlement and its message, a final turn never changes, and a running
 * one cannot be deleted: what the preset promises is refused otherwise by the database itself. The view shows messages under the
 * seed's table and column names; it reads only.
 */
import type { Migration } from "../../migrations/migration.ts";

export const usageTables: Migration = {
  version: 1,
  name: "usage",
  sql: (s) => `
create table ${s}.chat_turns (
  tenant_id uuid not null,
  turn_id uuid not null,
  request_id uuid not null,
  chat_id uuid not null,
  user_id uuid,
  state text not null default 'running' check (state in ('running', 'completed', 'failed', 'cancelled')),
  policy_version text not null,
  model text not null,
  period text not null,
  buckets text not null,
  estimated_input_tokens bigint not null check (estimated_input_tokens >= 0),
  output_tokens_max bigint not null check (output_tokens_max >= 0),
  generation_floor_tokens bigint not null check (generation_floor_tokens >= 0),
  input_rate bigint not null check (input_rate >= 0),
  output_rate bigint not null check (output_rate >= 0),
  reserved_credits bigint not null check (reserved_credits >= 0),
  started_at timestamptz not null default statement_timestamp(),
  progress_at timestamptz not null default statement_timestamp(),
  outcome text check (outcome in ('completed', 'failed', 'aborted')),
  method text check (method in ('actual', 'estimated', 'released')),
  input_tokens bigint check (input_tokens >= 0),
  output_tokens bigint check (output_tokens >= 0),
  counters text,
  credits bigint check (credits >= 0),
  capped boolean,
  reason text,
  finalized_at timestamptz,
  finalization_id uuid,
  message_id uuid unique,
  primary key (tenant_id, turn_id),
  constraint chat_turns_whole check (
    num_nonnulls(outcome, method, input_tokens, output_tokens, credits, capped, finalized_at, finalization_id, message_id)
      = case when state = 'running' then 0 else 9 end),
  constraint chat_turns_outcome check (
    outcome is null or state = case outcome when 'aborted' then 'cancelled' else outcome end),
  constraint chat_turns_released check (method is distinct from 'released' or (outcome = 'failed' and credits = 0)));
create unique index chat_turns_one_running on ${s}.chat_turns (tenant_id, chat_id) where state = 'running';
create index chat_turns_silent on ${s}.chat_turns (progress_at) where state = 'running';

-- the nil user is the tenant itself
create table ${s}.quota_usage (
  tenant_id uuid not null,
  user_id uuid not null,
  period text collate "C" not null,
  bucket text collate "C" not null,
  limit_credits bigint check (limit_credits >= 0),
  reserved_credits bigint not null default 0 check (reserved_credits >= 0),
  spent_credits bigint not null default 0 check (spent_credits >= 0),
  turns_running int not null default 0 check (turns_running >= 0),
  turns_settled bigint not null default 0 check (turns_settled >= 0),
  primary key (tenant_id, user_id, period, bucket));

create function ${s}.guard_turn() returns trigger language plpgsql as $body$
begin
  if tg_op = 'DELETE' then
    if old.state = 'running' then
      raise exception 'turn % is running: finalise it, or its reserve is lost', old.turn_id using errcode = 'integrity_constraint_violation';
    end if;
    return old;
  end if;
  if old.state <> 'running' then
    raise exception 'turn % is final', old.turn_id using errcode = 'integrity_constraint_violation';
  end if;
  if (new.tenant_id, new.turn_id, new.request_id, new.chat_id, new.user_id, new.policy_version, new.model, new.period, new.buckets,
      new.estimated_input_tokens, new.output_tokens_max, new.generation_floor_tokens, new.input_rate, new.output_rate, new.reserved_credits)
    is distinct from
     (old.tenant_id, old.turn_id, old.request_id, old.chat_id, old.user_id, old.policy_version, old.model, old.period, old.buckets,
      old.estimated_input_tokens, old.output_tokens_max, old.generation_floor_tokens, old.input_rate, old.output_rate, old.reserved_credits) then
    raise exception 'what turn % reserved cannot change', old.turn_id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $body$;
create trigger chat_turns_guard before update or delete on ${s}.chat_turns for each row execute function ${s}.guard_turn();

create view ${s}.modkit_outbox_events as
select m.id, split_part(t.name, '/', 1) as namespace, split_part(t.name, '/', 2) as topic,
  case when l.tenant ~ '^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$' then l.tenant::uuid end as tenant_id,
  m.key as dedupe_key, m.payload::json as payload,
  case when p.id is not null then 'pending' when a.delivered then 'delivered' when d.resolution < 3 then 'dead' else 'processing' end as status,
  case when p.id is not null then p.attempts when a.delivered then a.attempts when d.resolution < 3 then d.attempts
    else a.attempts + 1 end::int as attempts,
  p.due as next_attempt_at,
  substring(h.owner from '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')::uuid as locked_by,
  h.until as locked_until, a.error as last_error, m.created_at,
  greatest(m.created_at, a.at, d.died_at, d.settled_at) as updated_at
from (
  select id, created_at, lane_id, key, payload from ${s}.message
  union all
  select k.id, k.created_at, k.lane_id, k.key, k.payload from ${s}.message_kept k
    where not exists (select from ${s}.message m where m.id = k.id)) m
join ${s}.lane l on l.id = m.lane_id
join ${s}.topic t on t.id = l.topic_id
left join lateral (
  select r.id, r.due, r.attempts from ${s}.ready r where r.id = m.id
  union all
  select o.id, o.due, o.attempts from ${s}.ready_ordered o where o.id = m.id) p on true
left join ${s}.dead_letter d on d.id = m.id
cross join lateral (
  select bool_or(x.outcome in (1, 2)) as delivered, coalesce(max(x.n) filter (where x.counted), 0) as attempts, max(x.at) as at,
    (array_agg(x.error order by x.lease_id desc) filter (where x.outcome > 2))[1] as error
  from ${s}.attempt x where x.message_id = m.id) a
left join lateral (
  select g.owner, g.until from ${s}.lease g
  where p.id is null and a.delivered is distinct from true and m.id = any (g.ids)
    and not exists (select from ${s}.attempt x where x.message_id = m.id and x.lease_id = g.id)
  limit 1) h on true;
`,
};
