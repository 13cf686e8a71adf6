/**
 * What is read of groups and their occurrences, and which dead letters wait to be ingested. Open messages are counted over an index that
 * holds open, ingested dead letters alone, so a page of groups costs the same however much was counted in them before.
 */

import { isUuid } from "../../platform/ids.ts";
import type { Home, Run } from "../../store/home.ts";
import { UNINGESTED_MAX } from "../confidence/numbers.ts";
import type { DeadFailure } from "../failures/failure.ts";
import type { OccurrencePage } from "../failures/occurrences.ts";
import { listOccurrences } from "../failures/occurrences.ts";
import type { Paged } from "../pages.ts";
import { badCursor, paged, pageLimit } from "../pages.ts";
import { groupColumns, groupOf, membersOf, OPEN_IN_GROUP, openReportsOf } from "../rows.ts";
import type { Group, GroupFilter } from "./group.ts";

/** A group by its number; text that PostgreSQL does not read as a number finds no group. */
export async function readGroup(s: string, run: Run, groupId: number): Promise<Group | null> {
  if (!Number.isSafeInteger(groupId)) return null;
  const [row] = await run(`select ${groupColumns(s)} from ${s}.recovery_group g where g.id = $1::bigint`, [groupId]);
  return row ? groupOf(row) : null;
}

/** Microseconds and id of the last group of a page. */
const place = (g: string) => `(extract(epoch from ${g}.last_at) * 1000000)::bigint || '.' || ${g}.id`;

function placeOf(cursor: string | undefined): [string, string] | null {
  if (cursor === undefined) return null;
  const [, micros, id] = /^(-?\d{1,18})\.(\d{1,18})$/.exec(cursor) ?? [];
  if (micros === undefined || id === undefined) throw badCursor();
  return [micros, id];
}

function groupsSql(s: string, filter: GroupFilter): { text: string; values: unknown[] } {
  const values: unknown[] = [pageLimit(filter.limit) + 1];
  const param = (value: unknown) => `$${values.push(value)}`;
  const where = [filter.merged ? "true" : "g.merged_into is null"];
  const after = placeOf(filter.cursor);
  if (after) {
    const at = `timestamptz 'epoch' + ${param(after[0])}::bigint * interval '1 microsecond'`;
    where.push(`(g.last_at, g.id) < (${at}, ${param(after[1])}::bigint)`);
  }
  if (filter.topic !== undefined) where.push(`g.topic = ${param(filter.topic)}`);
  if (filter.errorCode !== undefined) where.push(`g.code = ${param(filter.errorCode)}`);
  if (filter.failureMatchId !== undefined) where.push(`g.id = ${matchedGroup(s, param(filter.failureMatchId.toLowerCase()))}`);
  if (filter.reported) where.push(`exists (select from ${openReportsOf(s, "g.id")})`);
  if (filter.tenantId !== undefined) {
    where.push(`exists (select from ${membersOf(s, "g.id")} x join ${s}.recovery_occurrence o on o.group_id = x.id
      where o.tenant_id = ${param(filter.tenantId)} and o.tenant_id is not null)`);
  }
  if (filter.open) {
    where.push(
      `g.merged_into is null and exists (select from ${membersOf(s, "g.id")} x join ${s}.dead_letter d on d.group_id = x.id and ${OPEN_IN_GROUP})`,
    );
  }
  const text = `select ${groupColumns(s, filter.counts ?? true)}, ${place("g")} from ${s}.recovery_group g where ${where.join(" and ")}
    order by g.last_at desc, g.id desc limit $1::int`;
  return { text, values };
}

/** The group that a match id leads to now. */
export const matchedGroup = (s: string, matchId: string) => `(select coalesce(f.merged_into, f.id) from ${s}.recovery_match m
    join ${s}.recovery_group f on f.id = m.group_id where m.match_id = ${matchId})`;

const BY = {
  fingerprint: (s: string) => `select id from ${s}.recovery_group where fingerprint = $1`,
  matchId: (s: string) => `select group_id as id from ${s}.recovery_match where match_id = $1`,
  messageId: (s: string) =>
    `select group_id as id from ${s}.recovery_occurrence where message_id = $1::uuid order by attempts desc, id desc limit 1`,
} as const;

export function createGroups(home: Home) {
  const { s } = home;
  const run = home.read("read groups");

  async function find(by: keyof typeof BY, value: string): Promise<Group | null> {
    if (by === "messageId" && !isUuid(value)) return null;
    const text = `select ${groupColumns(s)} from (${BY[by](s)}) x join ${s}.recovery_group f on f.id = x.id
      join ${s}.recovery_group g on g.id = coalesce(f.merged_into, f.id)`;
    const [row] = await run(text, [value]);
    return row ? groupOf(row) : null;
  }

  return {
    /** Open ones, oldest death first. Topics that start with one of `except` are left out. */
    async uningested(limit: number, except: readonly string[]): Promise<DeadFailure[]> {
      const text = `select d.id::text, d.generation::text, d.attempts::text, t.name, nullif(l.tenant, ''), d.code, d.error
        ${waitingFrom(s, "$2")}
        order by d.died_at, d.id limit $1::int`;
      return (await run(text, [limit, except])).map(([id, generation, attempts, topic, tenantId, code, error]) => ({
        id: id as string,
        generation: Number(generation),
        attempts: Number(attempts),
        topic: topic as string,
        tenantId: tenantId as string | null,
        code: code as string | null,
        error: error as string | null,
      }));
    },
    /** The group itself, also when it was merged into another. */
    group: (groupId: number) => readGroup(s, run, groupId),
    /** The one it was merged into, if it was. By message: where its latest death (most attempts) was counted. */
    groupOf(by: { readonly fingerprint: string } | { readonly failureMatchId: string } | { readonly messageId: string }) {
      if ("fingerprint" in by) return find("fingerprint", by.fingerprint);
      return "failureMatchId" in by ? find("matchId", by.failureMatchId) : find("messageId", by.messageId);
    },
    /** By the time of the last occurrence, latest first. */
    async groups(filter: GroupFilter): Promise<Paged<Group>> {
      const { text, values } = groupsSql(s, filter);
      const rows = await run(text, values);
      const { data, nextCursor } = paged(rows, filter.limit, (last) => last.at(-1) as string);
      return { data: data.map(groupOf), nextCursor };
    },
    occurrences: (groupId: number, page: OccurrencePage) => listOccurrences(s, run, groupId, page),
  };
}

/** Open dead letters that are not ingested yet, but for topics that start with one of the texts in `except`. */
const waitingFrom = (s: string, except: string) => `from ${s}.dead_letter d
  join ${s}.lane l on l.id = d.lane_id join ${s}.topic t on t.id = l.topic_id
  where d.resolution = 0 and d.ingested_attempts is distinct from d.attempts
    and not exists (select from unnest(${except}::text[]) e(prefix) where starts_with(t.name, e.prefix))`;

export const uningestedCount = (s: string, except: string) =>
  `(select count(*) from (select 1 ${waitingFrom(s, except)} limit ${UNINGESTED_MAX}) x)`;
