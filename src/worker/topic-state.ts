/**
 * What one worker knows of a topic beside its record: how much of it is held here, how fast its sink answers, and from
 * that how many more messages it may have. A topic with a slow sink leaves slots to the others, always.
 */
import type { TopicEntry } from "../topic/topic-table.ts";
import type { Breaker } from "./breaker/breaker.ts";
import type { PlanTenant, PlanTopic } from "./plan.ts";

/** One slot is freed so seldom that others would feel it: above this, a topic may not take them all. */
const SLOW_MS = 1_000;
/** What waits here is to begin within about this: a claim for many costs the store little more than one for few. */
const AHEAD_MS = 100;
const HELD_PER_RUNNING_MAX = 16;
/** What was found out about a topic that stands still holds this long: nobody hears of it when its rest is over. */
export const SHUT_MS = 10_000;
/** Of a tenant: above one that failed, below any moment at which one went through. */
export const NEVER_SEEN = 0;

/** Starts that were allotted to this worker and not used yet. */
export interface Starts {
  /** Below 0: more was begun than was allotted (a probe), and is owed. */
  left: number;
  /** Monotonic: what is left by then goes back. */
  lapseMs: number;
  /** Monotonic: asked for again then at the earliest. */
  askMs: number;
}

/** Places that this worker has of a topic's over all processes. */
export interface Slots {
  granted: number;
  /** Monotonic: until when they are its own. */
  untilMs: number;
  askMs: number;
  /** Monotonic: they are asked for again then, to be kept. */
  renewMs: number;
  /** The most that was held since then: what is beyond goes back. */
  peak: number;
}

/** A claim asks for so many, or gives back what did not come. */
export function spend(topic: TopicState, tenant: TenantState, amount: number): void {
  if (topic.starts) topic.starts.left -= amount;
  if (tenant.starts) tenant.starts.left -= amount;
}

export interface TenantState extends PlanTenant {
  held: number;
  running: number;
  /** Lanes that count towards it; with none, and nothing held, it may be forgotten. */
  lanes: number;
  allowance: number | undefined;
  /** What this worker has of the tenant's rate; null: it has none. */
  starts: Starts | null;
  /** Monotonic: when a message of it last went through here. NEVER_SEEN: nothing was tried; -Infinity: it failed since. */
  livedMs: number;
}

export interface TopicState extends PlanTopic {
  readonly breaker: Breaker;
  /** Null: the store does not know it (any more). */
  entry: TopicEntry | null;
  /** Whether this worker's patterns choose it. */
  readonly chosen: boolean;
  readonly tenants: Map<string | null, TenantState>;
  leaseMs: number;
  held: number;
  running: number;
  /** How many attempts of it, and of one tenant in it, may run at once. */
  runningMax: number;
  tenantRunningMax: number;
  /** NaN: not known yet. */
  allowance: number;
  /** Monotonic: until then it counts as standing still, but for a probe: paused, disabled, not served here, held by its breaker. */
  shutUntilMs: number;
  tenantLimit: number | null;
  /** What this worker has of the topic's rate and of its places over all processes; null: there is no such limit. */
  starts: Starts | null;
  slots: Slots | null;
  /** A moving average of attempts' durations; NaN before the first. */
  paceMs: number;
  slow: boolean;
}

export function createTopicState(name: string, chosen: boolean, breaker: Breaker): TopicState {
  return {
    name,
    breaker,
    entry: null,
    chosen,
    tenants: new Map(),
    leaseMs: 0,
    held: 0,
    running: 0,
    runningMax: Number.POSITIVE_INFINITY,
    tenantRunningMax: Number.POSITIVE_INFINITY,
    allowance: Number.NaN,
    shutUntilMs: Number.NEGATIVE_INFINITY,
    tenantLimit: null,
    starts: null,
    slots: null,
    paceMs: Number.NaN,
    // Until it has shown otherwise: a first batch must not fill every slot with what turns out to take ten seconds.
    slow: true,
  };
}

/** Takes the topic's entry and its limits over. */
export function useEntry(topic: TopicState, entry: TopicEntry | undefined): void {
  topic.entry = entry ?? topic.entry;
  if (!topic.entry) return;
  const { leaseMs, concurrency, tenantConcurrency } = topic.entry.record;
  topic.leaseMs = leaseMs;
  topic.runningMax = Math.min(concurrency ?? Number.POSITIVE_INFINITY, topic.entry.rest.room);
  topic.tenantRunningMax = tenantConcurrency ?? Number.POSITIVE_INFINITY;
}

/** Something about it changed: what it may have is found out again. */
export function lookAgain(topic: TopicState): void {
  topic.allowance = Number.NaN;
  topic.shutUntilMs = Number.NEGATIVE_INFINITY;
}

/** How many are held for each that may run: a fast sink should find the next ones waiting, a slow one need not. */
function heldPerRunning(topic: TopicState): number {
  if (topic.slow) return 1;
  return Math.max(2, Math.min(HELD_PER_RUNNING_MAX, 1 + Math.floor(AHEAD_MS / topic.paceMs)));
}

/** With every slot busy and more waiting here, each that ends would fetch one: a claim waits until it is worth its way. */
export function isWellSupplied(topic: TopicState): boolean {
  const { running, runningMax, held } = topic;
  if (running < runningMax || held <= running) return false;
  return held * 4 > 3 * runningMax * heldPerRunning(topic);
}

export function tenantOf(topic: TopicState, tenantId: string | null): TenantState {
  let tenant = topic.tenants.get(tenantId);
  if (!tenant) {
    tenant = { held: 0, running: 0, lanes: 0, allowance: undefined, starts: null, livedMs: NEVER_SEEN };
    topic.tenants.set(tenantId, tenant);
  }
  return tenant;
}

/** Nothing of it is known or held here any more: tenants come and go, what is kept of them must not grow. */
export function forgetTenant(topic: TopicState, tenantId: string | null, tenant: TenantState): void {
  if (tenant.lanes === 0 && tenant.held === 0 && topic.tenants.get(tenantId) === tenant) topic.tenants.delete(tenantId);
}

export function paced(topic: TopicState, durationMs: number): void {
  topic.paceMs = Number.isNaN(topic.paceMs) ? durationMs : topic.paceMs + (durationMs - topic.paceMs) / 8;
  topic.slow = topic.paceMs > SLOW_MS;
}

/** Attempts that have not answered yet say as much as those that have. */
export function stillRunning(topic: TopicState, forMs: number): void {
  if (forMs > SLOW_MS) topic.slow = true;
}

/** Whether anything of the topic may be attempted here now, if its breaker lets it. */
export function isServed(topic: TopicState, nowMs: number): boolean {
  const entry = topic.entry;
  if (!topic.chosen || !entry || entry.gone) return false;
  const { paused, disabledReason } = entry.record;
  return !paused && disabledReason === null && nowMs >= entry.rest.untilMs;
}

/** Whether a message of this tenant may be started; `probe`: although its breaker holds it. */
export function mayStart(topic: TopicState, tenantId: string | null, probe: boolean, nowMs: number): boolean {
  return isServed(topic, nowMs) && (probe || topic.breaker.heldAs(tenantId) === undefined);
}

/** How many messages one tenant may hold; null: the plan's own half. */
export function tenantLimitOf(topic: TopicState): number | null {
  return Number.isFinite(topic.tenantRunningMax) ? topic.tenantRunningMax * heldPerRunning(topic) : null;
}

export interface Load {
  readonly concurrency: number;
  /** Held over all slow topics. */
  readonly slowHeld: number;
  /** How many slow topics ask in this round. */
  readonly slowAsking: number;
  /** How many topics are served here, of the on-demand ones those that have something now. */
  readonly served: number;
  /** Whether there are others that may have something at any time. */
  readonly more: boolean;
}

/** How many more messages a topic may have, before tenants and capacity are looked at. */
export function allowanceOf(topic: TopicState, hasSink: boolean, nowMs: number, load: Load): number {
  if (!hasSink || !isServed(topic, nowMs)) return 0;
  if (topic.entry?.rest.why) return topic.held === 0 ? 1 : 0;
  if (isWellSupplied(topic)) return 0;
  const room = topic.runningMax * heldPerRunning(topic) - topic.held;
  if (!topic.slow) return Math.max(0, room);
  // All slots are its own, and none of it waits here for one: another topic gets the next that is free.
  if (load.served < 2) return Math.max(0, load.more ? Math.min(room, load.concurrency - load.slowHeld) : room);
  // Never more than slow topics leave free: one of them gets half of the slots, two get a third each, and some always stay free.
  const slots = Math.floor((load.concurrency - load.slowHeld - topic.held) / (load.slowAsking + 1));
  return Math.max(0, Math.min(room, Math.max(slots, topic.held === 0 ? 1 : 0)));
}
