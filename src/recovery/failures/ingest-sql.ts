/**
 * The statements of an ingest, in the order in which they run. Waits come in one order everywhere: new groups by fingerprint,
 * match ids, then the groups' rows by id; a transaction that waits for one of a later kind holds none of an earlier kind that the
 * other still needs.
 */

import type { Row, Run } from "../../store/home.ts";
import { clockSql, epoch } from "../../store/shared/clock-sql.ts";
import type { Candidate } from "../candidates/candidate.ts";
import { type GroupIdentity, IDENTITY_COLUMNS, identityOf } from "../groups/group.ts";
import { candidateColumns, candidateOf } from "../rows.ts";
import type { NewOccurrence } from "./failure.ts";

/** The group that a merged one became part of, else itself: an id in text. */
const rootOf = (g: string) => `coalesce(${g}.merged_into, ${g}.id)::text`;

export interface Ledgered {
  readonly occurrenceId: string;
  readonly hash: string;
  /** Where it was counted, and the group that this one is part of now. */
  readonly group: string;
  readonly root: string;
}

export interface Known {
  readonly keys: ReadonlyMap<string, Ledgered>;
  /** To the group's root. */
  readonly matches: ReadonlyMap<string, string>;
  readonly fingerprints: ReadonlyMap<string, string>;
}

const ledgerSql = (
  s: string,
) => `select 'key', o.request_key, ${rootOf("g")}, o.id::text, replace(o.hash::text, '-', ''), o.group_id::text
    from ${s}.recovery_occurrence o join ${s}.recovery_group g on g.id = o.group_id where o.request_key = any ($1::text[])`;

const ledgered = ([, , root, id, hash, group]: Row): Ledgered => ({
  occurrenceId: id as string,
  hash: hash as string,
  group: group as string,
  root: root as string,
});

const lookUpSql = (s: string) => `${ledgerSql(s)}
  union all select 'match', m.match_id, ${rootOf("g")}, null, null, null
    from ${s}.recovery_match m join ${s}.recovery_group g on g.id = m.group_id where m.match_id = any ($2::text[])
  union all select 'fingerprint', g.fingerprint, ${rootOf("g")}, null, null, null from ${s}.recovery_group g where g.fingerprint = any ($3::text[])`;

export async function lookUp(s: string, run: Run, all: readonly NewOccurrence[]): Promise<Known> {
  const distinct = (texts: readonly (string | null)[]) => [...new Set(texts.filter((text) => text !== null))];
  const rows = await run(lookUpSql(s), [
    distinct(all.map((o) => o.requestKey)),
    distinct(all.flatMap((o) => [o.failureMatchId, o.group.failureMatchId])),
    distinct(all.map((o) => o.group.fingerprint)),
  ]);
  const of = (kind: string) => rows.filter((row) => row[0] === kind);
  const roots = (kind: string) => new Map(of(kind).map((row) => [row[1] as string, row[2] as string]));
  return {
    keys: new Map(of("key").map((row) => [row[1] as string, ledgered(row)])),
    matches: roots("match"),
    fingerprints: roots("fingerprint"),
  };
}

/** Asked again in a statement of its own: the one that met a key cannot see a row that was committed meanwhile. */
export async function ledgerOf(s: string, run: Run, keys: readonly string[]): Promise<Map<string, Ledgered>> {
  return new Map((await run(ledgerSql(s), [keys])).map((row) => [row[1] as string, ledgered(row)]));
}

export interface CountedMessage extends Ledgered {
  readonly messageId: string;
  readonly generation: number;
}

/** Where these messages are counted already, under any key. */
export async function countedOf(s: string, run: Run, messageIds: readonly string[]): Promise<CountedMessage[]> {
  if (messageIds.length === 0) return [];
  const text = `select 'message', o.generation::text, ${rootOf("g")}, o.id::text, replace(o.hash::text, '-', ''), o.group_id::text, o.message_id::text
    from ${s}.recovery_occurrence o join ${s}.recovery_group g on g.id = o.group_id
    where o.message_id is not null and o.message_id = any ($1::uuid[]) order by o.id`;
  const rows = await run(text, [messageIds]);
  return rows.map((row) => ({ ...ledgered(row), generation: Number(row[1]), messageId: row[6] as string }));
}

export interface MadeGroup {
  readonly root: string;
  /** False: another transaction made it first. */
  readonly made: boolean;
}

/** Groups by fingerprint, each made once. */
export async function makeGroups(
  s: string,
  run: Run,
  given: readonly GroupIdentity[],
  now: Date | undefined,
): Promise<Map<string, MadeGroup>> {
  if (given.length === 0) return new Map();
  const sorted = [...given].sort((a, b) => (a.fingerprint < b.fingerprint ? -1 : 1));
  const rows = sorted.map((group) => Object.values(identityOf(group)));
  const columns = IDENTITY_COLUMNS.map((_, i) => rows.map((row) => row[i]));
  const clock = clockSql(now);
  const inserted = await run(
    `insert into ${s}.recovery_group (${IDENTITY_COLUMNS.join(", ")}, first_at, last_at)
      select x.*, ${clock}, ${clock} from unnest(${columns.map((_, i) => `$${i + 1}::text[]`).join(", ")}) x
      on conflict do nothing returning fingerprint, id::text`,
    columns,
  );
  const found = new Map(inserted.map(([fingerprint, id]) => [fingerprint as string, { root: id as string, made: true }]));
  const others = sorted.filter(({ fingerprint }) => !found.has(fingerprint));
  if (others.length > 0) {
    const text = `select g.fingerprint, g.match_id, ${rootOf("g")} from ${s}.recovery_group g
      where g.fingerprint = any ($1::text[]) or g.match_id = any ($2::text[])`;
    const there = await run(text, [others.map((g) => g.fingerprint), others.map((g) => g.failureMatchId)]);
    for (const { fingerprint, failureMatchId } of others) {
      const row = there.find((one) => one[0] === fingerprint) ?? there.find((one) => one[1] === failureMatchId);
      if (row) found.set(fingerprint, { root: row[2] as string, made: false });
    }
  }
  return found;
}

/** Groups that were made in this very write and that nothing was counted in. */
export async function dropGroups(s: string, run: Run, groups: readonly string[]): Promise<void> {
  if (groups.length === 0) return;
  const text = `with m as (delete from ${s}.recovery_match where group_id = any ($1::bigint[]))
    delete from ${s}.recovery_group where id = any ($1::bigint[])`;
  await run(text, [groups]);
}

/** Match ids to groups; returns those that lead elsewhere already. */
export async function makeMatches(s: string, run: Run, links: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const sorted = [...links].sort(([a], [b]) => (a < b ? -1 : 1));
  const inserted = await run(
    `insert into ${s}.recovery_match (match_id, group_id) select * from unnest($1::text[], $2::bigint[])
      on conflict (match_id) do nothing returning match_id`,
    [sorted.map(([match]) => match), sorted.map(([, group]) => group)],
  );
  if (inserted.length === links.size) return new Map();
  const text = `select m.match_id, ${rootOf("g")} from ${s}.recovery_match m join ${s}.recovery_group g on g.id = m.group_id
    where m.match_id = any ($1::text[])`;
  const all = await run(text, [sorted.map(([match]) => match)]);
  return new Map(all.map(([match, root]) => [match as string, root as string]));
}

/** Takes the groups' rows, lowest id first; `now` is the moment after the wait. Where one was merged meanwhile, its root is taken too. */
export async function lockGroups(
  s: string,
  run: Run,
  ids: readonly string[],
  now: Date | undefined,
): Promise<{ now: Date; rootOf: Map<string, string> }> {
  const rootOf = new Map<string, string>();
  let at = now ?? new Date(0);
  for (let wanted = [...new Set(ids)]; wanted.length > 0; ) {
    const text = `select g.id::text, g.merged_into::text, ${epoch(clockSql(now))} from ${s}.recovery_group g
      where g.id = any ($1::bigint[]) order by g.id for no key update`;
    const moved: string[] = [];
    for (const [id, into, seconds] of await run(text, [wanted])) {
      at = new Date(Math.round(Number(seconds) * 1_000));
      rootOf.set(id as string, into ?? (id as string));
      if (into && !rootOf.has(into)) moved.push(into);
    }
    wanted = moved;
  }
  return { now: at, rootOf };
}

export interface LatestOfGroup {
  readonly occurrenceCount: number;
  readonly version: number;
  readonly failureMatchId: string;
  /** Set while it is resolved: in which version. */
  readonly resolved: { readonly in: string | null } | null;
  readonly candidate: Candidate | null;
}

/** The groups' counts and latest candidates, by group id. */
export async function latestOf(s: string, run: Run, ids: readonly string[]): Promise<Map<string, LatestOfGroup>> {
  const rows = await run(
    `select g.id::text, g.occurrences::text, g.version::text, g.match_id,
      case when g.regressed_at is null then ${epoch("g.resolved_at")} end, g.resolved_in, ${candidateColumns(s)}
      from ${s}.recovery_group g left join lateral (
        select * from ${s}.recovery_candidate c where c.group_id = g.id order by c.round desc limit 1) c on true
      where g.id = any ($1::bigint[])`,
    [ids],
  );
  return new Map(
    rows.map((row) => [
      row[0] as string,
      {
        occurrenceCount: Number(row[1]),
        version: Number(row[2]),
        failureMatchId: row[3] as string,
        resolved: row[4] === null ? null : { in: row[5] ?? null },
        candidate: row[6] === null ? null : candidateOf(row.slice(6)),
      },
    ]),
  );
}

/** Inserts what is new to the ledger; returns the keys that were not. */
export async function insertOccurrences(
  s: string,
  run: Run,
  entries: readonly { readonly occurrence: NewOccurrence; readonly group: string }[],
  now: Date,
): Promise<Set<string>> {
  if (entries.length === 0) return new Set();
  const rowOf = (group: string, { message, ...o }: NewOccurrence): unknown[] => [
    ...[group, o.requestKey, o.payloadHash, o.source, o.failureMatchId, message?.id, message?.generation, message?.attempts],
    ...[o.tenantId, o.skillId, o.group.errorCode, o.errorMessage, o.stackTrace, o.failurePayload, o.version, o.redriveTopic],
  ];
  const values = entries.map(({ group, occurrence }) => rowOf(group, occurrence));
  const rows = await run(
    `insert into ${s}.recovery_occurrence
        (at, group_id, request_key, hash, source, match_id, message_id, generation, attempts, tenant_id, skill, code, text, stack, payload,
         version, redrive_topic)
      select ${clockSql(now)}, x.* from unnest($1::bigint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::uuid[], $7::smallint[],
        $8::smallint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[]) x
      on conflict (request_key) do nothing returning request_key`,
    Array.from({ length: 16 }, (_, i) => values.map((row) => row[i] ?? null)),
  );
  const inserted = new Set(rows.map((row) => row[0]));
  return new Set(
    entries.flatMap(({ occurrence: { requestKey } }) => (requestKey === null || inserted.has(requestKey) ? [] : [requestKey])),
  );
}

export interface Counted {
  readonly counts: ReadonlyMap<string, number>;
  readonly evaluated: readonly number[];
  /** Deaths that are ingested with this write, each message once, and where; the occurrence of a repeat is set to this death. */
  readonly deaths: readonly {
    readonly id: string;
    readonly attempts: number;
    readonly group: string | null;
    readonly occurrenceId: string | null;
  }[];
}

/** Of a list, what stands where the row's id stands in another. */
const beside = (list: string, ids: string, id: string) => `(${list})[array_position(${ids}, ${id})]`;

/** Counts, asked-for evaluations and deaths in one statement. Rows are named by arrays and not joined to them: see act.ts. */
const countSql = (s: string, clock: string) => `with g as (
    update ${s}.recovery_group g set occurrences = g.occurrences + ${beside("$2::int[]", "$1::bigint[]", "g.id")}, last_at = greatest(g.last_at, ${clock})
      where g.id = any ($1::bigint[])),
  c as (update ${s}.recovery_candidate c set evaluation_status = 'unevaluated', evaluations = c.evaluations + 1, version = c.version + 1, updated_at = ${clock}
      where c.id = any ($3::bigint[])),
  o as (update ${s}.recovery_occurrence o set attempts = greatest(o.attempts, ${beside("$5::smallint[]", "$7::bigint[]", "o.id")})
      where o.id = any ($7::bigint[]) and o.message_id = ${beside("$4::uuid[]", "$7::bigint[]", "o.id")})
  update ${s}.dead_letter d set ingested_attempts = d.attempts,
    group_id = coalesce(${beside("$6::bigint[]", "$4::uuid[]", "d.id")}, case when d.ingested_attempts = d.attempts then d.group_id end),
    grouped_xid = case when d.ingested_attempts = d.attempts and d.group_id = coalesce(${beside("$6::bigint[]", "$4::uuid[]", "d.id")}, d.group_id)
      then d.grouped_xid else pg_current_xact_id() end
  where d.id = any ($4::uuid[]) and d.attempts = ${beside("$5::smallint[]", "$4::uuid[]", "d.id")}`;

export async function count(s: string, run: Run, { counts, evaluated, deaths }: Counted, now: Date): Promise<void> {
  await run(countSql(s, clockSql(now)), [
    [...counts.keys()],
    [...counts.values()],
    evaluated,
    deaths.map((d) => d.id),
    deaths.map((d) => d.attempts),
    deaths.map((d) => d.group),
    deaths.map((d) => d.occurrenceId),
  ]);
}
