/**
 * Pages of a group's occurrences, newest first, those of groups merged into it included. Whether a message is open is known only by looking at its dead letter, so a
 * caller that asks for those that are (or are not) gets what the next few thousand hold of them: a group of millions is never
 * read for one page.
 */

import type { Run } from "../../store/home.ts";
import type { Page, Paged } from "../pages.ts";
import { idCursor, paged, pageLimit } from "../pages.ts";
import { membersOf } from "../rows.ts";
import { type Occurrence, occurrenceRecord } from "./failure.ts";

/** Occurrences that are looked at for a page of open ones, or of others. */
const LOOKED_MAX = 5_000;

export interface OccurrencePage extends Page {
  readonly open?: boolean | undefined;
  readonly tenantId?: string | undefined;
}

export async function listOccurrences(
  s: string,
  run: Run,
  groupId: number,
  { limit, cursor, open, tenantId }: OccurrencePage,
): Promise<Paged<Occurrence>> {
  const record = occurrenceRecord(s);
  const values: unknown[] = [idCursor(cursor), pageLimit(limit) + 1, Number.isSafeInteger(groupId) ? groupId : 0];
  const tenant = tenantId === undefined ? "" : `and o.tenant_id = $${values.push(tenantId)} and o.tenant_id is not null`;
  const root = `(select coalesce(g.merged_into, g.id) from ${s}.recovery_group g where g.id = $3::bigint)`;
  // Each group's newest first, then the newest of all: a large group is not read whole for one page.
  const newest = (columns: string, most: string) => `select ${columns} from ${membersOf(s, root)} x
    cross join lateral (select * from ${s}.recovery_occurrence o where o.group_id = x.id and o.id < $1::bigint ${tenant} order by o.id desc limit ${most}) o
    order by o.id desc limit ${most}`;
  const last = ({ occurrenceId }: Occurrence) => String(occurrenceId);
  if (open === undefined) {
    const rows = await run(newest(record.list, "$2::int"), values);
    return paged(
      rows.map((row) => record.of(row)),
      limit,
      last,
    );
  }
  // One look at a dead letter for each, by its id: joined, all dead letters of all groups would be read. One row at least says how far it looked.
  const isOpen = `(select d.resolution = 0 and d.attempts = k.attempts from ${s}.dead_letter d where d.id = k.message_id)`;
  const text = `with k as materialized (${newest("o.id, o.message_id, o.attempts", String(LOOKED_MAX))})
    select ${record.list}, (select case when count(*) = ${LOOKED_MAX} then min(k.id)::text end from k)
    from (select) one left join lateral (select o.* from k join ${s}.recovery_occurrence o on o.id = k.id
      where k.message_id is not null and ${isOpen} is ${open ? "" : "not "}true order by k.id desc limit $2::int) o on true
    order by o.id desc`;
  const rows = await run(text, values);
  const lookedTo = rows[0]?.at(-1) ?? null;
  const found = rows.filter(([id]) => id !== null).map((row) => record.of(row));
  const page = paged(found, limit, last);
  return { data: page.data, nextCursor: page.nextCursor ?? lookedTo };
}
