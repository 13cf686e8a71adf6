/**
 * Keeps one worker to the limits that all workers of a store share: `ratePerSecond` and `tenantRatePerSecond` by starts that the store allots
 * a little ahead, `concurrencyTotal` by places that it lends for a time. What is not used goes back. A topic without such a limit costs
 * one comparison.
 */
import { errorText } from "../message/errors.ts";
import { type Bucket, bucketOf, takeFrom } from "../message/rate.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, within } from "../platform/clock.ts";
import type { UnderWay } from "../platform/under-way.ts";
import type { StartsWanted, TopicStore } from "../store/topics.ts";
import type { LaneEntry } from "./lanes.ts";
import type { Slots, Starts, TenantState, TopicState } from "./topic-state.ts";

export interface PacerOptions {
  readonly topicStore: Pick<TopicStore, "allot" | "occupy">;
  readonly owner: string;
  readonly clock: Clock;
  readonly events: Events;
  readonly concurrency: number;
  /** True: while the store that all share cannot be asked, this process keeps the limits by itself. */
  readonly alone: boolean;
  readonly nudge: () => void;
  readonly calls: UnderWay;
}

/** So much of a second's worth is asked for ahead; kept short, because what is held here may begin later than it was allotted. */
const AHEAD = 0.25;
const LAPSE_MS = 400;
/** How long to wait before asking again for what there was not. */
const AGAIN_MS = 100;
const SLOTS_AGAIN_MS = 500;
const FAILED_MS = 1_000;
const RENEW_MS = 3_000;
/** Places are granted for the longest attempt and this long; an attempt is only begun with this much more than it may take. */
const GRANTED_MS = 8_000;
const SPARE_MS = 2_000;
/** I10: buckets and topics in one call. */
const ASKED_MAX = 200;
const STOP_MS = 1_000;

interface Asking {
  readonly wanted: StartsWanted;
  /** Null: only gives back. */
  readonly starts: Starts | null;
}

export function hasLimits({ ratePerSecond, tenantRatePerSecond, concurrencyTotal }: TopicRecord): boolean {
  return ratePerSecond !== undefined || tenantRatePerSecond !== undefined || concurrencyTotal !== undefined;
}

export class Pacer {
  readonly #options: PacerOptions;
  /** Those with something that may lapse → how it goes back. */
  readonly #held = new Map<Starts, Omit<StartsWanted, "amount">>();
  readonly #slotted = new Set<TopicState>();
  /** While the store cannot be asked. */
  readonly #own = new Map<string, Bucket>();
  #allotting = false;
  #occupying = false;
  #back: StartsWanted[] = [];

  constructor(options: PacerOptions) {
    this.#options = options;
  }

  /** Cuts what these topics and tenants may have down to what is left of their limits, and asks for more. Returns when to come again. */
  limit(topics: Iterable<TopicState>, lanes: readonly LaneEntry[], nowMs: number): number {
    const limited = new Map<TopicState, TopicRecord>();
    for (const topic of topics) {
      const record = topic.entry?.record;
      if (record && (hasLimits(record) || topic.starts || topic.slots)) limited.set(topic, record);
    }
    if (limited.size === 0) return Number.POSITIVE_INFINITY;
    const asking: Asking[] = [];
    let dueMs = Number.POSITIVE_INFINITY;
    for (const [topic, record] of limited) {
      // Nothing waits here for a place: it would begin later than it was allotted.
      if (hasLimits(record)) topic.allowance = Math.min(topic.allowance, Math.max(0, topic.runningMax - topic.held));
      dueMs = Math.min(dueMs, this.#limitSlots(topic, record, nowMs), this.#limitTopic(topic, record, asking, nowMs));
    }
    for (const { topic, tenant, tenantId } of lanes) {
      const record = limited.get(topic);
      if (record) dueMs = Math.min(dueMs, this.#limitTenant(topic, record, tenant, tenantId, asking, nowMs));
    }
    for (const [topic, { ratePerSecond }] of limited) {
      if (ratePerSecond !== undefined)
        topic.allowance = Math.min(topic.allowance, Math.max(0, Math.floor(topic.starts?.left ?? 0)));
    }
    if (asking.length > 0) this.#allot(asking, nowMs);
    return dueMs;
  }

  /** Gives back what lapsed and keeps the places that are in use; to be called now and then. */
  keep(nowMs: number): void {
    for (const [starts, bucket] of this.#held) if (nowMs >= starts.lapseMs) this.#giveBack(starts, bucket);
    if (this.#back.length > 0 && !this.#allotting) this.#allot([], nowMs);
    if (this.#slotted.size === 0 || this.#occupying) return;
    const due = [...this.#slotted].filter(({ slots }) => slots && nowMs >= slots.renewMs);
    const wants = (topic: TopicState): number => Math.max(topic.held, topic.slots?.peak ?? 0);
    if (due.length > 0)
      this.#occupy(
        due.map((topic) => ({ topic, wants: wants(topic) })),
        nowMs,
      );
  }

  /** Everything goes back; not longer than a moment. */
  async stop(): Promise<void> {
    const { topicStore, owner, clock } = this.#options;
    for (const [starts, bucket] of this.#held) this.#giveBack(starts, bucket);
    const back = this.#back.splice(0).slice(0, ASKED_MAX);
    const slots = [...this.#slotted].map(({ name }) => ({ topic: name, total: 0, wants: 0 }));
    if (back.length + slots.length === 0) return;
    const calls = Promise.allSettled([topicStore.allot(merged(back)), topicStore.occupy(owner, slots, 0)]);
    await within(clock, calls, STOP_MS);
  }

  #limitTopic(topic: TopicState, record: TopicRecord, asking: Asking[], nowMs: number): number {
    const { ratePerSecond: perSecond } = record;
    if (perSecond === undefined) {
      topic.starts = null;
      return Number.POSITIVE_INFINITY;
    }
    topic.starts ??= noStarts();
    return this.#want(topic.starts, { topic: topic.name, perSecond }, topic.allowance, asking, nowMs);
  }

  #limitTenant(
    topic: TopicState,
    { tenantRatePerSecond: perSecond }: TopicRecord,
    tenant: TenantState,
    tenantId: string | null,
    asking: Asking[],
    nowMs: number,
  ): number {
    if (perSecond === undefined) {
      tenant.starts = null;
      tenant.allowance = undefined;
      return Number.POSITIVE_INFINITY;
    }
    tenant.starts ??= noStarts();
    const dueMs = this.#want(tenant.starts, { topic: topic.name, tenantId, perSecond }, topic.allowance, asking, nowMs);
    tenant.allowance = Math.max(0, Math.floor(tenant.starts.left));
    return dueMs;
  }

  /** Asks for more where less than one is left. `room`: how many could begin here. */
  #want(starts: Starts, bucket: Omit<StartsWanted, "amount">, room: number, asking: Asking[], nowMs: number): number {
    if (nowMs >= starts.lapseMs) this.#giveBack(starts, bucket);
    if (room < 1 || starts.left >= 1) return starts.left >= 1 ? starts.lapseMs : Number.POSITIVE_INFINITY;
    if (this.#allotting || asking.length >= ASKED_MAX) return Number.POSITIVE_INFINITY;
    if (nowMs < starts.askMs) return starts.askMs;
    // Two lanes of one tenant share a bucket, and a bucket is named once.
    starts.askMs = Number.POSITIVE_INFINITY;
    const amount = Math.ceil(Math.min(room, Math.max(1, bucket.perSecond * AHEAD))) - Math.min(0, Math.floor(starts.left));
    asking.push({ wanted: { ...bucket, amount }, starts });
    return Number.POSITIVE_INFINITY;
  }

  #giveBack(starts: Starts, bucket: Omit<StartsWanted, "amount">): void {
    this.#held.delete(starts);
    const amount = Math.floor(starts.left);
    if (amount < 1) return;
    starts.left -= amount;
    if (this.#back.length < ASKED_MAX) this.#back.push({ ...bucket, amount: -amount });
  }

  #allot(asking: readonly Asking[], nowMs: number): void {
    this.#allotting = true;
    const named = new Set(asking.map(({ wanted }) => nameOf(wanted)));
    // One bucket is named once in a call: what it gets back waits for the next one.
    const back = merged(this.#back.filter((one) => !named.has(nameOf(one))));
    this.#back = this.#back.filter((one) => named.has(nameOf(one)));
    const wanted = [...asking.map((one) => one.wanted), ...back];
    const done = this.#ask(wanted).then((allotted) => {
      const arrivedMs = this.#options.clock.monotonicMs();
      this.#allotting = false;
      for (const [i, { wanted: one, starts }] of asking.entries()) {
        if (!starts) continue;
        const { granted, nextInMs } = allotted?.[i] ?? { granted: 0, nextInMs: FAILED_MS };
        starts.left += granted;
        starts.lapseMs = arrivedMs + LAPSE_MS;
        starts.askMs = granted < one.amount ? arrivedMs + Math.max(nextInMs, AGAIN_MS) : nowMs;
        if (starts.left > 0) this.#held.set(starts, { topic: one.topic, tenantId: one.tenantId, perSecond: one.perSecond });
      }
      this.#options.nudge();
    });
    this.#options.calls.add(done);
  }

  async #ask(wanted: readonly StartsWanted[]) {
    const { topicStore, events, alone, clock } = this.#options;
    try {
      return await topicStore.allot(wanted);
    } catch (error) {
      if (!alone) {
        events.emit({ type: "store_error", during: "allot", error: errorText(error), consecutive: 1 });
        return null;
      }
    }
    return wanted.map((one) => {
      const { bucket, granted, nextInMs } = takeFrom(this.#own.get(nameOf(one)), one.perSecond, one.amount, clock.monotonicMs());
      this.#own.set(nameOf(one), bucket);
      return { granted, nextInMs };
    });
  }

  #limitSlots(topic: TopicState, { concurrencyTotal: total }: TopicRecord, nowMs: number): number {
    if (total === undefined) {
      // What is granted already ends by itself.
      topic.slots = null;
      this.#slotted.delete(topic);
      return Number.POSITIVE_INFINITY;
    }
    topic.slots ??= { granted: 0, untilMs: LONG_AGO, askMs: LONG_AGO, renewMs: nowMs + RENEW_MS, peak: 0 };
    this.#slotted.add(topic);
    const { slots } = topic;
    slots.peak = Math.max(slots.peak, topic.held);
    const wants = Math.min(total, topic.runningMax, this.#options.concurrency);
    const usable = nowMs + timeoutOf(topic) + SPARE_MS <= slots.untilMs;
    const room = topic.allowance;
    topic.allowance = usable ? Math.min(room, Math.max(0, slots.granted - topic.held)) : 0;
    const more = room > 0 && topic.allowance === 0 && (!usable || slots.granted < wants);
    if (!more || this.#occupying) return Number.POSITIVE_INFINITY;
    if (nowMs < slots.askMs) return slots.askMs;
    this.#occupy([{ topic, wants }], nowMs);
    return Number.POSITIVE_INFINITY;
  }

  #occupy(wanted: readonly { readonly topic: TopicState; readonly wants: number }[], nowMs: number): void {
    this.#occupying = true;
    const { topicStore, owner, clock, events, alone } = this.#options;
    const asked = wanted.slice(0, ASKED_MAX).map(({ topic, wants }) => {
      const slots = topic.slots as Slots;
      // Given up before it is asked for: nothing may begin in a place that another process gets.
      slots.granted = Math.min(slots.granted, wants);
      return { topic, slots, wants, total: topic.entry?.record.concurrencyTotal ?? 0 };
    });
    const ttlMs = GRANTED_MS + Math.max(...asked.map(({ topic }) => timeoutOf(topic)));
    const named = asked.map(({ topic, wants, total }) => ({ topic: topic.name, wants, total }));
    const done = topicStore
      .occupy(owner, named, ttlMs)
      .catch((error) => {
        if (alone) return named.map(({ wants, total }) => Math.min(wants, total));
        events.emit({ type: "store_error", during: "occupy", error: errorText(error), consecutive: 1 });
        return null;
      })
      .then((held) => {
        this.#occupying = false;
        const arrivedMs = clock.monotonicMs();
        for (const [i, { topic, slots, wants }] of asked.entries()) {
          slots.askMs = arrivedMs + (held === null ? FAILED_MS : (held[i] ?? 0) < wants ? SLOTS_AGAIN_MS : 0);
          slots.renewMs = arrivedMs + (held === null ? FAILED_MS : RENEW_MS);
          if (held === null) continue;
          slots.granted = held[i] ?? 0;
          slots.peak = topic.held;
          slots.untilMs = nowMs + ttlMs;
          // Nothing granted, nothing to keep.
          if (slots.granted === 0) this.#slotted.delete(topic);
        }
        this.#options.nudge();
      });
    this.#options.calls.add(done);
  }
}

const LONG_AGO = Number.NEGATIVE_INFINITY;

const noStarts = (): Starts => ({ left: 0, lapseMs: Number.POSITIVE_INFINITY, askMs: LONG_AGO });

const timeoutOf = ({ entry }: TopicState): number => entry?.timeoutMs ?? 0;

const nameOf = ({ topic, tenantId }: Omit<StartsWanted, "amount" | "perSecond">): string =>
  JSON.stringify([topic, bucketOf(tenantId)]);

/** Each bucket once. */
function merged(wanted: readonly StartsWanted[]): StartsWanted[] {
  const byName = new Map<string, StartsWanted>();
  for (const one of wanted) {
    const amount = one.amount + (byName.get(nameOf(one))?.amount ?? 0);
    byName.set(nameOf(one), { ...one, amount });
  }
  return [...byName.values()];
}
