/**
 * Reading back from Redis: one message, a page of them, how many there are of each state, and the history of one.
 */
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { MessageView } from "../../message/message.ts";
import { systemClock } from "../../platform/clock.ts";
import { isUuid } from "../../platform/ids.ts";
import type { ListFilter, Page, StatusCount, Store } from "../store.ts";
import type { Db } from "./db.ts";
import { createLanes } from "./lanes.ts";
import { fieldsOf, historyOf, lettersOf, stateOf, viewOfFields, viewOfRow } from "./rows.ts";
import { COUNTS, LIST, LIST_DUE, QUARANTINE_LOST, READ_MESSAGE } from "./scripts/read.ts";

/** How long one page may look for more; then it ends early, and its cursor goes on from there. */
const LIST_MS_MAX = 500;
/** How often one page of what is due looks again after it met messages that cannot be read; those that are left then are for the next one. */
const LOOKS_MAX = 20;

/** Ids of messages in any of these states, newest first and below one. `reached`: where the next call goes on; empty: nowhere. */
export async function idsBelow(
  db: Db,
  letters: string,
  below: string,
  limit: number,
): Promise<{ ids: string[]; reached: string }> {
  const args = [letters, "", "", "", below, limit, 0];
  const [reached, ...rows] = (await db.run(LIST, [db.keys.key("accepted")], args)) as [string, ...string[][]];
  return { ids: rows.map(([id]) => id as string), reached };
}

export function createReads(db: Db): Pick<Store, "get" | "list" | "counts" | "history" | "lanes"> {
  const fields = async (id: string) => fieldsOf(await db.run(READ_MESSAGE, [db.keys.message(id)], []));
  return {
    async get(id) {
      const found = await fields(id);
      return found ? viewOfFields(id, found) : null;
    },
    history: async (id) => historyOf(await fields(id)),
    lanes: createLanes(db),
    list: (filter) => list(db, filter),
    counts: (options) => counts(db, options?.delivered === true),
  };
}

async function list(db: Db, filter: ListFilter): Promise<Page> {
  const limit = Math.min(Math.max(1, Math.trunc(filter.limit)), LIMITS.pageMax);
  if (filter.dueIn) return listDue(db, filter, filter.dueIn, limit);
  const letters = lettersOf(filter.status, filter.resolution);
  const found: MessageView[] = [];
  let below = filter.cursor === undefined ? "" : readCursor(filter.cursor);
  if (letters === "") return { data: [], nextCursor: null };
  const startedMs = systemClock.monotonicMs();
  // One more than the page, which tells whether there is a next one. Each call looks at a bounded number of messages, and a page for a bounded time.
  do {
    const wanted = [filter.topic ?? "", filter.tenantId ?? "", filter.key ?? "", below, limit + 1 - found.length];
    const args = [letters, ...wanted, filter.payload === false ? 0 : 1];
    const [reached, ...rows] = (await db.run(LIST, [db.keys.key("accepted")], args)) as [string, ...(string | null)[][]];
    found.push(...rows.map(viewOfRow));
    below = reached;
  } while (below !== "" && found.length <= limit && systemClock.monotonicMs() - startedMs < LIST_MS_MAX);
  const data = found.slice(0, limit);
  const goOnAt = found.length > limit ? (data.at(-1) as MessageView).id : below;
  return { data, nextCursor: goOnAt === "" ? null : writeCursor(goOnAt) };
}

/** What is met and cannot be read is quarantined, as by a claim, and what comes after it takes its place (FIN-25). */
async function listDue(db: Db, { payload, now }: ListFilter, lanes: readonly string[], limit: number): Promise<Page> {
  const keys = [db.keys.key("lanes")];
  for (let looks = 1; ; looks++) {
    const args = [limit, payload === false ? 0 : 1, ...lanes];
    const [lost, ...rows] = (await db.run(LIST_DUE, keys, args, { now })) as [string[], ...(string | null)[][]];
    if (lost.length === 0 || looks === LOOKS_MAX) return { data: rows.map(viewOfRow), nextCursor: null };
    await db.run(QUARANTINE_LOST, [...keys, db.keys.key("quarantine")], lost, { now });
  }
}

const writeCursor = (id: string): string => Buffer.from(id, "latin1").toString("base64url");

function readCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  if (!isUuid(id)) throw new MakegoodError("invalid_message", "This cursor is not one that a page before returned.", { cursor });
  return id;
}

async function counts(db: Db, delivered: boolean): Promise<StatusCount[]> {
  const letters = lettersOf().replace(delivered ? "" : "d", "");
  type Row = [topic: string, state: string, count: number, oldest: string | null];
  const [now, ...rows] = (await db.run(COUNTS, [db.keys.key("accepted")], [letters])) as [number, ...Row[]];
  return rows.map(([topic, state, count, oldest]) => ({
    topic,
    ...stateOf(state),
    count,
    oldestMs: oldest === null ? null : now - Number(oldest),
  }));
}
