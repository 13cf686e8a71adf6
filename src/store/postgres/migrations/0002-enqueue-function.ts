/**
 * `enqueue(…)` in plain SQL, for every language that can run a statement in its own transaction: the same limits (but for the
 * depth of a payload, which SQL cannot see), the same deduplication and the same conflict as the TypeScript client.
 */
import { LIMITS } from "../../../message/limits.ts";
import type { Migration } from "./migration.ts";

export const enqueueFunction: Migration = {
  version: 2,
  name: "enqueue-function",
  sql: (s) => `
${nextId(s)}
${enqueueSql(s, false)}`,
};

function nextId(s: string): string {
  return `-- uuid version 7 with microseconds in the sub-millisecond bits, so that ids of one session rise
create function ${s}.next_id() returns uuid language plpgsql volatile set search_path = pg_catalog, pg_temp as $body$
declare
  micros bigint := floor(extract(epoch from clock_timestamp()) * 1000000)::bigint;
  millis bigint := micros / 1000;
  sub int := ((micros % 1000) * 4096 / 1000)::int;
  tail text := replace(gen_random_uuid()::text, '-', '');
begin
  return (lpad(to_hex(millis), 12, '0') || '7' || lpad(to_hex(sub), 3, '0') || substr(tail, 17))::uuid;
end $body$;
`;
}

/** What is refused before anything is looked up. */
const LIMITS_HOLD = `  if enqueue.payload is null then
    raise exception 'makegood: invalid_payload: the payload is missing' using errcode = '22023';
  end if;
  if octet_length(enqueue.payload) > ${LIMITS.payloadBytesMax} then
    raise exception 'makegood: payload_too_large: the payload is larger than ${LIMITS.payloadBytesMax} bytes' using errcode = '22023';
  end if;
  perform enqueue.payload::json;
  if octet_length(enqueue.key) > ${LIMITS.keyBytesMax} or enqueue.key = '' then
    raise exception 'makegood: key_too_long: a key has 1 to ${LIMITS.keyBytesMax} bytes' using errcode = '22023';
  end if;
  if octet_length(enqueue.tenant_id) > ${LIMITS.tenantIdBytesMax} or enqueue.tenant_id = ''
    or octet_length(enqueue.ordering_key) > ${LIMITS.orderingKeyBytesMax} or enqueue.ordering_key = '' then
    raise exception 'makegood: invalid_message: tenant_id and ordering_key have 1 to ${LIMITS.tenantIdBytesMax} bytes' using errcode = '22023';
  end if;
  if concat(enqueue.key, enqueue.tenant_id, enqueue.ordering_key) ~ '[\\x01-\\x1f\\x7f]' then
    raise exception 'makegood: invalid_message: key, tenant_id and ordering_key must not contain control characters' using errcode = '22023';
  end if;
  enqueue.priority := coalesce(enqueue.priority, 0);
  enqueue.delay_ms := coalesce(enqueue.delay_ms, 0);
  if enqueue.priority not between ${LIMITS.priorityMin} and ${LIMITS.priorityMax} or enqueue.delay_ms not between 0 and ${LIMITS.delayMsMax} then
    raise exception 'makegood: invalid_message: priority or delay_ms is out of range' using errcode = '22023';
  end if;
`;

/** A snapshot that is older than the lane's retirement still shows it; a newer one of the same name may stand beside it. */
const pin = (s: string) => `
  if v_lane is not null and current_setting('transaction_isolation') <> 'read committed' and not ${s}.pin_lanes(array[v_lane]) then
    v_lane := null;
    insert into ${s}.lane (topic_id, tenant, priority, kind)
      values (v_topic.id, coalesce(enqueue.tenant_id, ''), enqueue.priority, case when v_ordered then 3 else 0 end)
      on conflict do nothing returning lane.id into strict v_lane;
  end if;`;

/** `sized`: its ready rows say how large the payload is (since version 5). `pinned`: its lane may have been retired (since version 17). */
export function enqueueSql(s: string, sized: boolean, pinned = false): string {
  return `create ${sized ? "or replace " : ""}function ${s}.enqueue(
  topic text, payload text, key text default null, tenant_id text default null,
  delay_ms bigint default 0, priority int default 0, ordering_key text default null)
returns table (id text, inserted boolean) language plpgsql volatile set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  v_topic record;
  v_lane int;
  v_ordered boolean;
  v_id uuid := ${s}.next_id();
  v_hash uuid := substr(encode(sha256(convert_to(enqueue.payload, 'UTF8')), 'hex'), 1, 32)::uuid;
  v_due timestamptz;
  v_first record;
begin
${LIMITS_HOLD}  select t.id, (t.definition::json ->> 'ordering') as ordering, (t.definition::json ->> 'schemaVersion')::int as schema_version
    into v_topic from ${s}.topic t where t.name = enqueue.topic and not t.deleted;
  if not found then
    raise exception 'makegood: unknown_topic: there is no topic %', enqueue.topic using errcode = '22023';
  end if;
  v_ordered := enqueue.ordering_key is not null and v_topic.ordering <> 'none';
  if v_ordered then enqueue.priority := 0; end if;
  select l.id into v_lane from ${s}.lane l where l.topic_id = v_topic.id and l.tenant = coalesce(enqueue.tenant_id, '')
    and l.priority = enqueue.priority and l.kind = case when v_ordered then 3 else 0 end${pinned ? " order by l.id desc limit 1" : ""};
  if not found then
    insert into ${s}.lane (topic_id, tenant, priority, kind)
      values (v_topic.id, coalesce(enqueue.tenant_id, ''), enqueue.priority, case when v_ordered then 3 else 0 end)
      on conflict do nothing;
    select l.id into strict v_lane from ${s}.lane l where l.topic_id = v_topic.id and l.tenant = coalesce(enqueue.tenant_id, '')
      and l.priority = enqueue.priority and l.kind = case when v_ordered then 3 else 0 end;
  end if;${pinned ? pin(s) : ""}
  if enqueue.key is not null then
    insert into ${s}.dedupe (topic_id, tenant, key, id, hash)
      values (v_topic.id, coalesce(enqueue.tenant_id, ''), enqueue.key, v_id, v_hash) on conflict do nothing;
    if not found then
      select d.id, d.hash into strict v_first from ${s}.dedupe d
        where d.topic_id = v_topic.id and d.tenant = coalesce(enqueue.tenant_id, '') and d.key = enqueue.key;
      if v_first.hash <> v_hash then
        raise exception 'makegood: key_conflict: key % of topic % is taken by message % with another payload', enqueue.key, enqueue.topic, v_first.id
          using errcode = '23505';
      end if;
      return query select v_first.id::text, false;
      return;
    end if;
  end if;
  v_due := statement_timestamp() + enqueue.delay_ms * interval '1 ms';
  insert into ${s}.message (id, lane_id, schema_version, key, ordering_key, payload)
    values (v_id, v_lane, v_topic.schema_version, enqueue.key, case when v_ordered then enqueue.ordering_key end, enqueue.payload);
  if v_ordered then
    insert into ${s}.ready_ordered (lane_id, ordering_key, id, due) values (v_lane, enqueue.ordering_key, v_id, v_due);
  else
    insert into ${s}.ready (due, id, lane_id${sized ? ", bytes" : ""}) values (v_due, v_id, v_lane${sized ? ", octet_length(enqueue.payload)" : ""});
  end if;
  perform pg_notify(${channelLiteral(s)}, v_lane::text) from ${s}.waiter w where w.until > statement_timestamp() limit 1;
  return query select v_id::text, true;
end $body$;
`;
}

/** The wake channel of a schema, as an SQL literal: the schema's own name, so that two schemas do not wake each other. */
export function channelLiteral(schema: string): string {
  return `'${channelName(schema)}'`;
}

export function channelName(schema: string): string {
  return `${schema.replaceAll('"', "")}_wake`;
}
