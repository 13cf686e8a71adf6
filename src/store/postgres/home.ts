/**
 * The home of rooms with tables of their own (store/home.ts): everything of one write on one connection, tried again as a whole after a short
 * conflict. Messages are enqueued in it by the store's own enqueue; their lanes are made before it begins, since making one needs a
 * connection of its own.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import type { Home, Inside } from "../home.ts";
import type { At, Transaction } from "../store.ts";
import type { Queryable } from "./connection.ts";
import type { Db } from "./db.ts";
import type { Enqueue } from "./enqueue.ts";
import { runOf } from "./run-of.ts";
import { type createIntervene, interveneIn } from "./statements/intervene.ts";
import { fenceIn } from "./statements/lead.ts";
import { messageView, viewSql } from "./statements/view.ts";

export interface HomeParts {
  readonly enqueue: Enqueue;
  readonly intervene: ReturnType<typeof createIntervene>;
  /** Hears of lanes where something became claimable, after the commit. */
  readonly onWork: (lanes: Iterable<string>) => void;
}

const LANES_TRIES_MAX = 4;

/** Lanes have to be made before this can be written. */
class LanesMissing {
  readonly messages: readonly NewMessage[];
  constructor(messages: readonly NewMessage[]) {
    this.messages = messages;
  }
}

function insideOf(db: Db, { enqueue }: HomeParts, client: Queryable, lanes: Set<string>): Inside {
  const run = runOf(client, db.connection.direct);
  async function tryEnqueue(messages: readonly NewMessage[], { now }: At): Promise<Accepted[]> {
    if (messages.length === 0) return [];
    if (messages.some((m) => !db.lanes.known(m))) throw new LanesMissing(messages);
    const accepted = await enqueue(messages, { tx: client as Transaction, now });
    for (const message of messages) lanes.add(String(db.lanes.known(message)?.id));
    return accepted;
  }
  return {
    run,
    tryEnqueue,
    async enqueue(messages, at) {
      const accepted = await tryEnqueue(messages, at);
      const refused = messages.find((_, i) => accepted[i]?.kind === "conflict");
      if (!refused) return;
      const text = `key ${refused.key} of topic ${refused.topic} belongs to a message with another payload; nothing was written`;
      throw new MakegoodError("key_conflict", text, { topic: refused.topic, key: refused.key });
    },
    async intervene(action, named, by, at) {
      for (const [, lane] of await interveneIn(db.s, run, action, named, { ...by, now: at.now })) if (lane) lanes.add(lane);
    },
  };
}

export function createHome(db: Db, parts: HomeParts): Home {
  const home: Home = {
    s: db.s,
    read:
      (during) =>
      (text, values = [], { patienceMs } = {}) =>
        db.connection.rows(during, text, values, { reads: true, patienceMs }),
    write:
      (during) =>
      (text, values = []) =>
        db.connection.rows(during, text, values),
    async transaction(during, work, under) {
      for (let tries = 1; ; tries++) {
        let lanes = new Set<string>();
        try {
          const result = await db.connection.transaction(during, async (client) => {
            lanes = new Set();
            await fenceIn(client, db.s, under);
            return work(insideOf(db, parts, client, lanes));
          });
          if (lanes.size > 0) parts.onWork(lanes);
          return result;
        } catch (thrown) {
          if (!(thrown instanceof LanesMissing)) throw fenced(thrown);
          if (tries >= LANES_TRIES_MAX)
            throw new MakegoodError("retry_transaction", `${during}: topics keep changing; run it again`);
          await db.lanes.of(thrown.messages);
        }
      }
    },
    messages: async (run, ids) => (await run(viewSql(db.s), [ids])).map(messageView),
    intervene: (one, first) =>
      parts.intervene(one, (write) =>
        home.transaction(one.action, async ({ run }) => {
          await run(`select 1 from ${db.s}.dead_letter where id = $1::uuid for no key update`, [one.id]);
          await first(run);
          await write(run);
        }),
      ),
  };
  return home;
}

/** What the database's own fences refuse, in our code. */
function fenced(thrown: unknown): unknown {
  const { code, message } = (thrown ?? {}) as { code?: unknown; message?: unknown };
  const text = /^makegood: wrong_state: (.*)$/.exec(String(message))?.[1];
  return code === "23514" && text !== undefined ? new MakegoodError("wrong_state", text, {}, thrown) : thrown;
}
