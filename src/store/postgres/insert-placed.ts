/**
 * The statements of an enqueue, sent and understood: which messages were inserted, whose the ids and keys of the others are, and whether
 * the statement ran where it was meant to.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import { idTimeMs } from "../../platform/ids.ts";
import { clockSql } from "../shared/clock-sql.ts";
import type { At } from "../store.ts";
import type { Db } from "./db.ts";
import { batchValues, laneList, shortValues } from "./enqueue-values.ts";
import { KIND_ORDERED, type LaneInfo } from "./lane-table.ts";
import { DAY_MS } from "./partitions.ts";
import { enqueueBatch, enqueueOne, findKeys, type Parts, type Short, sameMessage } from "./statements/enqueue.ts";

export interface Placed {
  readonly message: NewMessage;
  readonly lane: LaneInfo;
}

/** Nothing was inserted because of where the statement ran: in another database, or with a lane that is gone. */
export class Strayed extends Error {
  readonly lanes: number[];
  readonly database: boolean;
  constructor(where: string, placed: readonly Placed[]) {
    super(`enqueue: another ${where}`);
    this.database = where === "database";
    this.lanes = placed.map(({ lane }) => lane.id);
  }
}

/** Where a statement of an enqueue runs: returns rows as arrays. */
export type Run = (text: string, values: unknown[], name?: string) => Promise<(string | null)[][]>;

export interface Where extends At {
  /** The lanes need not be asked for. */
  readonly lanesSeen?: boolean | undefined;
}

/** How a statement of an enqueue is to be made. */
export interface How extends Where {
  /** An id may be there already. */
  readonly repeat: boolean;
  /** Whether this process tells its own workers after the commit; it does not see the commit of a caller's transaction. */
  readonly own: boolean;
}

const NONE: ReadonlySet<string> = new Set();

/** Sends one short or one batch statement; returns the ids that were not inserted because they or their keys exist. */
export async function insert(db: Db, placed: readonly Placed[], run: Run, how: How): Promise<ReadonlySet<string>> {
  const { repeat, now, lanesSeen = false } = how;
  const { installation } = db.lanes;
  const told = how.own ? db.idle.literal : "{}";
  const nowMs = now?.getTime() ?? db.clock.wallMs();
  const old = placed.some(({ message }) => nowMs - idTimeMs(message.id) > DAY_MS);
  const [only] = placed;
  if (placed.length === 1 && only && !old && !lanesSeen && only.lane.kind !== KIND_ORDERED && !only.message.directTry) {
    const short: Short = { keyed: only.message.key !== null, repeat };
    const text = statementText(db.s, now, shortName(short), (clock) => enqueueOne(db.s, clock, short));
    const rows = await run(text, shortValues(only, installation, told), now ? undefined : shortName(short));
    return rows.length > 0 ? NONE : new Set([only.message.id]);
  }
  const { parts, values } = batchValues(placed, { old, repeat: repeat || old, installation, lanesSeen, told });
  const name = batchName(parts);
  const text = statementText(db.s, now, name, (clock) => enqueueBatch(db.s, clock, parts));
  const [row] = await run(text, values, now ? undefined : name);
  if (row?.[2]) throw new Strayed(row[2], placed);
  return row?.[0] ? new Set(row[0].split(",")) : NONE;
}

const shortName = ({ keyed, repeat }: Short): string => `mg_enqueue_${keyed ? "keyed" : "plain"}_${repeat}`;

const batchName = (parts: Parts): string => `mg_enqueue_${Object.values(parts).map(Number).join("")}`;

const texts = new Map<string, string>();

/** The text by the server's clock is made once: a caller's transaction waits for it each time. */
function statementText(s: string, now: Date | undefined, name: string, make: (clock: string) => string): string {
  if (now) return make(clockSql(now));
  const place = name + s;
  const made = texts.get(place) ?? make(clockSql(undefined));
  texts.set(place, made);
  return made;
}

/** Which message has the id or key of each missing one; undefined where that message was pruned in between. */
async function findOwners(
  db: Db,
  placed: readonly Placed[],
  missing: ReadonlySet<string>,
  run: Run,
  { lanesSeen }: How,
): Promise<(Accepted | undefined)[]> {
  const results: (Accepted | undefined)[] = placed.map(({ message }) =>
    missing.has(message.id) ? undefined : { kind: "accepted", id: message.id },
  );
  const asked = placed.flatMap(({ message, lane }, i) =>
    missing.has(message.id) && message.key !== null ? [{ i, topic_id: lane.topicId, tenant: lane.tenant, key: message.key }] : [],
  );
  const where = [db.lanes.installation, lanesSeen ? "{}" : laneList(placed)];
  for (const [index, id, hash] of await run(findKeys(db.s), [JSON.stringify(asked), ...where])) {
    if (index === null) {
      if (id) throw new Strayed(id, placed);
      continue;
    }
    const i = Number(index);
    const message = placed[i]?.message as NewMessage;
    // The same id means that an earlier try of this very call did commit.
    const kind = id === message.id ? "accepted" : hash === message.payloadHash ? "duplicate" : "conflict";
    results[i] = { kind, id: id as string };
  }
  for (const [i, { message }] of placed.entries()) {
    if (results[i] || message.key !== null) continue;
    const [row] = await run(sameMessage(db.s), [message.id, message.payload]);
    if (row) results[i] = { kind: row[0] === "true" ? "accepted" : "conflict", id: message.id };
  }
  return results;
}

/** What becomes of each message. A key that was pruned between the two statements is inserted again, once. */
export async function answersFor(
  db: Db,
  placed: readonly Placed[],
  missing: ReadonlySet<string>,
  run: Run,
  how: How,
): Promise<Accepted[]> {
  if (missing.size === 0) return placed.map(({ message }) => ({ kind: "accepted", id: message.id }));
  const results = await findOwners(db, placed, missing, run, how);
  const again = placed.filter((_, i) => results[i] === undefined);
  if (again.length > 0) {
    const missingAgain = await insert(db, again, run, how);
    const second = await findOwners(db, again, missingAgain, run, how);
    for (const [i, p] of placed.entries()) results[i] ??= second[again.indexOf(p)];
  }
  return results.map((result) => {
    if (!result)
      throw new MakegoodError(
        "retry_transaction",
        "a key was deleted and taken again while it was looked up; run the call again",
      );
    return result;
  });
}
