/** What is read of groups. A page of them costs the same however many there are and however much was counted (rolling-counts.ts). */
import { isUuid } from "../../platform/ids.ts";
import type { Home, Run } from "../../store/home.ts";
import { DEAD_FAILURE, listOccurrences, type OccurrencePage } from "../failures/failure.ts";
import { badCursor, type Paged, paged, pageLimit } from "../pages.ts";
import { membersOf } from "../rows.ts";
import { type Group, type GroupFilter, groupRecord, reportsOf } from "./group.ts";
import { pendingOpen } from "./rolling-counts.ts";

/** A group by its number; text that PostgreSQL does not read as a number finds no group. */
export async function readGroup(s: string, run: Run, groupId: number): Promise<Group | null> {
  if (!Number.isSafeInteger(groupId)) return null;
  const record = groupRecord(s);
  const [row] = await run(`select ${record.list} from ${s}.recovery_group g where g.id = $1::bigint`, [groupId]);
  return row ? record.of(row) : null;
}

/** By which columns a list goes, newest or largest first; a cursor says where the last group of a page stands. */
const ORDERS = { recent: ["g.last_at", "g.id"], size: ["g.open_now", "g.occurrences", "g.id"] } as const;
const inCursor = (column: string) => (column === "g.last_at" ? "(extract(epoch from g.last_at) * 1000000)::bigint" : column);
const fromCursor = (column: string, n: string) =>
  column === "g.last_at" ? `timestamptz 'epoch' + ${n}::bigint * interval '1 microsecond'` : `${n}::bigint`;

/** What is in fewer groups (a tenant's failures, reported ones) is looked up; in more, it is met soon by who goes through all of them. */
const FEW = 300;

/** Null: they are many. */
async function few(run: Run, text: string, values?: unknown[]): Promise<string[] | null> {
  const found = (await run(text, values)).map(([id]) => id as string);
  return found.length > FEW ? null : found;
}

/** From group to group over the index, however many occurrences each has. */
function ofTenantSql(s: string): string {
  const next = (more: string) => `(select o.group_id from ${s}.recovery_occurrence o
    where o.tenant_id = $1 and o.tenant_id is not null ${more} order by o.group_id limit 1)`;
  return `with recursive t as (select ${next("")} as id
      union all select ${next("and o.group_id > t.id")} from t where t.id is not null),
    f as (select t.id from t where t.id is not null limit ${FEW + 1})
    select coalesce(g.merged_into, g.id)::text from f join ${s}.recovery_group g on g.id = f.id`;
}

const reportedSql = (s: string) =>
  `select coalesce(m.merged_into, m.id)::text from ${s}.recovery_group m where m.reports > 0 limit ${FEW + 1}`;

function groupsSql(s: string, filter: GroupFilter, found: Readonly<Record<"ofTenant" | "reported", string[] | null>>) {
  const values: unknown[] = [];
  const param = (value: unknown) => `$${values.push(value)}`;
  const by: readonly string[] = ORDERS[filter.order ?? "recent"];
  const where = [filter.merged ? "true" : "g.merged_into is null"];
  if (filter.cursor !== undefined) {
    const parts = filter.cursor.split(".");
    if (parts.length !== by.length || !parts.every((part) => /^-?\d{1,18}$/.test(part))) throw badCursor();
    where.push(`(${by.join(", ")}) < (${by.map((column, i) => fromCursor(column, param(parts[i]))).join(", ")})`);
  }
  if (filter.topic !== undefined) where.push(`g.topic = ${param(filter.topic)}`);
  if (filter.errorCode !== undefined) where.push(`g.code = ${param(filter.errorCode)}`);
  if (filter.since !== undefined) where.push(`g.last_at >= ${param(filter.since)}::timestamptz`);
  if (filter.until !== undefined) where.push(`g.first_at < ${param(filter.until)}::timestamptz`);
  if (filter.failureMatchId !== undefined) where.push(`g.id = ${matchedGroup(s, param(filter.failureMatchId.toLowerCase()))}`);
  if (filter.reported) where.push(`${reportsOf(s)} > 0`);
  if (found.reported !== null) where.push(`g.id = any (${param(found.reported)}::bigint[])`);
  if (found.ofTenant !== null) where.push(`g.id = any (${param(found.ofTenant)}::bigint[])`);
  else if (filter.tenantId !== undefined) {
    where.push(`exists (select from ${membersOf(s, "g.id")} x join ${s}.recovery_occurrence o on o.group_id = x.id
      where o.tenant_id = ${param(filter.tenantId)} and o.tenant_id is not null)`);
  }
  if (filter.open) where.push("g.merged_into is null and g.open_now > 0");
  const order = `order by ${by.map((column) => `${column} desc`).join(", ")} limit ${pageLimit(filter.limit) + 1}`;
  const part = (from: string, open: string, more = "") => {
    const now = (text: string) => text.replaceAll("g.open_now", `(${open})`);
    return `(select g.*, ${open} as open_now from ${from} where ${now(where.join(" and "))} ${more} ${now(order)})`;
  };
  // Groups whose count is on its way are few and are read all; the others come from an index in their order, no more than asked for.
  const text = `with p as materialized (${pendingOpen(s)})
    select ${groupRecord(s, "g.open_now").list}, ${by.map(inCursor).join(" || '.' || ")} from (
      ${part(`${s}.recovery_group g`, "g.open", "and g.id not in (select p.id from p)")}
      union all ${part(`p join ${s}.recovery_group g on g.id = p.id`, "g.open + p.n")}) g ${order}`;
  return { text, values };
}

/** The group that a match id leads to now. */
export const matchedGroup = (s: string, matchId: string) => `(select coalesce(f.merged_into, f.id) from ${s}.recovery_match m
    join ${s}.recovery_group f on f.id = m.group_id where m.match_id = ${matchId})`;

const BY = {
  fingerprint: (s: string) => `select id from ${s}.recovery_group where fingerprint = $1`,
  failureMatchId: (s: string) => `select group_id as id from ${s}.recovery_match where match_id = $1`,
  messageId: (s: string) =>
    `select group_id as id from ${s}.recovery_occurrence where message_id = $1::uuid order by attempts desc, id desc limit 1`,
} as const;

export function createGroups(home: Home) {
  const { s } = home;
  const run = home.read("read groups");
  const record = groupRecord(s);

  return {
    /** Open ones, oldest death first. Topics that start with one of `except` are left out. */
    async uningested(limit: number, except: readonly string[]) {
      const text = `select ${DEAD_FAILURE.list} ${waitingFrom(s, "$2")} order by d.died_at, d.id limit $1::int`;
      return (await run(text, [limit, except])).map(DEAD_FAILURE.of);
    },
    /** The group itself, also when it was merged into another. */
    group: (groupId: number) => readGroup(s, run, groupId),
    /** The one it was merged into, if it was. By message: where its latest death (most attempts) was counted. */
    async groupOf(by: { readonly fingerprint: string } | { readonly failureMatchId: string } | { readonly messageId: string }) {
      const [[name, value]] = Object.entries(by) as [[keyof typeof BY, string]];
      if (name === "messageId" && !isUuid(value)) return null;
      const text = `select ${record.list} from (${BY[name](s)}) x join ${s}.recovery_group f on f.id = x.id
        join ${s}.recovery_group g on g.id = coalesce(f.merged_into, f.id)`;
      const [row] = await run(text, [value]);
      return row ? record.of(row) : null;
    },
    /** These, by their ids; the groups themselves, also where they were merged. */
    async groupsById(ids: readonly number[]): Promise<Map<number, Group>> {
      const rows = await run(`select ${record.list} from ${s}.recovery_group g where g.id = any ($1::bigint[])`, [ids]);
      return new Map(rows.map(record.of).map((group) => [group.groupId, group]));
    },
    async groups(filter: GroupFilter): Promise<Paged<Group>> {
      const ofTenant = filter.tenantId === undefined ? null : await few(run, ofTenantSql(s), [filter.tenantId]);
      const reported = filter.reported ? await few(run, reportedSql(s)) : null;
      const { text, values } = groupsSql(s, filter, { ofTenant, reported });
      const rows = await run(text, values);
      const { data, nextCursor } = paged(rows, filter.limit, (last) => last.at(-1) as string);
      return { data: data.map(record.of), nextCursor };
    },
    occurrences: (groupId: number, page: OccurrencePage) => listOccurrences(s, run, groupId, page),
  };
}

/** Open dead letters that are not ingested yet, but for topics that start with one of the texts in `except`. */
const waitingFrom = (s: string, except: string) => `from ${s}.dead_letter d
  join ${s}.lane l on l.id = d.lane_id join ${s}.topic t on t.id = l.topic_id
  where d.resolution = 0 and d.ingested_attempts is distinct from d.attempts
    and not exists (select from unnest(${except}::text[]) e(prefix) where starts_with(t.name, e.prefix))`;

/** I10: after an upgrade they are many, and are not counted whole: this many means so many or more. */
const UNINGESTED_MAX = 10_000;

export const uningestedCount = (s: string, except: string) =>
  `(select count(*) from (select 1 ${waitingFrom(s, except)} limit ${UNINGESTED_MAX}) x)`;
