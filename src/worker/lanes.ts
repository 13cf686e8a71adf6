/**
 * The lanes as this worker knows them: when each is due, whether the last claim emptied it, and how much it usually has.
 * What lanes() said is corrected by hints, claims and our own settles in between, so that a message that is announced
 * is claimed without asking first.
 */
import type { Lane } from "../store/store.ts";
import type { PlanLane } from "./plan.ts";
import { forgetTenant, type TenantState, type TopicState, tenantOf } from "./topic-state.ts";

export interface LaneEntry extends PlanLane {
  readonly topic: TopicState;
  readonly tenant: TenantState;
  dueMs: number;
  /** A later moment at which something is known to be due, for when nothing is due now after all. */
  laterMs: number;
  servedMs: number;
  demand: number;
  /** Messages asked for by claims under way. */
  asked: number;
  /** The last claim brought all it asked for: a second one may overlap. */
  full: boolean;
  readonly tenantId: string | null;
  readonly ordered: boolean;
  /** The table's count of hints when this lane last had one: a claim or a look that began before it must not overrule it. */
  hintedAt: number;
  /** Counts a claim's messages while it is being taken in. */
  got: number;
  /** The round of looks in which it was last named. */
  round: number;
}

/** One answer of lanes(): whether it is the first and the last part of a round. */
export interface Part {
  readonly first: boolean;
  readonly last: boolean;
}

const DEMAND_MIN = 16;
const DEMAND_MAX = 1_000;
/** So many are known at once; where there are more, those that were served make room for others. */
const LANES_KEPT = 2_000;
/** So many of one kind are offered to one plan, whatever is known; where there are more, they take turns. */
const OFFERED = 250;

type LaneIdentity = Pick<Lane, "lane" | "tenantId" | "priority" | "suspicion" | "retried">;

/** Something of the lane is due then; what was known to be due later is not forgotten. */
export function dueAt(entry: LaneEntry, dueMs: number): void {
  const later = Math.max(entry.dueMs, dueMs);
  entry.dueMs = Math.min(entry.dueMs, dueMs);
  if (later > entry.dueMs && later < entry.laterMs) entry.laterMs = later;
}

export class LaneTable {
  readonly #lanes = new Map<string, LaneEntry>();
  readonly #topicOf: (name: string) => TopicState;
  #hints = 0;
  #round = 0;
  #roundMark = 0;

  constructor(topicOf: (name: string) => TopicState) {
    this.#topicOf = topicOf;
  }

  get(lane: string): LaneEntry | undefined {
    return this.#lanes.get(lane);
  }

  /** A hint: there may be work now. `unknown`: the lane has to be looked up; `shut`: it had work already, and its topic stands still. */
  hint(lane: string, nowMs: number): "unknown" | "shut" | "due" {
    const entry = this.#lanes.get(lane);
    if (!entry) return "unknown";
    entry.hintedAt = ++this.#hints;
    const shut = entry.dueMs <= nowMs && entry.topic.shutUntilMs > nowMs;
    dueAt(entry, nowMs);
    return shut ? "shut" : "due";
  }

  of(known: LaneIdentity, topicName: string, ordered: boolean): LaneEntry {
    let entry = this.#lanes.get(known.lane);
    if (!entry) {
      const topic = this.#topicOf(topicName);
      entry = {
        lane: known.lane,
        topic,
        tenant: tenantOf(topic, known.tenantId),
        tenantId: known.tenantId,
        priority: known.priority,
        suspicion: known.suspicion,
        retried: known.retried && !ordered,
        ordered,
        dueMs: Number.POSITIVE_INFINITY,
        laterMs: Number.POSITIVE_INFINITY,
        servedMs: Number.NEGATIVE_INFINITY,
        demand: DEMAND_MIN,
        asked: 0,
        full: false,
        hintedAt: 0,
        got: 0,
        round: 0,
      };
      entry.tenant.lanes++;
      this.#lanes.set(known.lane, entry);
    }
    return entry;
  }

  /** Where the hints stand, taken before the store is asked: what is hinted at later is newer than its answer. */
  get mark(): number {
    return this.#hints;
  }

  /**
   * A part of what lanes() answers, the whole of it as a rule. With the last part of a round it is the truth: what no part named has nothing,
   * except for lanes hinted at since the round began.
   */
  seen(lanes: readonly Lane[], nowMs: number, mark: number, { first, last }: Part = { first: true, last: true }): void {
    if (first) {
      this.#round++;
      this.#roundMark = mark;
    }
    for (const lane of lanes) {
      const entry = this.of(lane, lane.topic, lane.ordered);
      entry.round = this.#round;
      const dueMs = nowMs + lane.dueInMs;
      if (entry.hintedAt > mark) dueAt(entry, dueMs);
      else entry.dueMs = dueMs;
    }
    if (last) {
      for (const entry of this.#lanes.values()) {
        if (entry.round !== this.#round && entry.hintedAt <= this.#roundMark) entry.dueMs = Number.POSITIVE_INFINITY;
      }
    }
    this.#makeRoom(nowMs);
  }

  /** What a claim brought from a lane; `bounded`: the byte limit may have cut it short. `mark`: from before the claim. */
  claimed(entry: LaneEntry, asked: number, got: number, bounded: boolean, mark: number): void {
    entry.full = got >= asked || (bounded && got > 0);
    if (entry.full) {
      entry.demand = Math.min(DEMAND_MAX, Math.max(entry.demand, 2 * asked));
      return;
    }
    entry.demand = Math.max(DEMAND_MIN, 2 * got);
    if (bounded || entry.hintedAt > mark) return;
    entry.dueMs = entry.laterMs;
    entry.laterMs = Number.POSITIVE_INFINITY;
  }

  /**
   * Those that may be claimed from now. Of very many a part, so that a plan costs the same however many there are: what was offered goes to
   * the end of the line, whether it got something or not. Each priority and each kind has a line of its own, and so has what may have nothing
   * now, so that none hides another.
   */
  ready(nowMs: number): LaneEntry[] {
    const ready: LaneEntry[] = [];
    for (const entry of this.#lanes.values()) {
      if (entry.dueMs <= nowMs && (entry.asked === 0 || entry.full)) ready.push(entry);
    }
    if (ready.length <= OFFERED) return ready;
    const lines = new Map<number, number>();
    const offered = ready.filter((entry) => {
      const shut = standsStill(entry, nowMs) || entry.topic.allowance <= 0;
      const line = entry.priority * 12 + entry.suspicion * 4 + (entry.retried ? 2 : 0) + (shut ? 1 : 0);
      const place = (lines.get(line) ?? 0) + 1;
      lines.set(line, place);
      return place <= OFFERED;
    });
    for (const entry of offered) {
      this.#lanes.delete(entry.lane);
      this.#lanes.set(entry.lane, entry);
    }
    return offered;
  }

  /** When the next one that is not due yet will be; Infinity when none is known. */
  nextDueMs(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.#lanes.values()) if (dueMs > nowMs && dueMs < next) next = dueMs;
    return next;
  }

  /** How many more lanes could be taken in: those that were never offered here stay until they were, so that none is passed over. */
  room(nowMs: number): number {
    let waiting = 0;
    for (const entry of this.#lanes.values()) if (stays(entry, nowMs) === Stays.untilServed) waiting++;
    return LANES_KEPT - waiting;
  }

  /** Those that have nothing go first, then those of topics that stand still, then those that were served, then those of full topics; all are found again. */
  #makeRoom(nowMs: number): void {
    const over = this.#lanes.size - LANES_KEPT;
    if (over <= 0) return;
    const free = [...this.#lanes.values()]
      .filter(({ asked }) => asked === 0)
      .map((entry) => ({ entry, rank: stays(entry, nowMs) }));
    free.sort((a, b) => a.rank - b.rank);
    for (const { entry } of free.slice(0, over)) {
      const { lane, topic, tenant, tenantId } = entry;
      this.#lanes.delete(lane);
      tenant.lanes--;
      forgetTenant(topic, tenantId, tenant);
    }
  }
}

/** What keeps a lane in the table, the least first. */
const Stays = { empty: 0, later: 1, shut: 2, served: 3, full: 4, untilServed: 5 } as const;
const SOON_MS = 1_000;

function stays(entry: LaneEntry, nowMs: number): number {
  const { dueMs, servedMs, topic } = entry;
  if (dueMs === Number.POSITIVE_INFINITY) return Stays.empty;
  if (dueMs > nowMs + SOON_MS) return Stays.later;
  if (standsStill(entry, nowMs)) return Stays.shut;
  if (servedMs !== Number.NEGATIVE_INFINITY) return Stays.served;
  return topic.allowance <= 0 ? Stays.full : Stays.untilServed;
}

/** Nothing of it can be claimed for a while, except as a probe. */
function standsStill({ topic, tenantId }: LaneEntry, nowMs: number): boolean {
  return topic.shutUntilMs > nowMs || (topic.breaker.holds && topic.breaker.heldAs(tenantId) !== undefined);
}
