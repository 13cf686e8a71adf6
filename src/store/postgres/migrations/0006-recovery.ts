/**
 * The recovery engine's tables: groups of failures, their occurrences (ledger, input and member at once), candidates and what was
 * learned. Triggers are the second fence: a candidate moves only as appendix E allows, provenance never changes. Additive: four columns
 * on `dead_letter` without a rewrite, which takes no longer on a million rows than on none.
 */
import type { Migration } from "./migration.ts";

export const recovery: Migration = {
  version: 6,
  name: "recovery",
  sql: (s) => `
${groups(s)}
${candidates(s)}
${fence(s)}
${records(s)}
-- attempts of the death that was counted last, and the group it was counted in; the two differ from attempts until that happens
alter table ${s}.dead_letter add column ingested_attempts smallint, add column group_id bigint;
-- who wrote the death, and who put it into its group: a snapshot that is older did not see it, whatever died_at says. The default is one
-- value for all that are there, and each insert's own from now on
alter table ${s}.dead_letter add column died_xid xid8 default pg_current_xact_id(), add column grouped_xid xid8;
`,
};

const groups = (s: string) => `-- a kind of failure; merged_into always names a group that is merged into none
create table ${s}.recovery_group (
  id bigint generated always as identity primary key,
  fingerprint text collate "C" not null unique,
  match_id text collate "C" not null unique,
  topic text collate "C" not null,
  sink text not null,
  code text collate "C" not null,
  template text not null,
  frame text,
  rule text,
  occurrences bigint not null default 0 check (occurrences >= 0),
  first_at timestamptz not null,
  last_at timestamptz not null,
  version int not null default 1,
  merged_into bigint references ${s}.recovery_group check (merged_into <> id),
  held_by text)
  with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
create index recovery_group_last on ${s}.recovery_group (last_at, id);
create index recovery_group_topic on ${s}.recovery_group (topic, last_at, id);
create index recovery_group_merged on ${s}.recovery_group (merged_into) where merged_into is not null;

-- ids from outside, and each group's own, to the group that they lead to
create table ${s}.recovery_match (
  match_id text collate "C" primary key,
  group_id bigint not null references ${s}.recovery_group);

-- hash: first half of sha256 of the payload. No reference to a message: that one may be pruned, this stays
create table ${s}.recovery_occurrence (
  id bigint generated always as identity primary key,
  group_id bigint not null,
  at timestamptz not null,
  request_key text collate "C" unique,
  hash uuid not null,
  source text not null check (source in ('message', 'api', 'stream')),
  match_id text collate "C",
  message_id uuid,
  generation smallint,
  attempts smallint,
  tenant_id text collate "C",
  skill text,
  code text not null,
  text text not null,
  stack text,
  payload text,
  check ((message_id is null) = (generation is null) and (message_id is null) = (attempts is null)));
create index recovery_occurrence_group on ${s}.recovery_occurrence (group_id, id);
create index recovery_occurrence_message on ${s}.recovery_occurrence (message_id, id) where message_id is not null;
create index recovery_occurrence_tenant on ${s}.recovery_occurrence (tenant_id, group_id, id) where tenant_id is not null;`;

const candidates = (s: string) => `-- one round of suggestion for a group; the one of the highest round is the current one
create table ${s}.recovery_candidate (
  id bigint generated always as identity primary key,
  group_id bigint not null references ${s}.recovery_group,
  round int not null check (round >= 1),
  version int not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  decision text not null default 'pending' check (decision in ('pending', 'approved', 'rejected')),
  evaluation_status text not null default 'unevaluated' check (evaluation_status in ('unevaluated', 'evaluating', 'evaluated', 'failed')),
  evaluations int not null default 0,
  evaluated_at timestamptz,
  action text,
  confidence double precision check (confidence between 0 and 1),
  evaluation text,
  group_version int not null,
  execution_status text not null default 'pending'
    check (execution_status in ('pending', 'executing', 'succeeded', 'failed', 'rolled_back', 'skipped', 'unknown')),
  execution_id text,
  executed_by text,
  began_at timestamptz,
  lease_until timestamptz,
  executed_at timestamptz,
  execution_result text,
  redrive_id text collate "C",
  owner text,
  note text,
  unique (group_id, round),
  check (execution_status <> 'executing' or execution_id is not null));
create index recovery_candidate_decision on ${s}.recovery_candidate (decision, id);
create index recovery_candidate_lease on ${s}.recovery_candidate (lease_until) where execution_status = 'executing' and lease_until is not null;
create index recovery_candidate_executing on ${s}.recovery_candidate (id) where execution_status = 'executing';
create index recovery_candidate_began on ${s}.recovery_candidate (executed_by, began_at) where began_at is not null;
create index recovery_candidate_top on ${s}.recovery_candidate (confidence desc) where decision = 'pending';

create table ${s}.recovery_approval (
  candidate_id bigint not null references ${s}.recovery_candidate,
  actor text not null,
  n bigint generated always as identity,
  at timestamptz not null,
  note text,
  occurrences bigint,
  primary key (candidate_id, actor));`;

const fence = (s: string) => `-- the engine decides; this refuses what no engine may do
create function ${s}.recovery_candidate_moves() returns trigger language plpgsql as $body$
begin
  if (new.id, new.group_id, new.round, new.created_at) is distinct from (old.id, old.group_id, old.round, old.created_at)
    or new.version <= old.version then
    raise exception 'makegood: wrong_state: candidate % keeps its group, round and time, and its version rises', old.id using errcode = '23514';
  end if;
  if new.decision <> old.decision and old.decision = 'rejected' then
    raise exception 'makegood: wrong_state: candidate % was rejected and cannot become %', old.id, new.decision using errcode = '23514';
  end if;
  if new.evaluation_status <> old.evaluation_status and (old.evaluation_status, new.evaluation_status) not in
    (('unevaluated', 'evaluating'), ('evaluating', 'evaluated'), ('evaluating', 'failed'), ('failed', 'evaluating'),
     ('evaluating', 'unevaluated'), ('evaluated', 'unevaluated'), ('failed', 'unevaluated')) then
    raise exception 'makegood: wrong_state: the evaluation of candidate % is % and cannot become %', old.id, old.evaluation_status, new.evaluation_status
      using errcode = '23514';
  end if;
  if new.execution_status <> old.execution_status and (old.execution_status, new.execution_status) not in
    (('pending', 'executing'), ('pending', 'skipped'), ('executing', 'succeeded'), ('executing', 'failed'), ('executing', 'rolled_back'),
     ('executing', 'skipped'), ('executing', 'unknown'), ('unknown', 'succeeded'), ('unknown', 'failed'),
     ('succeeded', 'rolled_back'), ('failed', 'rolled_back')) then
    raise exception 'makegood: wrong_state: the execution of candidate % is % and cannot become %', old.id, old.execution_status, new.execution_status
      using errcode = '23514';
  end if;
  if new.execution_status = 'executing' and new.decision = 'rejected' then
    raise exception 'makegood: wrong_state: candidate % was rejected and cannot be executed', old.id using errcode = '23514';
  end if;
  return new;
end $body$;
create trigger recovery_candidate_moves before update on ${s}.recovery_candidate for each row execute function ${s}.recovery_candidate_moves();`;

const records = (s: string) => `-- append-only, and referring to nothing that could take it along
create table ${s}.recovery_provenance (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  group_id bigint,
  candidate_id bigint,
  redrive_id text collate "C",
  event text not null,
  actor text not null,
  actor_type text not null check (actor_type in ('system', 'human', 'agent')),
  reason text,
  rule text,
  action text,
  confidence_before double precision,
  confidence_after double precision,
  duration_ms double precision,
  details text);
create index recovery_provenance_group on ${s}.recovery_provenance (group_id, id) where group_id is not null;
create index recovery_provenance_candidate on ${s}.recovery_provenance (candidate_id, id) where candidate_id is not null;
create index recovery_provenance_redrive on ${s}.recovery_provenance (redrive_id, id) where redrive_id is not null;
create trigger recovery_provenance_append_only before update or delete on ${s}.recovery_provenance
  for each row execute function ${s}.refuse_change();

-- what became of messages that an action touched, as it weighed at_ms; scope: a group's id, a topic, or nothing
create table ${s}.recovery_outcome (
  level text collate "C" not null check (level in ('group', 'topic', 'all')),
  scope text collate "C" not null,
  action text collate "C" not null,
  successes double precision not null check (successes >= 0),
  failures double precision not null check (failures >= 0),
  at_ms double precision not null,
  primary key (level, scope, action));

-- a deleted one has no text and keeps its version
create table ${s}.recovery_document (
  kind text collate "C" not null check (kind in ('rule', 'group_rule', 'action', 'templates')),
  id text collate "C" not null,
  version int not null,
  text text,
  actor text not null,
  at timestamptz not null,
  primary key (kind, id));
create table ${s}.recovery_document_version (
  kind text collate "C" not null,
  id text collate "C" not null,
  version int not null,
  text text not null,
  actor text not null,
  at timestamptz not null,
  primary key (kind, id, version));
create table ${s}.recovery_document_kind (kind text collate "C" primary key, revision bigint not null);
create trigger recovery_document_version_append_only before update or delete on ${s}.recovery_document_version
  for each row execute function ${s}.refuse_change();`;
