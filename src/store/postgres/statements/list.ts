/**
 * LIST: pages of messages, newest first, by keyset on the id. Each status starts from the table that holds it, so that the few
 * dead letters of a large store are found without reading the delivered ones.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { Status } from "../../../message/message.ts";
import { isUuid } from "../../../platform/ids.ts";
import type { ListFilter, Page } from "../../store.ts";
import { type Db, RESOLUTION_CODES } from "../db.ts";
import { messageView, viewSql } from "./view.ts";

/** Each yields (id, lane_id); $1 is the cursor. */
const SOURCES: Record<Status | "any", (s: string) => string> = {
  any: (s) =>
    `select id, lane_id from ${s}.message where id < $1 union all select id, lane_id from ${s}.message_kept where id < $1`,
  pending: (s) =>
    `select id, lane_id from ${s}.ready where id < $1 union all select id, lane_id from ${s}.ready_ordered where id < $1`,
  processing: (s) => `select u.id, u.lane_id from ${s}.lease l cross join lateral unnest(l.ids, l.lanes) u(id, lane_id)
    where u.id < $1 and not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id)`,
  delivered: (s) => `select a.message_id as id, m.lane_id from ${s}.attempt a cross join lateral (
      select lane_id from (select id, lane_id from ${s}.message where id = a.message_id union all
        select id, lane_id from ${s}.message_kept where id = a.message_id) m limit 1) m
    where a.message_id < $1 and a.outcome in (1, 2)`,
  dead: (s) => `select id, lane_id from ${s}.dead_letter where id < $1 and resolution < 3`,
};

const AFTER_ALL = "ffffffff-ffff-ffff-ffff-ffffffffffff";

export function createList(db: Db): (filter: ListFilter) => Promise<Page> {
  const { s } = db;

  /** The lanes of a topic and tenant, suspects' and ordered ones included; null: no such filter. */
  async function lanesOf({ topic, tenantId }: ListFilter): Promise<string[] | null> {
    if (topic === undefined && tenantId === undefined) return null;
    const rows = await db.connection.rows(
      "list messages",
      `select l.id::text from ${s}.lane l join ${s}.topic t on t.id = l.topic_id where ($1::text is null or t.name = $1) and ($2::text is null or l.tenant = $2)`,
      [topic ?? null, tenantId ?? null],
      { reads: true },
    );
    return rows.map((row) => row[0] as string);
  }

  function idsSql(filter: ListFilter): string {
    const where = ["($2::int[] is null or c.lane_id = any ($2::int[]))"];
    if (filter.resolution) {
      where.push(
        `exists (select from ${s}.dead_letter d where d.id = c.id and d.resolution = ${RESOLUTION_CODES[filter.resolution]})`,
      );
    }
    if (filter.key !== undefined) {
      where.push(`c.id in (select d.id from (select distinct topic_id, tenant from ${s}.lane) l
        join ${s}.dedupe d on d.topic_id = l.topic_id and d.tenant = l.tenant and d.key = $4::text)`);
    } else where.push("$4::text is null");
    return `select c.id::text from (${SOURCES[filter.status ?? (filter.resolution ? "dead" : "any")](s)}) c where ${where.join(" and ")} order by c.id desc limit $3::int`;
  }

  return async function list(filter) {
    const cursor = filter.cursor ?? AFTER_ALL;
    if (!isUuid(cursor))
      throw new MakegoodError("invalid_message", "the cursor is not one of ours: pass next_cursor of the page before");
    const limit = Math.min(Math.max(1, filter.limit), LIMITS.pageMax);
    const lanes = await lanesOf(filter);
    if (lanes?.length === 0) return { data: [], nextCursor: null };
    const values = [cursor, lanes, limit + 1, filter.key ?? null];
    const ids = (await db.connection.rows("list messages", idsSql(filter), values, { reads: true })).map(
      (row) => row[0] as string,
    );
    const page = ids.slice(0, limit);
    const data = (await db.connection.rows("list messages", viewSql(s, filter.payload ?? true), [page], { reads: true })).map(
      messageView,
    );
    // A message may move on between the two statements: one that no longer fits the asked-for status is left out, not shown wrong.
    const fitting = filter.status ? data.filter((m) => m.status === filter.status) : data;
    return { data: fitting, nextCursor: ids.length > limit ? (page.at(-1) ?? null) : null };
  };
}
