/**
 * Takes over entries whose consumer has died. Each is taken only once it has been idle as long as its own backoff asks (REC-40:
 * base × 2^n after n takeovers, capped), the walk through the pending list remembers where it stopped (DR-10), what is taken is
 * returned to be worked on (DR-8), and the server itself counts how often an entry was taken over, so no counter has to be
 * cleaned up (DR-42).
 */
import { MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import { backoffMs } from "../../../platform/backoff.ts";
import { type PendingEntry, type StreamEntry, toEntries, toPending } from "./entries.ts";
import type { Group } from "./group.ts";

export interface ReclaimRules {
  /** An entry that was idle for less than this is never taken over; default 60,000. */
  readonly reclaimIdleMs: number;
  /** What the backoff begins with and doubles; default: as reclaimIdleMs. */
  readonly reclaimBaseMs: number;
  /** Takeovers of one entry before it is quarantined; default 3. */
  readonly reclaimsMax: number;
  /** Default 24 h. */
  readonly reclaimIdleMsMax: number;
}

export const RECLAIM_DEFAULTS = { reclaimIdleMs: 60_000, reclaimsMax: 3, reclaimIdleMsMax: 86_400_000 } as const;

export interface Taken {
  readonly entry: StreamEntry;
  readonly deliveries: number;
  /** It was taken over more often than allowed: it kills the consumers that work on it. */
  readonly exhausted: boolean;
}

export interface Sweep {
  readonly taken: readonly Taken[];
  /** Pending, but no longer in the stream: cut off or deleted by another client. */
  readonly lost: readonly string[];
  /** Idle, but not yet as long as their backoff asks. */
  readonly deferred: number;
  /** Something was left for the next sweep, which need not wait. */
  readonly more: boolean;
}

const PAGE = 100;
const PAGES_MAX = 10;

/** How long an entry that was taken over `reclaims` times must be idle before the next one. */
export function reclaimBackoffMs(rules: ReclaimRules, reclaims: number): number {
  const waitMs = backoffMs({ firstMs: rules.reclaimBaseMs, maxMs: rules.reclaimIdleMsMax }, reclaims + 1);
  return Math.max(rules.reclaimIdleMs, waitMs);
}

/** How long an entry that kills its consumers waits in all before it is quarantined: every takeover, and the one that ends it. */
export function reclaimSpanMs(rules: ReclaimRules): number {
  let sumMs = 0;
  for (let reclaims = 0; reclaims <= rules.reclaimsMax; reclaims++) sumMs += reclaimBackoffMs(rules, reclaims);
  return sumMs;
}

/** CON-27: limit, base and cap must make sense together before the first entry is held up over them. */
export function checkReclaim(given: Partial<ReclaimRules>): ReclaimRules {
  const reclaimIdleMs = given.reclaimIdleMs ?? RECLAIM_DEFAULTS.reclaimIdleMs;
  const rules: ReclaimRules = {
    reclaimIdleMs,
    reclaimBaseMs: given.reclaimBaseMs ?? reclaimIdleMs,
    reclaimsMax: given.reclaimsMax ?? RECLAIM_DEFAULTS.reclaimsMax,
    reclaimIdleMsMax: given.reclaimIdleMsMax ?? RECLAIM_DEFAULTS.reclaimIdleMsMax,
  };
  const problems: string[] = [];
  if (!(rules.reclaimIdleMs >= 1)) problems.push("reclaimIdleMs must be at least 1");
  if (!(rules.reclaimBaseMs >= 1)) problems.push("reclaimBaseMs must be at least 1");
  if (!(Number.isInteger(rules.reclaimsMax) && rules.reclaimsMax >= 0 && rules.reclaimsMax <= LIMITS.attemptsMax))
    problems.push(`reclaimsMax must be a whole number from 0 to ${LIMITS.attemptsMax}`);
  if (!(rules.reclaimIdleMsMax >= rules.reclaimIdleMs)) problems.push("reclaimIdleMsMax must not be below reclaimIdleMs");
  if (!(rules.reclaimIdleMsMax >= rules.reclaimBaseMs)) problems.push("reclaimIdleMsMax must not be below reclaimBaseMs");
  if (problems.length > 0) throw new MakegoodError("invalid_config", problems.join("; "), { problems });
  return rules;
}

export function createTakeover(group: Group, me: string, rules: ReclaimRules) {
  const { redis, stream } = group;
  const name = group.group;
  let cursor = "-";

  const pendingPage = async (filter: readonly string[], from: string, consumer: readonly string[] = []) =>
    toPending(await redis.send(stream, ["XPENDING", stream, name, ...filter, from, "+", String(PAGE), ...consumer]));

  /** XCLAIM checks idleness again, so of two that sweep at once one gets the entry. `count`: what its delivery count becomes. */
  async function take(wanted: readonly PendingEntry[], idleMs: number, count: number): Promise<Pick<Sweep, "taken" | "lost">> {
    const ids = wanted.map(({ id }) => id);
    const args = ["XCLAIM", stream, name, me, String(idleMs), ...ids, "RETRYCOUNT", String(count)];
    const entries = toEntries(await redis.send(stream, args));
    const exhausted = count > rules.reclaimsMax + 1;
    const taken = entries.map((entry) => ({ entry, deliveries: count, exhausted }));
    const got = new Set(entries.map(({ id }) => id));
    const lost: string[] = [];
    for (const id of ids.filter((one) => !got.has(one))) if (await isGone(id)) lost.push(id);
    return { taken, lost };
  }

  /** Not taken: either another consumer was faster, or there is nothing left to take. */
  async function isGone(id: string): Promise<boolean> {
    if (toEntries(await redis.send(stream, ["XRANGE", stream, id, id])).length > 0) return false;
    await redis.send(stream, ["XACK", stream, name, id]);
    return true;
  }

  /** `idleOf`: how idle an entry of that delivery count must be; `step`: what the takeover adds to the count. */
  async function takeAll(wanted: readonly PendingEntry[], idleOf: (deliveries: number) => number, step: number) {
    const taken: Taken[] = [];
    const lost: string[] = [];
    for (const deliveries of new Set(wanted.map((one) => one.deliveries))) {
      const same = wanted.filter((one) => one.deliveries === deliveries);
      const found = await take(same, idleOf(deliveries), deliveries + step);
      taken.push(...found.taken);
      lost.push(...found.lost);
    }
    return { taken, lost };
  }

  return {
    /** What died consumers left, as far as its backoff has passed; at most `limit`. */
    async sweep(limit: number): Promise<Sweep> {
      let deferred = 0;
      for (let page = 0; page < PAGES_MAX; page++) {
        const idle = await pendingPage(["IDLE", String(rules.reclaimIdleMs)], cursor);
        const others = idle.filter(({ consumer }) => consumer !== me);
        const ripe = others.filter((one) => one.idleMs >= reclaimBackoffMs(rules, one.deliveries - 1));
        deferred += others.length - ripe.length;
        if (ripe.length > 0) {
          const wanted = choose(ripe, limit);
          const found = await takeAll(wanted, (deliveries) => reclaimBackoffMs(rules, deliveries - 1), 1);
          return { ...found, deferred, more: wanted.length < ripe.length || idle.length === PAGE };
        }
        const last = idle.at(-1);
        cursor = idle.length === PAGE && last ? `(${last.id}` : "-";
        if (cursor === "-") break;
      }
      return { taken: [], lost: [], deferred, more: false };
    },

    /**
     * What is pending under this name and not held. At the start it is what an earlier run left (`crashed`, counted
     * as a takeover); later it is what was read on a connection that broke before the answer came.
     */
    async own(holding: ReadonlySet<string>, limit: number, crashed: boolean): Promise<Sweep> {
      let from = "-";
      for (let page = 0; page < PAGES_MAX; page++) {
        const mine = await pendingPage([], from, [me]);
        const free = mine.filter(({ id }) => !holding.has(id));
        if (free.length > 0) {
          const wanted = choose(free, limit);
          const found = await takeAll(wanted, () => 0, crashed ? 1 : 0);
          return { ...found, deferred: 0, more: wanted.length < free.length || mine.length === PAGE };
        }
        const last = mine.at(-1);
        if (mine.length < PAGE || !last) break;
        from = `(${last.id}`;
      }
      return { taken: [], lost: [], deferred: 0, more: false };
    },
  };
}

/**
 * An entry that was taken over before may be what kills its consumers: it is taken alone, so that no other entry is
 * charged for its company. One that is taken over for the first time comes with its batch.
 */
function choose(candidates: readonly PendingEntry[], limit: number): readonly PendingEntry[] {
  const suspect = candidates.find(({ deliveries }) => deliveries > 1);
  return suspect ? [suspect] : candidates.slice(0, limit);
}
