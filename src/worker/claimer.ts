/**
 * Where a claim is made: turns a plan into store.claim calls, keeps count of what is asked for, and takes in what came.
 * Two rounds may be under way at once, so that the way to the store and the work overlap; the bytes that are held and
 * asked for are bounded, whatever the number of messages.
 */
import { LIMITS } from "../message/limits.ts";
import type { ClaimedMessage } from "../message/message.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { WorkStore } from "../store/store.ts";
import { Attempt } from "./attempt.ts";
import type { LaneEntry, LaneTable } from "./lanes.ts";
import type { LeaseTable } from "./leases.ts";
import { type Carry, type PlannedClaim, plan } from "./plan.ts";
import type { Prefetch } from "./prefetch.ts";
import type { Runner } from "./runner.ts";
import type { Settler } from "./settler.ts";
import type { StoreHealth } from "./store-health.ts";
import { spend } from "./topic-state.ts";

export interface ClaimerOptions {
  readonly store: WorkStore;
  readonly owner: string;
  readonly clock: Clock;
  readonly events: Events;
  readonly lanes: LaneTable;
  readonly leases: LeaseTable;
  readonly runner: Runner;
  readonly settler: Settler;
  readonly prefetch: Prefetch;
  readonly concurrency: number;
  readonly health: StoreHealth;
}

/** What a claim brought: all it asked for, or less because a lane ran dry. */
export interface Took {
  readonly full: boolean;
  readonly dry: boolean;
}

const ROUNDS_MAX = 2;
const SETTLES_MAX = 4_000;
/** Below this much free room for bytes a claim would bring next to nothing. */
const BYTES_WORTH = LIMITS.claimBytesMax / 8;
const LANES_MANY = 100;
const PLAN_COST_FACTOR = 4;

export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #suspects = [0, 0, 0];
  #underWay = 0;
  #asked = 0;
  #bytesAsked = 0;
  #retriedAsked = 0;
  #carry: Carry = { aged: 0, retried: 0 };
  #plannedMs = Number.NEGATIVE_INFINITY;
  #planCostMs = 0;

  constructor(options: ClaimerOptions) {
    this.#options = options;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** Whether another claim is worth making now. */
  get ready(): boolean {
    const { runner, settler, prefetch } = this.#options;
    if (this.#underWay >= ROUNDS_MAX || settler.backlog >= SETTLES_MAX) return false;
    const held = runner.waiting + runner.running;
    const room = prefetch.target - held - this.#asked;
    if (room <= 0) return false;
    const bytes = LIMITS.claimBytesMax - runner.bytes - this.#bytesAsked;
    if (held === 0 && this.#underWay === 0) return true;
    if (bytes < BYTES_WORTH) return false;
    // With work in hand a claim waits until it is worth its way; with none, any slot is worth it.
    return (runner.waiting === 0 && this.#underWay === 0) || room * 4 >= prefetch.target;
  }

  /** When the next plan may be made: planning over very many lanes must not become what the worker does. */
  get notBeforeMs(): number {
    return this.#plannedMs + PLAN_COST_FACTOR * this.#planCostMs;
  }

  /** Plans over the lanes and sends the claims, after those of probes. */
  claimFrom(lanes: readonly LaneEntry[], probes: readonly PlannedClaim<LaneEntry>[], nowMs: number): Promise<Took>[] {
    const { clock, runner, prefetch, concurrency, leases } = this.#options;
    const room = prefetch.target - runner.waiting - runner.running - this.#asked;
    const planned = plan({
      lanes,
      nowMs,
      capacity: Math.min(prefetch.claimMax, room),
      total: prefetch.target,
      slots: concurrency,
      retriedHeld: runner.retried + this.#retriedAsked,
      carry: this.#carry,
      suspectGroups: leases.suspects(1) + (this.#suspects[1] as number),
      suspectSingles: leases.suspects(2) + (this.#suspects[2] as number),
    });
    this.#carry = planned.carry;
    this.#plannedMs = nowMs;
    this.#planCostMs = lanes.length > LANES_MANY ? clock.monotonicMs() - nowMs : 0;
    const bytes = Math.max(0, LIMITS.claimBytesMax - runner.bytes - this.#bytesAsked);
    const claims = [...probes, ...planned.claims];
    const bytesMax = Math.max(1, Math.floor(Math.min(LIMITS.claimBytesMax / 2, bytes / Math.max(1, claims.length))));
    return claims.map((claim) => this.#claim(claim, bytesMax, nowMs));
  }

  async #claim(planned: PlannedClaim<LaneEntry>, bytesMax: number, askedMs: number): Promise<Took> {
    const { store, owner, clock, health, lanes, events } = this.#options;
    const mark = lanes.mark;
    this.#count(planned, bytesMax, 1);
    for (const { lane } of planned.lanes) lane.servedMs = askedMs;
    let messages: ClaimedMessage[];
    try {
      const named = planned.lanes.map(({ lane, limit, from }) => ({ lane: lane.lane, limit, from }));
      messages = await store.claim({ owner, leaseMs: planned.leaseMs, lanes: named, bytesMax });
    } catch (error) {
      this.#count(planned, bytesMax, -1);
      events.spans?.received([], clock.monotonicMs() - askedMs, error);
      health.failed("claim", error);
      return { full: false, dry: false };
    }
    health.ok();
    this.#count(planned, bytesMax, -1);
    const nowMs = clock.monotonicMs();
    events.spans?.received(messages, nowMs - askedMs);
    if (messages.length > 0) events.emit({ type: "claimed", count: messages.length, ms: nowMs - askedMs });
    const bytes = this.#takeIn(messages, planned, askedMs, nowMs);
    if (planned.probe !== undefined) giveBack(planned, messages.length);
    const bounded = 2 * bytes >= bytesMax;
    let full = true;
    let dry = false;
    for (const { lane, limit } of planned.lanes) {
      lanes.claimed(lane, limit, lane.got, bounded, mark);
      lane.got = 0;
      full &&= lane.full;
      dry ||= !lane.full;
    }
    this.#options.runner.run();
    return { full, dry };
  }

  #takeIn(messages: readonly ClaimedMessage[], planned: PlannedClaim<LaneEntry>, askedMs: number, nowMs: number): number {
    const { lanes, leases, runner } = this.#options;
    const { leaseMs, suspicion, probe } = planned;
    let bytes = 0;
    for (const message of messages) {
      const lane = lanes.of(message, message.topic, message.orderingKey !== null);
      const lease = leases.take(message.claim, leaseMs, askedMs, nowMs, suspicion);
      lane.got++;
      spend(lane.topic, lane.tenant, 1);
      bytes += message.payload.length;
      const attempt = new Attempt(message, lane, lease);
      attempt.probe = probe;
      runner.take(attempt);
    }
    return bytes;
  }

  /** What is asked for counts as held until it is known what came. */
  #count({ lanes, suspicion }: PlannedClaim<LaneEntry>, bytesMax: number, sign: 1 | -1): void {
    for (const { lane, limit } of lanes) {
      const amount = sign * limit;
      lane.asked += amount;
      lane.topic.held += amount;
      lane.tenant.held += amount;
      spend(lane.topic, lane.tenant, amount);
      if (lane.retried) this.#retriedAsked += amount;
      this.#asked += amount;
    }
    this.#underWay += sign;
    this.#bytesAsked += sign * bytesMax;
    this.#suspects[suspicion] = (this.#suspects[suspicion] as number) + sign;
  }
}

/** Lanes of one probe are of one breaker. Those that failed before say nothing new about a receiver: nothing is given back for them. */
function giveBack({ lanes }: PlannedClaim<LaneEntry>, got: number): void {
  const lane = lanes[0]?.lane;
  const missing = lanes.reduce((sum, { limit }) => sum + limit, -got);
  if (lane && !lane.retried && missing > 0) lane.topic.breaker.giveBack(lane.tenantId, missing);
}
