/**
 * Which lanes the next claims name and how much of each: fairness, priority and limits as one pure function. Higher priority
 * goes first and ages; lanes of one level share equally by topic and tenant; a fifth of every round goes to those who
 * were served longest ago, so that none starves; suspects of a lost lease are claimed in small groups of their own; what failed before
 * gets a quarter of a round while others wait, and never more than half of the slots.
 */
import { LIMITS } from "../message/limits.ts";
import type { Suspicion } from "../message/message.ts";
import type { From } from "../store/store.ts";
import type { ProbeKind } from "./attempt.ts";
import { type Holder, waterFill } from "./water-fill.ts";

export interface PlanTenant {
  /** Claimed and not finished, and asked for. */
  readonly held: number;
  /** How many more it may have now, whatever it holds: what is left of its own rate; absent: it has none. */
  readonly allowance?: number | undefined;
}

export interface PlanTopic {
  readonly name: string;
  readonly leaseMs: number;
  readonly held: number;
  /** How many more it may have now: 0 while it is paused, disabled, held by its breaker or not served here. */
  readonly allowance: number;
  /** Null: half of what the topic may have while other tenants wait. */
  readonly tenantLimit: number | null;
}

export interface PlanLane {
  readonly lane: string;
  readonly topic: PlanTopic;
  readonly tenant: PlanTenant;
  readonly priority: number;
  readonly suspicion: Suspicion;
  /** Its messages failed before. */
  readonly retried: boolean;
  /** Monotonic moment its first message is due. */
  readonly dueMs: number;
  /** Monotonic moment it was last named in a claim. */
  readonly servedMs: number;
  /** How many it is likely to have: what is beyond goes first to lanes with more. */
  readonly demand: number;
}

export interface PlanInput<L extends PlanLane> {
  /** Only lanes that may be claimed from: due, and not already being emptied. */
  readonly lanes: readonly L[];
  readonly nowMs: number;
  /** How many messages this round may ask for. */
  readonly capacity: number;
  /** How many this worker holds at most: what half of it means for a tenant. */
  readonly total: number;
  /** How many run at once. */
  readonly slots: number;
  /** Held of those that failed before. */
  readonly retriedHeld: number;
  readonly carry: Carry;
  /** Claims of suspects that are not finished. */
  readonly suspectGroups: number;
  readonly suspectSingles: number;
}

/** Fractions left over from rounds before: of the fifth for those who were passed over, of the quarter for those that failed. */
export interface Carry {
  readonly aged: number;
  readonly retried: number;
}

export interface PlannedClaim<L> {
  readonly leaseMs: number;
  readonly suspicion: Suspicion;
  /** Of what a breaker holds, to see whether the receiver is back. */
  readonly probe?: ProbeKind;
  readonly lanes: { readonly lane: L; readonly limit: number; readonly from?: From }[];
}

export interface Plan<L> {
  readonly claims: PlannedClaim<L>[];
  readonly carry: Carry;
}

export const PLAN = {
  lanesMax: 200,
  /** With more lanes than a round can serve, each that is served is asked for about this many. */
  laneWorth: 4,
  lanesMin: 50,
  agedShare: 0.2,
  retriedShare: 0.25,
  retriedSlots: 0.5,
  suspectGroupSize: LIMITS.suspectGroupMax,
  suspectGroupsMax: 4,
  claimsMax: 4,
} as const;

/** What is left to give while a plan is made. */
interface Shares<L extends PlanLane> {
  readonly grants: Map<L, number>;
  readonly byTopic: Map<PlanTopic, number>;
  readonly byTenant: Map<PlanTenant, number>;
  readonly tenantCap: (lane: L) => number;
}

export function plan<L extends PlanLane>(input: PlanInput<L>): Plan<L> {
  const lanes = input.lanes.filter((lane) => lane.topic.allowance > 0);
  const trusted = lanes.filter(({ suspicion }) => suspicion === 0);
  const claims = planSuspects(suspectsInOrder(lanes, trusted, input.capacity), input);
  const used = claims.reduce((sum, claim) => sum + total(claim), 0);
  const capacity = Math.min(input.capacity, Number.MAX_SAFE_INTEGER) - used;
  if (capacity <= 0 || trusted.length === 0) return { claims, carry: input.carry };

  const fresh = trusted.filter(({ retried }) => !retried);
  const again = choose(
    trusted.filter(({ retried }) => retried),
    input.nowMs,
    capacity,
    false,
  );
  const quarter = fresh.length > 0 && again.all.length > 0 ? capacity * PLAN.retriedShare + input.carry.retried : 0;
  const fifth = fresh.length > 0 ? capacity * PLAN.agedShare + input.carry.aged : input.carry.aged;
  const aged = fresh.length > 0 ? Math.min(capacity, Math.floor(fifth)) : 0;
  const chosen = choose(fresh, input.nowMs, capacity, aged > 0);
  const all = [...chosen.all, ...again.all];
  const shares = startShares(all, input, claims);
  // What failed before first, because it is bounded; the lane that was served longest ago, whatever its priority.
  let left =
    capacity -
    giveByLevel(
      { levels: [again.all.sort(longestAgo)] },
      retriedRoom(input, fresh.length > 0 ? Math.floor(quarter) : capacity),
      shares,
    );
  // Then the fifth: the lane that was served longest ago, whatever its priority.
  left -= giveInOrder(chosen.aged, Math.min(left, aged), shares);
  giveByLevel(chosen, left, shares);
  claims.push(...byLease(all, shares));
  const carry = { aged: Math.min(1, fifth - aged), retried: Math.min(1, quarter - Math.floor(quarter)) };
  return { claims: claims.slice(0, PLAN.claimsMax), carry };
}

const longestAgo = (a: PlanLane, b: PlanLane): number => a.servedMs - b.servedMs || a.dueMs - b.dueMs;

/** Slots stay free for messages that never failed, whether or not some wait now: one that fails may take its whole time to. */
function retriedRoom<L extends PlanLane>({ slots, retriedHeld }: PlanInput<L>, amount: number): number {
  return Math.max(0, Math.min(amount, Math.ceil(slots * PLAN.retriedSlots) - retriedHeld));
}

/** By level; what the likely needs leave over goes round once more. Returns what was given. */
function giveByLevel<L extends PlanLane>({ levels }: Pick<Chosen<L>, "levels">, amount: number, shares: Shares<L>): number {
  let left = amount;
  for (const byDemand of [true, false]) {
    for (const level of levels) left -= share(level, left, shares, byDemand);
  }
  return amount - left;
}

const total = (claim: PlannedClaim<unknown>): number => claim.lanes.reduce((sum, { limit }) => sum + limit, 0);

/** How long a lane has been passed over. Not how long its first message waits: a flood would outrank everyone by its own length. */
function passedOverMs(lane: PlanLane, nowMs: number): number {
  return Math.max(0, Math.min(nowMs - lane.dueMs, nowMs - lane.servedMs));
}

interface Chosen<L> {
  readonly all: L[];
  /** Those below the best level, longest passed over first. */
  readonly aged: L[];
  /** Highest first. */
  readonly levels: L[][];
}

/**
 * At most `lanesMax` lanes for one claim, rotating: the best levels and, within a level, those served longest ago. Where so many wait that they
 * have to take turns anyway, fewer of them at a time: to reach into a lane costs as much as to deliver from it.
 */
function choose<L extends PlanLane>(lanes: readonly L[], nowMs: number, capacity: number, withAged: boolean): Chosen<L> {
  const worth = Math.max(PLAN.lanesMin, Math.ceil(capacity / PLAN.laneWorth));
  const lanesMax = lanes.length > PLAN.lanesMax ? Math.min(PLAN.lanesMax, worth) : PLAN.lanesMax;
  const ranked = lanes.map((lane) => {
    const age = passedOverMs(lane, nowMs);
    return { lane, age, level: lane.priority + Math.floor(age / 1_000) };
  });
  ranked.sort((a, b) => b.level - a.level || a.lane.servedMs - b.lane.servedMs || a.lane.dueMs - b.lane.dueMs);
  const agedMax = withAged ? Math.ceil(lanesMax * PLAN.agedShare) : 0;
  const best = ranked[0]?.level;
  const below = agedMax === 0 ? [] : ranked.filter(({ level }) => level !== best);
  const oldest = below.sort((a, b) => b.age - a.age).slice(0, agedMax);
  const keep = new Set(oldest);
  for (const one of ranked) {
    if (keep.size >= lanesMax) break;
    keep.add(one);
  }
  const levels = new Map<number, L[]>();
  for (const { lane, level } of ranked.filter((one) => keep.has(one))) {
    const group = levels.get(level);
    if (group) group.push(lane);
    else levels.set(level, [lane]);
  }
  return { all: [...keep].map(({ lane }) => lane), aged: oldest.map(({ lane }) => lane), levels: [...levels.values()] };
}

function startShares<L extends PlanLane>(
  lanes: readonly L[],
  input: PlanInput<L>,
  claims: readonly PlannedClaim<L>[],
): Shares<L> {
  const tenants = new Map<PlanTopic, Set<PlanTenant>>();
  for (const { topic, tenant } of lanes) {
    const known = tenants.get(topic);
    if (known) known.add(tenant);
    else tenants.set(topic, new Set([tenant]));
  }
  const tenantCap = ({ topic }: L): number => {
    if (topic.tenantLimit !== null) return topic.tenantLimit;
    if ((tenants.get(topic)?.size ?? 0) < 2) return Number.POSITIVE_INFINITY;
    return Math.max(1, Math.ceil(Math.min(input.total, topic.held + topic.allowance) / 2));
  };
  const shares: Shares<L> = { grants: new Map(), byTopic: new Map(), byTenant: new Map(), tenantCap };
  for (const { lane, limit } of claims.flatMap((claim) => claim.lanes)) spend(shares, lane, limit);
  return shares;
}

function spend<L extends PlanLane>({ grants, byTopic, byTenant }: Shares<L>, lane: L, amount: number): void {
  grants.set(lane, (grants.get(lane) ?? 0) + amount);
  byTopic.set(lane.topic, (byTopic.get(lane.topic) ?? 0) + amount);
  byTenant.set(lane.tenant, (byTenant.get(lane.tenant) ?? 0) + amount);
}

/** Lane by lane, and not by what topics and tenants hold: the first in line gets something whatever else its topic has. */
function giveInOrder<L extends PlanLane>(lanes: readonly L[], amount: number, shares: Shares<L>): number {
  const each = Math.max(1, Math.ceil(amount / Math.max(1, lanes.length)));
  let left = amount;
  for (const lane of lanes) {
    const ofTopic = lane.topic.allowance - (shares.byTopic.get(lane.topic) ?? 0);
    const ofTenant =
      Math.min(shares.tenantCap(lane) - lane.tenant.held, lane.tenant.allowance ?? Number.POSITIVE_INFINITY) -
      (shares.byTenant.get(lane.tenant) ?? 0);
    const limit = Math.min(left, each, lane.demand, ofTopic, ofTenant);
    if (limit <= 0) continue;
    left -= limit;
    spend(shares, lane, limit);
  }
  return amount - left;
}

/** Lanes of one topic, or of one tenant in it, as one holder. */
interface Group<K, L> extends Holder {
  readonly key: K;
  readonly lanes: L[];
}

/** Shares an amount between lanes: equally by topic, within it by tenant, within it by lane. Returns what was given. */
function share<L extends PlanLane>(lanes: readonly L[], amount: number, shares: Shares<L>, byDemand: boolean): number {
  if (amount <= 0 || lanes.length === 0) return 0;
  let given = 0;
  const demandOf = (lane: L): number => (byDemand ? Math.max(0, lane.demand - (shares.grants.get(lane) ?? 0)) : amount);
  const topics = groups(lanes, (lane) => lane.topic).map(([topic, ofTopic]) => {
    const tenants = groups(ofTopic, (lane) => lane.tenant).map(([tenant, ofTenant]): Group<PlanTenant, L> => {
      const given = shares.byTenant.get(tenant) ?? 0;
      const held = tenant.held + given;
      const cap = Math.max(
        0,
        Math.min(shares.tenantCap(ofTenant[0] as L) - held, (tenant.allowance ?? Number.POSITIVE_INFINITY) - given),
      );
      return { key: tenant, lanes: ofTenant, held, max: Math.min(cap, sum(ofTenant, demandOf)) };
    });
    const spent = shares.byTopic.get(topic) ?? 0;
    const max = Math.min(
      Math.max(0, topic.allowance - spent),
      sum(tenants, (tenant) => tenant.max),
    );
    return { held: topic.held + spent, max, tenants };
  });
  waterFill(topics, amount).forEach((forTopic, i) => {
    const tenants = topics[i]?.tenants ?? [];
    waterFill(tenants, forTopic).forEach((forTenant, j) => {
      const ofTenant = tenants[j]?.lanes ?? [];
      const holders = ofTenant.map((lane) => ({ held: 0, max: demandOf(lane) }));
      waterFill(holders, forTenant).forEach((limit, k) => {
        if (limit <= 0) return;
        given += limit;
        spend(shares, ofTenant[k] as L, limit);
      });
    });
  });
  return given;
}

function groups<L, K>(lanes: readonly L[], keyOf: (lane: L) => K): [K, L[]][] {
  const found = new Map<K, L[]>();
  for (const lane of lanes) {
    const group = found.get(keyOf(lane));
    if (group) group.push(lane);
    else found.set(keyOf(lane), [lane]);
  }
  return [...found];
}

function sum<T>(items: readonly T[], amountOf: (item: T) => number): number {
  let result = 0;
  for (const item of items) result += amountOf(item);
  return result;
}

/** One claim has one lease time; the claim with the best lane goes first. */
function byLease<L extends PlanLane>(lanes: readonly L[], { grants }: Shares<L>): PlannedClaim<L>[] {
  const granted = lanes.flatMap((lane) => (grants.get(lane) ? [{ lane, limit: grants.get(lane) as number }] : []));
  return groups(granted, ({ lane }) => lane.topic.leaseMs).map(([leaseMs, list]) => ({ leaseMs, suspicion: 0, lanes: list }));
}

/** With little room suspects and others take turns; otherwise suspects, who are few at a time, go first. */
function suspectsInOrder<L extends PlanLane>(lanes: readonly L[], trusted: readonly L[], capacity: number): L[] {
  const suspects = lanes.filter(({ suspicion }) => suspicion > 0);
  if (trusted.length === 0 || capacity > 2 * PLAN.suspectGroupSize) return suspects;
  const lastMs = trusted.reduce((latest, { servedMs }) => Math.max(latest, servedMs), Number.NEGATIVE_INFINITY);
  return suspects.filter(({ servedMs }) => servedMs < lastMs);
}

/**
 * A message that may have killed its worker is claimed with at most a few others, and alone after that: when it strikes
 * again, few or none are charged with it.
 */
function planSuspects<L extends PlanLane>(lanes: readonly L[], input: PlanInput<L>): PlannedClaim<L>[] {
  const claims: PlannedClaim<L>[] = [];
  const single = input.suspectSingles > 0 ? undefined : oldestFirst(lanes, 2)[0];
  const group = input.suspectGroups >= PLAN.suspectGroupsMax ? undefined : oldestFirst(lanes, 1)[0];
  // Where there is room for one of them, the one that was served longest ago has it: the same one each time would starve the other.
  const both = [single, group].filter((lane) => lane !== undefined).sort(longestAgo);
  for (const lane of both) {
    const given = claims[0]?.lanes[0];
    const ofTopic = given?.lane.topic === lane.topic ? given.limit : 0;
    const ofTenant = given?.lane.tenant === lane.tenant ? given.limit : 0;
    const size = lane === single ? 1 : PLAN.suspectGroupSize;
    const left = input.capacity - (given?.limit ?? 0);
    const limit = Math.min(left, size, lane.topic.allowance - ofTopic, tenantRoom(lane) - ofTenant);
    if (limit > 0) claims.push({ leaseMs: lane.topic.leaseMs, suspicion: lane.suspicion, lanes: [{ lane, limit }] });
  }
  return claims;
}

const tenantRoom = ({ topic, tenant }: PlanLane): number =>
  Math.min((topic.tenantLimit ?? Number.POSITIVE_INFINITY) - tenant.held, tenant.allowance ?? Number.POSITIVE_INFINITY);

function oldestFirst<L extends PlanLane>(lanes: readonly L[], suspicion: Suspicion): L[] {
  const found = lanes.filter((lane) => lane.suspicion === suspicion && tenantRoom(lane) > 0);
  return found.sort(longestAgo);
}
