/**
 * LIST: pages of messages, newest first, by keyset on the id. With any filter, a page is read from indexes and ends where it is
 * full (list-sources.ts). Where no index has the answer in its order (the delivered, or very many pending, of some lanes), the
 * lanes' messages are gone through from the newest on for a bounded time; then the page ends early, and its cursor goes on from
 * there.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import { isUuid } from "../../../platform/ids.ts";
import type { ListFilter, Page } from "../../store.ts";
import { type Db, RESOLUTION_CODES } from "../db.ts";
import { dueSql } from "./due.ts";
import { inState, newestAmongAll, newestOf, newestOfLanes, ofKey, pendingOfLanes } from "./list-sources.ts";
import { messageView, viewSql } from "./view.ts";

const AFTER_ALL = "ffffffff-ffff-ffff-ffff-ffffffffffff";
/** What is pending in the lanes of a filter is read and sorted up to here. */
const PENDING_SORTED_MAX = 20_000;
/** From so many lanes on the newest messages of all are looked through first. */
const LANES_MANY = 500;
const NEWEST_LOOKED_THROUGH = 5_000;
/** How long one page may look for more. */
const WALK_MS_MAX = 500;
const CHUNK_MAX = 2_000;

/** The ids of a page and one more where there are more, and from where to go on when the page ended before it was full. */
interface Found {
  readonly ids: string[];
  readonly goOnAt?: string | undefined;
}

export function createList(db: Db): (filter: ListFilter) => Promise<Page> {
  const { s } = db;
  const due = dueSql(s);
  const rows = (text: string, values: unknown[]) => db.connection.rows("list messages", text, values, { reads: true });
  const ids = async (text: string, values: unknown[]) => (await rows(text, values)).map((row) => row[0] as string);

  /** The lanes of a topic and tenant, suspects' and ordered ones included; null: no such filter. */
  async function lanesOf({ topic, tenantId }: ListFilter): Promise<string[] | null> {
    if (topic === undefined && tenantId === undefined) return null;
    return ids(
      `select l.id::text from ${s}.lane l join ${s}.topic t on t.id = l.topic_id where ($1::text is null or t.name = $1) and ($2::text is null or l.tenant = $2)`,
      [topic ?? null, tenantId ?? null],
    );
  }

  async function ofLanes(lanes: string[], cursor: string, count: number): Promise<string[]> {
    if (lanes.length > LANES_MANY) {
      const near = await ids(newestAmongAll(s), [cursor, count, lanes, NEWEST_LOOKED_THROUGH]);
      if (near.length === count) return near;
    }
    return ids(newestOfLanes(s, "any"), [cursor, count, lanes]);
  }

  /** Through the lanes' messages from the newest on, in chunks that grow, until the page is full, the end is reached or the time is over. */
  async function walk(status: "pending" | "delivered", lanes: string[], from: string, count: number): Promise<Found> {
    const startedMs = db.clock.monotonicMs();
    const found: string[] = [];
    const most = Math.max(count, Math.min(CHUNK_MAX, Math.floor((CHUNK_MAX * 20) / lanes.length)));
    let cursor = from;
    for (let chunk = count; ; chunk = Math.min(most, chunk * 2)) {
      const candidates = await ofLanes(lanes, cursor, chunk);
      if (candidates.length > 0) found.push(...(await ids(inState(s, status), [candidates])));
      if (found.length >= count || candidates.length < chunk) return { ids: found.slice(0, count) };
      cursor = candidates.at(-1) as string;
      if (db.clock.monotonicMs() - startedMs > WALK_MS_MAX) return { ids: found, goOnAt: cursor };
    }
  }

  async function pendingOf(lanes: string[], cursor: string, count: number): Promise<Found> {
    const [head, ...found] = await rows(pendingOfLanes(s), [cursor, count, lanes, PENDING_SORTED_MAX]);
    if (head?.[1] === "true") return { ids: found.map((row) => row[0] as string) };
    return walk("pending", lanes, cursor, count);
  }

  async function find(filter: ListFilter, cursor: string, count: number): Promise<Found> {
    const { topic, tenantId, key } = filter;
    // Only what is dead has a resolution.
    if (filter.resolution && filter.status && filter.status !== "dead") return { ids: [] };
    const status = filter.status ?? (filter.resolution ? "dead" : "any");
    const resolution = filter.resolution && RESOLUTION_CODES[filter.resolution];
    if (key !== undefined) {
      const candidates = await ids(ofKey(s), [cursor, topic ?? null, tenantId ?? null, key]);
      return { ids: (await ids(inState(s, status, resolution), [candidates])).slice(0, count) };
    }
    const lanes = await lanesOf(filter);
    if (!lanes) return { ids: await ids(newestOf(s, status, resolution), [cursor, count]) };
    if (lanes.length === 0) return { ids: [] };
    if (status === "pending") return pendingOf(lanes, cursor, count);
    if (status === "delivered") return walk(status, lanes, cursor, count);
    if (status === "any") return { ids: await ofLanes(lanes, cursor, count) };
    return { ids: await ids(newestOfLanes(s, status, resolution), [cursor, count, lanes]) };
  }

  async function listDue({ payload, now }: ListFilter, lanes: readonly string[], limit: number): Promise<Page> {
    const found = lanes.length === 0 ? [] : await ids(due(now), [lanes, limit]);
    const views = found.length === 0 ? [] : (await rows(viewSql(s, payload ?? true), [found])).map(messageView);
    const byId = new Map(views.map((view) => [view.id, view]));
    // One that was claimed between the two statements is left out.
    const data = found.flatMap((id) => byId.get(id) ?? []).filter(({ status }) => status === "pending");
    return { data, nextCursor: null };
  }

  return async function list(filter) {
    const cursor = filter.cursor ?? AFTER_ALL;
    if (!isUuid(cursor))
      throw new MakegoodError("invalid_message", "the cursor is not one of ours: pass next_cursor of the page before");
    const limit = Math.min(Math.max(1, filter.limit), LIMITS.pageMax);
    if (filter.dueIn) return listDue(filter, filter.dueIn, limit);
    const found = await find(filter, cursor, limit + 1);
    const page = found.ids.slice(0, limit);
    const data = page.length === 0 ? [] : (await rows(viewSql(s, filter.payload ?? true), [page])).map(messageView);
    // A message may move on between the two statements: one that no longer fits the asked-for status is left out, not shown wrong.
    const fitting = filter.status ? data.filter((m) => m.status === filter.status) : data;
    return { data: fitting, nextCursor: found.ids.length > limit ? (page.at(-1) ?? null) : (found.goOnAt ?? null) };
  };
}
