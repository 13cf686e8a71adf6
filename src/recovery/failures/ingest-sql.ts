/**
 * The statements of an ingest, in the order in which they run. Waits come in one order everywhere: new groups by fingerprint, match ids, then
 * the groups' rows by id; a transaction that waits for one of a later kind holds none of an earlier kind that the other still needs.
 */
import type { Run } from "../../store/home.ts";
import { clockSql, epoch } from "../../store/shared/clock-sql.ts";
import { candidateColumns, candidateOf } from "../candidates/candidate.ts";
import { columns, flag, int, text, textOrNull } from "../columns.ts";
import { type GroupIdentity, IDENTITY_COLUMNS, identityOf } from "../groups/group.ts";
import type { NewOccurrence } from "./failure.ts";
import type { Entry } from "./ingest.ts";

/** The group that a merged one became part of, else itself. */
const ROOT = "coalesce(g.merged_into, g.id)::text";

/** Of `recovery_occurrence o` and its group `g`. */
const LEDGER = columns({
  root: text(ROOT),
  occurrenceId: text("o.id::text"),
  hash: text("replace(o.hash::text, '-', '')"),
  /** Where it was counted. */
  group: text("o.group_id::text"),
});

export type Ledgered = ReturnType<typeof LEDGER.of>;

/** By name: `key …` of the ledger; `match …` and `fingerprint …`, of which only the root is known. */
export type Known = ReadonlyMap<string, Ledgered>;

async function knownBy(run: Run, statement: string, values: unknown[]): Promise<Known> {
  return new Map((await run(statement, values)).map((row) => [row[0] as string, LEDGER.from(1, row)]));
}

const ledgerSql = (s: string, name: string, where: string) =>
  `select ${name}, ${LEDGER.list} from ${s}.recovery_occurrence o join ${s}.recovery_group g on g.id = o.group_id where ${where}`;

const keysSql = (s: string) => ledgerSql(s, "'key ' || o.request_key", "o.request_key = any ($1::text[])");

const lookUpSql = (s: string) => `${keysSql(s)}
  union all select 'match ' || m.match_id, ${ROOT}, null, null, null
    from ${s}.recovery_match m join ${s}.recovery_group g on g.id = m.group_id where m.match_id = any ($2::text[])
  union all select 'fingerprint ' || g.fingerprint, ${ROOT}, null, null, null from ${s}.recovery_group g where g.fingerprint = any ($3::text[])`;

export function lookUp(s: string, run: Run, all: readonly NewOccurrence[]): Promise<Known> {
  const distinct = (texts: readonly (string | null)[]) => [...new Set(texts.filter((one) => one !== null))];
  return knownBy(run, lookUpSql(s), [
    distinct(all.map((o) => o.requestKey)),
    distinct(all.flatMap((o) => [o.failureMatchId, o.group.failureMatchId])),
    distinct(all.map((o) => o.group.fingerprint)),
  ]);
}

/** Asked again in a statement of its own: the one that met a key cannot see a row that was committed meanwhile. */
export const ledgerOf = (s: string, run: Run, keys: readonly string[]) => knownBy(run, keysSql(s), [keys]);

/** Where these messages are counted already, under any key: by `id generation root`. */
export async function countedOf(s: string, run: Run, messageIds: readonly string[]): Promise<Known> {
  if (messageIds.length === 0) return new Map();
  const name = `o.message_id || ' ' || o.generation || ' ' || ${ROOT}`;
  const where = "o.message_id is not null and o.message_id = any ($1::uuid[])";
  return knownBy(run, `${ledgerSql(s, name, where)} order by o.id`, [messageIds]);
}

/** Groups by fingerprint, each made once; not `made`: another transaction made it first. */
export async function makeGroups(s: string, run: Run, given: readonly GroupIdentity[], now: Date | undefined) {
  const found = new Map<string, { readonly root: string; readonly made: boolean }>();
  if (given.length === 0) return found;
  const sorted = [...given].sort((a, b) => (a.fingerprint < b.fingerprint ? -1 : 1));
  const rows = sorted.map((group) => Object.values(identityOf(group)));
  const values = IDENTITY_COLUMNS.map((_, i) => rows.map((row) => row[i]));
  const clock = clockSql(now);
  const inserted = await run(
    `insert into ${s}.recovery_group (${IDENTITY_COLUMNS.join(", ")}, first_at, last_at)
      select x.*, ${clock}, ${clock} from unnest(${values.map((_, i) => `$${i + 1}::text[]`).join(", ")}) x
      on conflict do nothing returning fingerprint, id::text`,
    values,
  );
  for (const [fingerprint, id] of inserted) found.set(fingerprint as string, { root: id as string, made: true });
  const others = sorted.filter(({ fingerprint }) => !found.has(fingerprint));
  if (others.length === 0) return found;
  const there = await run(
    `select g.fingerprint, g.match_id, ${ROOT} from ${s}.recovery_group g where g.fingerprint = any ($1::text[]) or g.match_id = any ($2::text[])`,
    [others.map((g) => g.fingerprint), others.map((g) => g.failureMatchId)],
  );
  for (const { fingerprint, failureMatchId } of others) {
    const row = there.find((one) => one[0] === fingerprint) ?? there.find((one) => one[1] === failureMatchId);
    if (row) found.set(fingerprint, { root: row[2] as string, made: false });
  }
  return found;
}

/** Groups that were made in this very write and that nothing was counted in. */
export async function dropGroups(s: string, run: Run, groups: readonly string[]): Promise<void> {
  if (groups.length === 0) return;
  const statement = `with m as (delete from ${s}.recovery_match where group_id = any ($1::bigint[]))
    delete from ${s}.recovery_group where id = any ($1::bigint[])`;
  await run(statement, [groups]);
}

/** Match ids to groups; returns where they lead, if some of them lead elsewhere already. */
export async function makeMatches(s: string, run: Run, links: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  if (links.size === 0) return new Map();
  const matches = [...links.keys()].sort();
  const inserted = await run(
    `insert into ${s}.recovery_match (match_id, group_id) select * from unnest($1::text[], $2::bigint[])
      on conflict (match_id) do nothing returning match_id`,
    [matches, matches.map((match) => links.get(match))],
  );
  if (inserted.length === links.size) return new Map();
  const statement = `select m.match_id, ${ROOT} from ${s}.recovery_match m join ${s}.recovery_group g on g.id = m.group_id
    where m.match_id = any ($1::text[])`;
  return new Map((await run(statement, [matches])).map(([match, root]) => [match as string, root as string]));
}

/** Takes the groups' rows, lowest id first; `now` is the moment after the wait. Where one was merged meanwhile, its root is taken too. */
export async function lockGroups(s: string, run: Run, ids: readonly string[], now?: Date) {
  const rootOf = new Map<string, string>();
  let at = now ?? new Date(0);
  for (let wanted = [...new Set(ids)]; wanted.length > 0; ) {
    const statement = `select g.id::text, g.merged_into::text, ${epoch(clockSql(now))} from ${s}.recovery_group g
      where g.id = any ($1::bigint[]) order by g.id for no key update`;
    const moved: string[] = [];
    for (const [id, into, seconds] of await run(statement, [wanted])) {
      at = new Date(Math.round(Number(seconds) * 1_000));
      rootOf.set(id as string, into ?? (id as string));
      if (into && !rootOf.has(into)) moved.push(into);
    }
    wanted = moved;
  }
  return { now: at, rootOf };
}

const LATEST = {
  occurrenceCount: int("g.occurrences"),
  version: int("g.version"),
  failureMatchId: text("g.match_id"),
  resolved: flag("g.resolved_at is not null and g.regressed_at is null"),
  resolvedIn: textOrNull("g.resolved_in"),
};
const CANDIDATE_AT = 1 + Object.keys(LATEST).length;

/** The groups' counts and latest candidates, by group id. */
export async function latestOf(s: string, run: Run, ids: readonly string[]) {
  const latest = columns(LATEST);
  const rows = await run(
    `select g.id::text, ${latest.list}, ${candidateColumns(s)} from ${s}.recovery_group g left join lateral (
        select * from ${s}.recovery_candidate c where c.group_id = g.id order by c.round desc limit 1) c on true
      where g.id = any ($1::bigint[])`,
    [ids],
  );
  return new Map(
    rows.map((row) => {
      const candidate = row[CANDIDATE_AT] === null ? null : candidateOf(row.slice(CANDIDATE_AT));
      return [row[0] as string, { ...latest.from(1, row), candidate }];
    }),
  );
}

/** Inserts what is new to the ledger; returns the keys that were not. */
export async function insertOccurrences(s: string, run: Run, entries: readonly Entry[], now: Date): Promise<string[]> {
  if (entries.length === 0) return [];
  const values = entries.map(({ group, occurrence: { message, ...o } }): unknown[] => [
    ...[group, o.requestKey, o.payloadHash, o.source, o.failureMatchId, message?.id, message?.generation, message?.attempts],
    ...[o.tenantId, o.skillId, o.group.errorCode, o.errorMessage, o.stackTrace, o.failurePayload, o.version, o.redriveTopic],
  ]);
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
  const keys = entries.map(({ occurrence }) => occurrence.requestKey).filter((key) => key !== null);
  return keys.filter((key) => !inserted.has(key));
}

/** A death that is ingested with a write, and where; the occurrence of a repeat is set to this death. */
export interface Death {
  readonly id: string;
  readonly attempts: number;
  readonly group: string | null;
  readonly occurrenceId: string | null;
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

/** `counts`: by group; `evaluated`: candidates; `deaths`: each message once. */
export function count(s: string, run: Run, counts: Map<string, number>, evaluated: number[], deaths: Death[], now: Date) {
  const died = (["id", "attempts", "group", "occurrenceId"] as const).map((name) => deaths.map((death) => death[name]));
  return run(countSql(s, clockSql(now)), [[...counts.keys()], [...counts.values()], evaluated, ...died]);
}
