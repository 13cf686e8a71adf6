/**
 * What all workers share of a topic's rate and of its places, in Redis: a hash for each bucket, which goes away by itself, and one for the
 * owners of a topic's places.
 */
import { BUCKET_KEPT_MS, bucketOf, burstOf } from "../../message/rate.ts";
import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";
import { ALLOT, OCCUPY } from "./scripts/allot.ts";

/** A caller may be this late because it waited; later than that, a clock was set back. */
const LATE_MS = 1_000;

export function createAllot(db: Db): Pick<TopicStore, "allot" | "occupy"> {
  return {
    async allot(wanted, at) {
      if (wanted.length === 0) return [];
      const keys = wanted.map(({ topic, tenantId }) => db.keys.key(`a:${topic}\u0000${bucketOf(tenantId)}`));
      const each = wanted.flatMap(({ perSecond, amount }) => [perSecond, burstOf(perSecond), amount]);
      const reply = (await db.run(ALLOT, keys, [BUCKET_KEPT_MS, LATE_MS, ...each], at)) as string[];
      return wanted.map((_, n) => ({ granted: Number(reply[2 * n]), nextInMs: Number(reply[2 * n + 1]) }));
    },
    async occupy(owner, wanted, ttlMs, at) {
      if (wanted.length === 0) return [];
      const keys = wanted.map(({ topic }) => db.keys.key(`c:${topic}`));
      const each = wanted.flatMap(({ total, wants }) => [total, wants]);
      return (await db.run(OCCUPY, keys, [owner, ttlMs, ...each], at)) as number[];
    },
  };
}
