/**
 * Wake hints: from this process at once, from others by publish and subscribe. A script publishes only while some worker has
 * said that it is idle, by a mark that goes away by itself. Hints may be lost; polling is the truth.
 */
import type { WakeHint } from "../store.ts";
import type { Db } from "./db.ts";

/** An idle mark outlives a lost worker by this much at most. */
const IDLE_MS = 60_000;
const RENEW_MS = 20_000;

export interface Wake {
  on(listener: (hint: WakeHint) => void): () => void;
  /** Tells this process only. */
  local(hint: WakeHint): void;
  idle(owner: string, waiting: boolean): Promise<void>;
  /** True when hints of others will be heard. */
  open(): Promise<boolean>;
  close(): Promise<void>;
}

export function createWake(db: Db): Wake {
  const listeners = new Set<(hint: WakeHint) => void>();
  const marked = new Map<string, number>();
  const waiters = db.keys.key("waiters");
  let end: (() => Promise<void>) | undefined;

  const tell = (hint: WakeHint): void => {
    for (const listener of listeners) {
      try {
        listener(hint);
      } catch {
        // A hint is only a hint: a listener that breaks must not fail the call that gave it.
      }
    }
  };

  const heard = (message: string): void => {
    const space = message.indexOf(" ");
    // This process has heard its own hints already.
    if (message.slice(0, space) === db.instance) return;
    const lane = message.slice(space + 1);
    tell(lane === "topics" ? { kind: "topics" } : { kind: "work", lane: lane === "" ? null : lane });
  };

  return {
    on(listener) {
      // A wrapper of its own for each call, so that a listener added twice is removed once.
      const own: typeof listener = (hint) => listener(hint);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    local: tell,
    async idle(owner, waiting) {
      const since = marked.get(owner);
      const now = db.clock.monotonicMs();
      if (waiting && since !== undefined && now - since < RENEW_MS) return;
      if (!waiting && since === undefined) {
        db.port();
        return;
      }
      if (!waiting) {
        marked.delete(owner);
        await db.command("stop waiting", waiters, ["HDEL", waiters, owner], true);
        return;
      }
      await db.command("wait for work", waiters, ["HSET", waiters, owner, "1"], true);
      await db.command("wait for work", waiters, ["PEXPIRE", waiters, String(IDLE_MS)], true);
      marked.set(owner, now);
      // What was enqueued before the mark was seen is found by one more look.
      tell({ kind: "work", lane: null });
    },
    async open() {
      try {
        end ??= await db.port().subscribe(db.keys.channel, heard);
        return true;
      } catch {
        return false;
      }
    },
    async close() {
      for (const owner of marked.keys()) {
        await db.command("stop waiting", waiters, ["HDEL", waiters, owner], true).catch(() => {});
      }
      marked.clear();
      listeners.clear();
      await end?.();
    },
  };
}
