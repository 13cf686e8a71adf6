/**
 * The lanes as this worker knows them: when each is due, whether the last claim emptied it, and how much it usually has.
 * What lanes() said is corrected by hints, claims and our own settles in between, so that a message that is announced
 * is claimed without asking first.
 */
import type { Lane } from "../store/store.ts";
import type { PlanLane } from "./plan.ts";
import { type TenantState, type TopicState, tenantOf } from "./topic-state.ts";

export interface LaneEntry extends PlanLane {
  readonly topic: TopicState;
  readonly tenant: TenantState;
  dueMs: number;
  /** A later moment at which something is known to be due, for when nothing is due now after all. */
  laterMs: number;
  servedMs: number;
  appetite: number;
  /** Messages asked for by claims under way. */
  asked: number;
  /** The last claim brought all it asked for: a second one may overlap. */
  full: boolean;
  readonly tenantId: string | null;
  /** The table's count of hints when this lane last had one: a claim or a look that began before it must not overrule it. */
  hintedAt: number;
  /** Counts a claim's messages while it is being taken in. */
  got: number;
}

const APPETITE_MIN = 16;
const APPETITE_MAX = 1_000;
const LANES_KEPT = 10_000;

type LaneIdentity = Pick<Lane, "lane" | "tenantId" | "priority" | "suspicion">;

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

  constructor(topicOf: (name: string) => TopicState) {
    this.#topicOf = topicOf;
  }

  get(lane: string): LaneEntry | undefined {
    return this.#lanes.get(lane);
  }

  /** A hint: there may be work now. False when the lane is not known here and has to be looked up. */
  hint(lane: string, nowMs: number): boolean {
    const entry = this.#lanes.get(lane);
    if (!entry) return false;
    entry.hintedAt = ++this.#hints;
    dueAt(entry, nowMs);
    return true;
  }

  of(known: LaneIdentity, topicName: string): LaneEntry {
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
        dueMs: Number.POSITIVE_INFINITY,
        laterMs: Number.POSITIVE_INFINITY,
        servedMs: Number.NEGATIVE_INFINITY,
        appetite: APPETITE_MIN,
        asked: 0,
        full: false,
        hintedAt: 0,
        got: 0,
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

  /** What lanes() answered: the whole truth of that moment, except for lanes hinted at since it was asked. */
  seen(lanes: readonly Lane[], nowMs: number, mark: number): void {
    const named = new Set<string>();
    for (const lane of lanes) {
      const entry = this.of(lane, lane.topic);
      named.add(lane.lane);
      const dueMs = nowMs + lane.dueInMs;
      if (entry.hintedAt > mark) dueAt(entry, dueMs);
      else entry.dueMs = dueMs;
    }
    for (const entry of this.#lanes.values()) {
      if (!named.has(entry.lane) && entry.hintedAt <= mark) entry.dueMs = Number.POSITIVE_INFINITY;
    }
    this.#forget();
  }

  /** What a claim brought from a lane; `bounded`: the byte limit may have cut it short. `mark`: from before the claim. */
  claimed(entry: LaneEntry, asked: number, got: number, bounded: boolean, mark: number): void {
    entry.full = got >= asked || (bounded && got > 0);
    if (entry.full) {
      entry.appetite = Math.min(APPETITE_MAX, Math.max(entry.appetite, 2 * asked));
      return;
    }
    entry.appetite = Math.max(APPETITE_MIN, 2 * got);
    if (bounded || entry.hintedAt > mark) return;
    entry.dueMs = entry.laterMs;
    entry.laterMs = Number.POSITIVE_INFINITY;
  }

  /** Those that may be claimed from now. */
  ready(nowMs: number): LaneEntry[] {
    const ready: LaneEntry[] = [];
    for (const entry of this.#lanes.values()) {
      if (entry.dueMs <= nowMs && (entry.asked === 0 || entry.full)) ready.push(entry);
    }
    return ready;
  }

  /** When the next one that is not due yet will be; Infinity when none is known. */
  nextDueMs(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.#lanes.values()) if (dueMs > nowMs && dueMs < next) next = dueMs;
    return next;
  }

  #forget(): void {
    if (this.#lanes.size <= LANES_KEPT) return;
    for (const { lane, dueMs, asked, topic, tenant, tenantId } of this.#lanes.values()) {
      if (dueMs !== Number.POSITIVE_INFINITY || asked > 0) continue;
      this.#lanes.delete(lane);
      tenant.lanes--;
      if (tenant.lanes === 0 && tenant.held === 0) topic.tenants.delete(tenantId);
    }
  }
}
