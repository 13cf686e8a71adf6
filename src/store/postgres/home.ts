/**
 * The transactions of the recovery seam: everything of one write on one connection, tried again as a whole after a short conflict.
 * Messages are enqueued in it by the store's own enqueue; their lanes are made before it begins, since making one needs a connection
 * of its own.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import type { At, Transaction } from "../store.ts";
import type { Queryable, Row } from "./connection.ts";
import type { Db } from "./db.ts";
import type { Enqueue } from "./enqueue.ts";

export interface RecoveryDb extends Db {
  readonly enqueue: Enqueue;
  /** Hears of lanes where something became claimable, after the commit. */
  readonly onWork: (lanes: Iterable<string>) => void;
}

export interface How {
  /** A limit of its own instead of the connection's. */
  readonly patienceMs?: number | undefined;
  /** Prepared under this name where the connection is direct: for long statements whose text never changes. */
  readonly name?: string | undefined;
}

/** One statement; everything comes back as text. */
export type Run = (text: string, values?: unknown[], how?: How) => Promise<Row[]>;

/** A list of a million is frozen or cancelled in one statement. */
export const LIST_MS_MAX = 10 * 60_000;

export interface Inside {
  readonly run: Run;
  /** Each is accepted, or a repeat of one that was; a conflict undoes the whole write. */
  enqueue(messages: readonly NewMessage[], at: At): Promise<void>;
  /** As `enqueue`, but says what became of each; with one conflict nothing of the call is written. */
  tryEnqueue(messages: readonly NewMessage[], at: At): Promise<Accepted[]>;
  /** Lanes to tell of after the commit. */
  tell(lanes: Iterable<string>): void;
}

const asText = { getTypeParser: () => (value: unknown) => value };
const LANES_TRIES_MAX = 4;

/** Lanes have to be made before this can be written. */
class LanesMissing {
  readonly messages: readonly NewMessage[];
  constructor(messages: readonly NewMessage[]) {
    this.messages = messages;
  }
}

function insideOf(db: RecoveryDb, client: Queryable, lanes: Set<string>): Inside {
  const typed = client as unknown as { query(config: object): Promise<{ rows: Row[] }> };
  async function tryEnqueue(messages: readonly NewMessage[], { now }: At): Promise<Accepted[]> {
    if (messages.length === 0) return [];
    if (messages.some((m) => !db.lanes.known(m))) throw new LanesMissing(messages);
    const accepted = await db.enqueue(messages, { tx: client as Transaction, now });
    for (const message of messages) lanes.add(String(db.lanes.known(message)?.id));
    return accepted;
  }
  return {
    run: async (text, values = [], { patienceMs, name } = {}) => {
      const how = { ...(patienceMs ? { query_timeout: patienceMs } : {}), ...(name && db.connection.direct ? { name } : {}) };
      return (await typed.query({ text, values, rowMode: "array", types: asText, ...how })).rows;
    },
    tryEnqueue,
    async enqueue(messages, at) {
      const accepted = await tryEnqueue(messages, at);
      const refused = messages.find((_, i) => accepted[i]?.kind === "conflict");
      if (!refused) return;
      const text = `key ${refused.key} of topic ${refused.topic} belongs to a message with another payload; nothing was written`;
      throw new MakegoodError("key_conflict", text, { topic: refused.topic, key: refused.key });
    },
    tell(more) {
      for (const lane of more) lanes.add(lane);
    },
  };
}

export async function inTransaction<T>(db: RecoveryDb, during: string, work: (inside: Inside) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    let lanes = new Set<string>();
    try {
      const result = await db.connection.transaction(during, (client) => {
        lanes = new Set();
        return work(insideOf(db, client, lanes));
      });
      if (lanes.size > 0) db.onWork(lanes);
      return result;
    } catch (thrown) {
      if (!(thrown instanceof LanesMissing)) throw fenced(thrown);
      if (tries >= LANES_TRIES_MAX) throw new MakegoodError("retry_transaction", `${during}: topics keep changing; run it again`);
      await db.lanes.of(thrown.messages);
    }
  }
}

/** What the database's own fences refuse, in our code. */
function fenced(thrown: unknown): unknown {
  const { code, message } = (thrown ?? {}) as { code?: unknown; message?: unknown };
  const text = /^makegood: wrong_state: (.*)$/.exec(String(message))?.[1];
  return code === "23514" && text !== undefined ? new MakegoodError("wrong_state", text, {}, thrown) : thrown;
}

export const reader =
  (db: Db, during: string): Run =>
  (text, values = [], { patienceMs } = {}) =>
    db.connection.rows(during, text, values, { reads: true, patienceMs });
