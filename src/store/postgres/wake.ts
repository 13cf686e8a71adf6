/**
 * Wake hints: from this process at once, from others by LISTEN on a connection of its own. A NOTIFY in every commit would cost
 * concurrent producers two thirds of their rate, so the enqueue statement sends one only while some worker has said that it is
 * idle which does not hear of it here, and a process in which no worker asks for hints does not listen: each hint would wake it for
 * nothing. Hints may be lost; polling is the truth.
 */
import pg from "pg";
import type { Clock, Timer } from "../../platform/clock.ts";
import type { WakeHint } from "../store.ts";
import { type ConnectionOptions, clientConfig } from "./connection.ts";
import type { Db } from "./db.ts";
import { channelName } from "./migrations/0002-enqueue-function.ts";

/** An idle mark outlives a lost worker by this much at most. */
const IDLE_MS = 60_000;
const RENEW_MS = 20_000;
const RECONNECT_MS = 1_000;
/** A worker that begins with a backlog has better use for its first connections; one that finds nothing listens at once. */
const LISTEN_AFTER_MS = 1_000;

export interface Wake {
  on(listener: (hint: WakeHint) => void): () => void;
  /** Tells this process only. */
  local(hint: WakeHint): void;
  /** Tells the others that a topic changed. */
  topics(): void;
  idle(owner: string, waiting: boolean): Promise<void>;
  /** From now on workers that ask for hints get those of other processes, where a direct connection allows it. */
  open(): void;
  close(): Promise<void>;
}

export function createWake(db: Db, options: ConnectionOptions, clock: Clock): Wake {
  const listeners = new Set<(hint: WakeHint) => void>();
  const channel = channelName(db.s);
  const marked = new Map<string, number>();
  let marking: Promise<void> = Promise.resolve();
  let client: pg.Client | undefined;
  let timer: Timer | undefined;
  let opened = false;
  let closed = false;
  let listening: Promise<void> | undefined;
  let beginning: Timer | undefined;

  const tell = (hint: WakeHint) => {
    for (const listener of listeners) {
      try {
        listener(hint);
      } catch {
        // A hint is only a hint: a listener that breaks must not fail the enqueue that gave it.
      }
    }
  };

  async function listen(): Promise<void> {
    if (closed || !db.connection.direct) return;
    // No query_timeout here: this connection's whole work is to wait. Keep-alive finds a dead peer.
    const fresh = new pg.Client({ ...clientConfig(options), query_timeout: undefined, application_name: "makegood listen" });
    const lost = () => {
      if (client === fresh) client = undefined;
      fresh.removeAllListeners("end");
      void fresh.end().catch(() => {});
      if (!closed && !client) timer = clock.after(RECONNECT_MS, () => void listen(), true);
    };
    fresh.on("error", lost);
    fresh.on("end", lost);
    fresh.on("notification", ({ payload = "", processId }) => {
      // This process has heard of its own commits already.
      if (db.connection.isOwn(processId)) return;
      tell(payload === "topics" ? { kind: "topics" } : { kind: "work", lane: payload === "" ? null : payload });
    });
    try {
      await fresh.connect();
      await fresh.query(`listen "${channel}"`);
      client = fresh;
      // What happened while no connection listened is found by looking.
      tell({ kind: "topics" });
      tell({ kind: "work", lane: null });
    } catch {
      lost();
    }
  }

  const named = () => {
    db.idle.literal = `{${[...marked.keys()].map((owner) => JSON.stringify(owner)).join(",")}}`;
  };

  /** Writes the mark, or takes it away; what could not be written is not taken for written. */
  async function mark(owner: string, waiting: boolean): Promise<void> {
    const since = marked.get(owner);
    const now = clock.monotonicMs();
    if (closed || (waiting ? since !== undefined && now - since < RENEW_MS : since === undefined)) return;
    if (!waiting) {
      marked.delete(owner);
      named();
      await db.connection.rows("stop waiting", `delete from ${db.s}.waiter where owner = $1`, [owner]);
      return;
    }
    // Perhaps there, until the answer comes: to be taken away, and to be written again.
    marked.set(owner, Number.NEGATIVE_INFINITY);
    named();
    await db.connection.rows(
      "wait for work",
      `insert into ${db.s}.waiter (owner, until) values ($1, statement_timestamp() + $2::int * interval '1 ms') on conflict (owner) do update set until = excluded.until`,
      [owner, IDLE_MS],
    );
    marked.set(owner, now);
    // What was committed before the mark was seen is found by one more look.
    tell({ kind: "work", lane: null });
  }

  function begin(): Promise<void> {
    beginning?.cancel();
    listening ??= listen();
    return listening;
  }
  const soon = () => {
    if (!listening) beginning ??= clock.after(LISTEN_AFTER_MS, () => void begin(), true);
  };

  return {
    on(listener) {
      listeners.add(listener);
      if (opened) soon();
      return () => listeners.delete(listener);
    },
    local: tell,
    topics() {
      tell({ kind: "topics" });
      void db.connection.rows("notify", "select pg_notify($1, 'topics')", [channel]).catch(() => {});
    },
    async idle(owner, waiting) {
      if (!client) await begin();
      if (!client) return;
      // One after the other: on two connections the later write might come first, and a worker that waits would have no mark.
      const mine = marking.then(() => mark(owner, waiting));
      marking = mine.catch(() => {});
      return mine;
    },
    open() {
      opened = true;
      if (listeners.size > 0) soon();
    },
    async close() {
      closed = true;
      beginning?.cancel();
      timer?.cancel();
      for (const owner of marked.keys()) {
        await db.connection.rows("stop waiting", `delete from ${db.s}.waiter where owner = $1`, [owner]).catch(() => {});
      }
      const old = client;
      client = undefined;
      await old?.end().catch(() => {});
    },
  };
}
