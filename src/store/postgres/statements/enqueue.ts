/**
 * ENQUEUE, the SQL: one statement inserts the promise, its key and its ready row, and nudges idle workers. The short form is
 * for one message (most calls inside a caller's transaction), the batch form for any number, with only the parts that the
 * batch needs. Text parameters only: they pass through every driver and ORM unchanged.
 */
import { channelLiteral } from "../migrations/0002-enqueue-function.ts";

/** Free text is joined by this: it cannot occur in JSON text, and keys that contain it travel as JSON instead. */
export const SEPARATOR = "\u001e";

/** `told`: the workers that hear of it without the server. Commits that notify wait for each other, so one that need not does not. */
const nudge = (s: string, clock: string, lane: string, told: string) =>
  `(select pg_notify(${channelLiteral(s)}, ${lane}) from ${s}.waiter w where w.until > ${clock} and w.owner <> all (${told}::text::text[]) limit 1)`;

/** A snapshot that is older than a retired lane still shows it: a transaction with one snapshot for all of it pins what it sees. */
const pinned = (s: string, lanes: string) =>
  `(current_setting('transaction_isolation') = 'read committed' or ${s}.pin_lanes(${lanes}))`;

/**
 * Whether the statement runs where it was meant to: with lanes that are still there, in our own database, whose installation they carry.
 * Without lanes to be asked for, the database alone is.
 */
const atHome = (s: string, installation: string, lanes: string | null) =>
  lanes === null
    ? `exists (select from ${s}.installation i where i.id = ${installation}::text::uuid)`
    : `(select count(*) from ${s}.lane l where l.id = any (${lanes}) and l.home = ${installation}::text::uuid) = cardinality(${lanes}) and ${pinned(s, lanes)}`;

/** Why a statement inserted nothing although nothing was there: `database`, `lane`, or null when neither is the reason. */
const strayed = (s: string, installation: string, lanes: string) =>
  `case when not exists (select from ${s}.installation i where i.id = ${installation}::text::uuid) then 'database'
    when (select count(*) from ${s}.lane l where l.id = any (${lanes}::text::int[])) < cardinality(${lanes}::text::int[])
      or not ${pinned(s, `${lanes}::text::int[]`)} then 'lane' end`;

export interface Short {
  readonly keyed: boolean;
  /**
   * The id or the key may be there already: a call that is tried again, or the caller's transaction, which must not fail for it.
   * Without it the statement fails as a whole when one is, and costs a third less when none is.
   */
  readonly repeat: boolean;
}

/**
 * Parameters: id, lane, payload, delay ms, traceparent, schema version, installation, told [, topic id, tenant, key, hash]. Returns one row
 * if it was inserted. The ready row is the statement itself, not one more part of it: each part costs a caller's transaction time.
 */
export function enqueueOne(s: string, clock: string, { keyed, repeat }: Short): string {
  const columns = `id, lane_id, payload, traceparent, schema_version${keyed ? ", key" : ""}`;
  const values = `$2::text::int, $3::text, $5::text, $6::text::int${keyed ? ", $11::text" : ""}`;
  // As atHome, for one lane: nothing to count.
  const home = `from ${s}.lane l where l.id = $2::text::int and l.home = $7::text::uuid and ${pinned(s, "array[l.id]")}`;
  const source = keyed
    ? `k as (insert into ${s}.dedupe (topic_id, tenant, key, id, hash)
         select $9::text::int, $10::text, $11::text, $1::text::uuid, $12::text::uuid ${home}
         ${repeat ? "on conflict do nothing " : ""}returning id),
       m as (insert into ${s}.message (created_at, ${columns}) select ${clock}, id, ${values} from k)`
    : `k as (insert into ${s}.message (created_at, ${columns}) select ${clock}, $1::text::uuid, ${values} ${home}
         ${repeat ? "on conflict do nothing " : ""}returning id)`;
  return `with ${source}
    insert into ${s}.ready (due, id, lane_id, bytes) select ${clock} + $4::text::bigint * interval '1 ms', id, $2::text::int, octet_length($3::text) from k
    returning ${nudge(s, clock, "$2::text", "$8")}::text as a`;
}

export interface Parts {
  readonly keyed: boolean;
  readonly delayed: boolean;
  /** As in Short. */
  readonly repeat: boolean;
  readonly ordered: boolean;
  readonly traced: boolean;
  readonly versioned: boolean;
  readonly handedDown: boolean;
  /** Some were refused for good in their direct try: dead letters from the start. */
  readonly rejected: boolean;
  /** Some id is older than a day: it may be a repeat of one whose body has moved to message_kept. */
  readonly old: boolean;
  /** Free text as JSON arrays instead of separated text: some key contains the separator. */
  readonly json: boolean;
  /** The lanes were just made or seen: they need not be asked for. */
  readonly lanesSeen: boolean;
}

/**
 * Parameters: ids, lanes, payloads [, delays] [, keys] [, ordering keys] [, traceparents] [, versions] [, codes, errors] [, refused or not]
 * [, of those with a key, in the order of their keys: topics, tenants, keys, ids, hashes], installation, lanes to be asked for, told.
 * Returns the ids that were not inserted, comma separated, and why nothing was, if it was for where the statement ran.
 */
export function enqueueBatch(s: string, clock: string, parts: Parts): string {
  let n = 0;
  // An array literal in a text parameter: as good in every driver as separated text, and parsed once instead of twice.
  const list = (type: string) => `$${++n}::text::${type}[]`;
  const text = () => {
    n++;
    return parts.json
      ? `array(select nullif(v, '') from json_array_elements_text($${n}::text::json) with ordinality a(v, o) order by o)`
      : `string_to_array($${n}::text, E'\\x1e', '')`;
  };
  const columns: [string, string][] = [
    ["id", list("uuid")],
    ["lane_id", list("int")],
    ["payload", `string_to_array($${++n}::text, E'\\x1e')`],
  ];
  if (parts.delayed) columns.push(["delay_ms", list("bigint")]);
  if (parts.keyed) columns.push(["key", text()]);
  if (parts.ordered) columns.push(["ordering_key", text()]);
  if (parts.traced) columns.push(["traceparent", text()]);
  if (parts.versioned) columns.push(["schema_version", list("int")]);
  if (parts.handedDown) columns.push(["direct_code", text()], ["direct_error", text()]);
  if (parts.rejected) columns.push(["rejected", list("boolean")]);
  const names = columns.map(([name]) => name);
  const kept = ["key", "ordering_key", "traceparent", "schema_version"].filter((name) => names.includes(name));
  const fixed = ["id", "lane_id", "payload", ...kept].join(", ");
  const moved = `exists (select from ${s}.message_kept o where o.id = r.id)`;
  const unknown = `${parts.keyed && parts.repeat ? "(key is null or id in (select id from k))" : "true"}${parts.old ? ` and not ${moved}` : ""}`;
  const fresh = parts.repeat ? "id in (select id from m)" : unknown;
  const due = parts.delayed ? `${clock} + delay_ms * interval '1 ms'` : clock;

  // The place in its order, counted in the order of the call.
  const place = parts.ordered ? `, case when ordering_key is not null then nextval('${s}.order_seq') end as seq` : "";
  const ctes = [
    `r as materialized (select *${place} from unnest(${columns.map(([, value]) => value).join(", ")}) as r(${names.join(", ")})
      where exists (select from h))`,
  ];
  if (parts.keyed) {
    // As they come: the caller has sorted them, so that two batches cannot wait for each other.
    ctes.push(`k as (insert into ${s}.dedupe (topic_id, tenant, key, id, hash)
      select topic_id, coalesce(tenant, ''), key, id, hash
      from unnest(${[list("int"), text(), text(), list("uuid"), list("uuid")].join(", ")}) x(topic_id, tenant, key, id, hash)
      where exists (select from h) ${parts.repeat ? "on conflict do nothing returning id" : ""})`);
  }
  const down = parts.handedDown ? ", handed_down" : "";
  const downValue = parts.handedDown ? ", case when direct_code is not null or direct_error is not null then true end" : "";
  ctes.push(`m as (insert into ${s}.message (created_at, ${fixed}${down})
    select ${clock}, ${fixed}${downValue} from r where ${unknown}${parts.repeat ? " on conflict do nothing returning id" : ""})`);
  if (parts.handedDown) {
    ctes.push(`a as (insert into ${s}.attempt (message_id, lease_id, n, outcome, counted, at, next_due, code, error)
      select id, 0, 0, ${parts.rejected ? "case when rejected then 4 else 3 end" : "3"}, false, ${clock}, ${parts.rejected ? `case when not rejected then ${due} end` : due}, direct_code, direct_error from r
      where (direct_code is not null or direct_error is not null) and (${fresh}))`);
  }
  if (parts.rejected) {
    ctes.push(`d as (insert into ${s}.dead_letter (id, lane_id, attempts, died_at, code, error)
      select id, lane_id, 0, ${clock}, direct_code, direct_error from r where rejected and (${fresh}))`);
  }
  if (parts.ordered) {
    // Those of one key become visible together, so all but the first are behind from the start.
    ctes.push(`o as (insert into ${s}.ready_ordered (lane_id, ordering_key, id, seq, due, behind)
      select lane_id, ordering_key, id, seq, ${due}, row_number() over (partition by lane_id, ordering_key order by seq) > 1 from r where ordering_key is not null${parts.rejected ? " and not rejected" : ""} and (${fresh}))`);
  }
  ctes.push(`q as (insert into ${s}.ready (due, id, lane_id, bytes)
    select ${due}, id, lane_id, octet_length(payload) from r where ${parts.ordered ? "ordering_key is null and " : ""}${parts.rejected ? "not rejected and " : ""}(${fresh}))`);
  const [installation, lanes, told] = [`$${++n}`, `$${++n}`, `$${++n}`];
  ctes.unshift(
    `h as materialized (select true where ${atHome(s, installation, parts.lanesSeen ? null : `${lanes}::text::int[]`)})`,
  );
  return `with ${ctes.join(",\n")}
    select ${parts.repeat ? "(select string_agg(r.id::text, ',') from r where r.id not in (select id from m))" : "null::text"} as a, ${nudge(s, clock, "''", told)}::text as b,
      case when not exists (select from h) then ${strayed(s, installation, lanes)} end as c`;
}

/**
 * Whose the keys are, after a first row that says whether it was for where we are. Asked only after an insert came back short, in a second
 * statement: the first one's snapshot cannot see a row that committed meanwhile. Parameters: keys, installation, lanes.
 */
export function findKeys(s: string): string {
  return `select null::text as a, ${strayed(s, "$2", "$3")} as b, null::text as c union all
    select x.i::text, d.id::text, replace(d.hash::text, '-', '')
    from json_to_recordset($1::text::json) x(i int, topic_id int, tenant text, key text)
    join ${s}.dedupe d on d.topic_id = x.topic_id and d.tenant = x.tenant and d.key = x.key`;
}

/** Whether an id that exists already carries the same payload: then it is this very message, accepted before. */
export function sameMessage(s: string): string {
  return `select (payload = $2::text)::text from (select id, payload from ${s}.message union all select id, payload from ${s}.message_kept) m where id = $1::text::uuid`;
}
