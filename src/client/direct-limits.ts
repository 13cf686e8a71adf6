/**
 * deliver()'s direct try keeps to the limits that all workers share: it takes one start and one place like any attempt, and is not made where
 * there is none at once. While the store that counts them cannot be asked, this process keeps the rate by itself.
 */
import { type Bucket, bucketOf, takeFrom } from "../message/rate.ts";
import { type Clock, within } from "../platform/clock.ts";
import type { StartsWanted, TopicStore } from "../store/topics.ts";
import type { TopicEntry } from "../topic/topic-table.ts";
import { hasLimits } from "../worker/pacer.ts";
import type { Obstacle } from "./direct-attempt.ts";

/** `leave` is called when the try is over. */
export type Entered = { readonly obstacle: Obstacle } | { readonly obstacle: null; readonly leave: () => void };

export interface DirectLimits {
  /** Null: the topic has no such limit. */
  enter(entry: TopicEntry, tenantId: string | null, timeoutMs: number): Promise<Entered> | null;
}

/** A store that takes longer is one that cannot be asked. */
const ASK_MS = 300;
const PLACE_MS = 5_000;

export function createDirectLimits(topicStore: Pick<TopicStore, "allot" | "occupy">, owner: string, clock: Clock): DirectLimits {
  const own = new Map<string, Bucket>();
  let entered = 0;

  async function allot(wanted: readonly StartsWanted[]): Promise<number[]> {
    const asked = await within(clock, topicStore.allot(wanted), ASK_MS).catch(() => null);
    if (asked) return asked.map(({ granted }) => granted);
    return wanted.map((one) => {
      const name = JSON.stringify([one.topic, bucketOf(one.tenantId)]);
      const { bucket, granted } = takeFrom(own.get(name), one.perSecond, one.amount, clock.monotonicMs());
      own.set(name, bucket);
      return granted;
    });
  }

  async function enter(entry: TopicEntry, tenantId: string | null, timeoutMs: number): Promise<Entered> {
    const { ratePerSecond, tenantRatePerSecond, concurrencyTotal: total } = entry.record;
    const topic = entry.name;
    const wanted: StartsWanted[] = [];
    if (ratePerSecond !== undefined) wanted.push({ topic, perSecond: ratePerSecond, amount: 1 });
    if (tenantRatePerSecond !== undefined) wanted.push({ topic, tenantId, perSecond: tenantRatePerSecond, amount: 1 });
    const granted = await allot(wanted);
    const back = (): void => {
      const unused = wanted.filter((_, i) => (granted[i] ?? 0) > 0).map((one) => ({ ...one, amount: -1 }));
      if (unused.length > 0) void topicStore.allot(unused).catch(() => {});
    };
    if (granted.includes(0)) {
      back();
      return no("rate_limited", `the topic begins ${ratePerSecond ?? tenantRatePerSecond} attempts a second, and its turn comes`);
    }
    if (total === undefined) return { obstacle: null, leave: () => {} };
    const me = `${owner}-${++entered}`;
    const occupy = (wants: number) => topicStore.occupy(me, [{ topic, total, wants }], timeoutMs + PLACE_MS);
    const held = await within(clock, occupy(1), ASK_MS).catch(() => null);
    const leave = (): void => void occupy(0).catch(() => {});
    if (held?.[0] === 1) return { obstacle: null, leave };
    back();
    leave();
    return no("concurrency_limited", `as many attempts of the topic run as may at once (${total})`);
  }

  return { enter: (entry, tenantId, timeoutMs) => (hasLimits(entry.record) ? enter(entry, tenantId, timeoutMs) : null) };
}

const no = (code: string, error: string): Entered => ({ obstacle: { code, error } });
