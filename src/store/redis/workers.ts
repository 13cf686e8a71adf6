/**
 * What workers say of themselves, in Redis: a hash of notes, and a sorted set of when each is past its time.
 */
import { silent, type WorkerNote } from "../../message/worker-note.ts";
import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";
import { ANNOUNCE_WORKER, READ_WORKERS } from "./scripts/workers.ts";

export function createWorkers(db: Db): Pick<TopicStore, "announce" | "workers"> {
  const keys = ["workers", "workers:until"].map(db.keys.key);
  return {
    async announce({ owner, ...note }, ttlMs, at) {
      await db.run(ANNOUNCE_WORKER, keys, [owner, JSON.stringify(note), ttlMs], at);
    },
    async workers(at) {
      const rows = (await db.run(READ_WORKERS, keys, [], at)) as [string, string][];
      return rows.map(([owner, note]) => (note === "" ? silent(owner) : ({ owner, ...JSON.parse(note) } as WorkerNote)));
    },
  };
}
