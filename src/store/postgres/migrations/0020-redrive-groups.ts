/**
 * A redrive judges its messages by group: each has its own canary, its own verdict and its own counts. What was begun before is one group
 * of its own. A runner of the version before does not keep these counts; the next one counts them again where they do not fit.
 */
import type { Migration } from "./migration.ts";

/** The canary of a group that needs none. */
const ALL = 2_147_483_647;

export const redriveGroups: Migration = {
  version: 20,
  name: "redrive-groups",
  sql: (s) => `
alter table ${s}.redrive drop constraint redrive_mode_check, add constraint redrive_mode_check
  check (mode in ('replay', 'new_key', 'copy', 'resolve', 'discard', 'reopen', 'watch'));

-- canary: how many of it are still to be sent before the group is judged; base: what was known when that began
create table ${s}.redrive_group (
  redrive_id uuid not null,
  no int not null,
  group_id bigint,
  topic text not null,
  code text,
  verdict text check (verdict in ('healed', 'failed', 'inconclusive')),
  reason text,
  canary bigint not null,
  waiting bigint not null,
  sent bigint not null,
  healed bigint not null,
  failed bigint not null,
  skipped bigint not null,
  base_healed bigint not null default 0,
  base_failed bigint not null default 0,
  primary key (redrive_id, no));
-- again: it had stopped, and is judged by what it does from here on
insert into ${s}.redrive_group (redrive_id, no, topic, verdict, canary, waiting, sent, healed, failed, skipped, base_healed, base_failed)
  select r.id, 1, '', case when not x.again and x.state ->> 'rampMs' is not null then 'healed' end,
    case when x.canary = 0 then ${ALL} when x.again then x.canary
      else greatest(0, x.canary - (r.sent + r.healed + r.failed - coalesce((x.state #>> '{base,sent}')::bigint, 0))) end,
    r.waiting, r.sent, r.healed, r.failed, r.skipped,
    case when x.again then r.healed else coalesce((x.state #>> '{base,healed}')::bigint, 0) end,
    case when x.again then r.failed else coalesce((x.state #>> '{base,failed}')::bigint, 0) end
  from ${s}.redrive r cross join lateral (select r.state::json as state, coalesce((r.plan::json ->> 'canary')::bigint, 0) as canary,
    coalesce(r.state::json ->> 'stopped' = 'true', false) as again) x where r.waiting + r.sent > 0;

alter table ${s}.redrive_item add column group_no int not null default 1;
create index redrive_item_next on ${s}.redrive_item (redrive_id, group_no, n) where state = 0;
drop index ${s}.redrive_item_waiting;
-- why items were left alone, counted by reason
create index redrive_item_left on ${s}.redrive_item (redrive_id, reason) where state = 4;
-- what another message carried on: few, and asked for in every list
create index redrive_item_copied on ${s}.redrive_item (message_id) where carrier_id is not null;
`,
};
