/**
 * What may be tried of the lanes that a breaker holds, a topic's or one tenant's: those that never failed first; with none of them left, those
 * that did. The lane that is likeliest to go through, the one that waited longest and any of them take turns: all others may hold nothing but
 * poison. Asks for the right to where there is none yet.
 */
import type { LaneEntry } from "../lanes.ts";
import type { PlannedClaim } from "../plan.ts";
import type { TopicState } from "../topic-state.ts";

export interface Probes {
  /** The lanes that nothing holds. */
  readonly open: readonly LaneEntry[];
  readonly claims: readonly PlannedClaim<LaneEntry>[];
  /** Monotonic moment at which the store may be asked again. */
  readonly dueMs: number;
}

/** The topics' allowances are up to date. */
export function planProbes(lanes: readonly LaneEntry[], nowMs: number): Probes {
  if (!lanes.some(({ topic }) => topic.breaker.holds)) return { open: lanes, claims: [], dueMs: Number.POSITIVE_INFINITY };
  const open: LaneEntry[] = [];
  const held = new Map<TopicState, Map<string | null, LaneEntry[]>>();
  for (const lane of lanes) {
    const by = lane.topic.breaker.holds ? lane.topic.breaker.heldAs(lane.tenantId) : undefined;
    if (by === undefined) open.push(lane);
    else if (roomOf(lane) >= 1) groupOf(held, lane.topic, by).push(lane);
  }
  const claims: PlannedClaim<LaneEntry>[] = [];
  let dueMs = Number.POSITIVE_INFINITY;
  for (const groups of held.values()) {
    // Served longest ago first: one probe a second for all of them.
    for (const group of [...groups.values()].sort((a, b) => servedMs(a) - servedMs(b))) {
      const probe = probeOf(group, nowMs);
      if (typeof probe === "number") dueMs = Math.min(dueMs, nowMs + probe);
      else claims.push(probe);
    }
  }
  return { open, claims, dueMs };
}

function groupOf(held: Map<TopicState, Map<string | null, LaneEntry[]>>, topic: TopicState, by: string | null): LaneEntry[] {
  const groups = held.get(topic) ?? new Map<string | null, LaneEntry[]>();
  held.set(topic, groups);
  const group = groups.get(by) ?? [];
  groups.set(by, group);
  return group;
}

const servedMs = (lanes: readonly LaneEntry[]): number =>
  lanes.reduce((latest, lane) => Math.max(latest, lane.servedMs), Number.NEGATIVE_INFINITY);

/** What limits of the topic and of the tenant leave it. */
const roomOf = ({ topic, tenant }: LaneEntry): number =>
  Math.floor(Math.min(topic.allowance, tenant.allowance ?? Number.POSITIVE_INFINITY));

/** Whether a lane holds only what never failed: an ordered one may hold both. */
const isFresh = ({ retried, ordered, suspicion }: LaneEntry): boolean => !retried && !ordered && suspicion === 0;

/** The claim of what may be tried of one group, or how long until it may be asked for. */
function probeOf(group: readonly LaneEntry[], nowMs: number): PlannedClaim<LaneEntry> | number {
  const fresh = group.filter(isFresh);
  const retried = fresh.length === 0;
  const lanes = retried ? group : fresh;
  const lane = lanes.reduce((a, b) => (b.servedMs < a.servedMs ? b : a));
  const { breaker, leaseMs } = lane.topic;
  const room = Math.min(breaker.room(nowMs, lane.tenantId, retried), lane.suspicion > 0 ? 1 : roomOf(lane));
  if (room === 0) return breaker.seekProbe(nowMs, lane.tenantId, retried);
  const { spot, kind } = breaker.take(lane.tenantId, room);
  const { from } = spot;
  const likely = lane.suspicion > 0 ? lane : likeliest(lanes, lane);
  const of = (one: LaneEntry, limit: number): PlannedClaim<LaneEntry> => ({
    leaseMs,
    suspicion: one.suspicion,
    probe: kind,
    lanes: [{ lane: one, limit, from }],
  });
  if (room === 1) {
    if (typeof spot.lane === "number") return of(lanes[Math.floor(spot.lane * lanes.length)] ?? lane, 1);
    return of(spot.lane === "likeliest" ? likely : lane, 1);
  }
  if (likely === lane) return of(lane, room);
  // It lives: one from the other lane, and more from where it was seen.
  const more = Math.min(room - 1, roomOf(likely));
  const both: PlannedClaim<LaneEntry>["lanes"] = [
    { lane, limit: 1, from },
    { lane: likely, limit: more, from },
  ];
  return { leaseMs, suspicion: 0, probe: kind, lanes: both };
}

/** Where something went through last, or else where nothing was seen to fail; of several, what was last heard of. */
function likeliest(lanes: readonly LaneEntry[], instead: LaneEntry): LaneEntry {
  const trusted = lanes.filter(({ suspicion }) => suspicion === 0);
  const isLikelier = (a: LaneEntry, b: LaneEntry): boolean =>
    a.tenant.livedMs > b.tenant.livedMs || (a.tenant.livedMs === b.tenant.livedMs && a.hintedAt > b.hintedAt);
  return trusted.reduce((a, b) => (isLikelier(b, a) ? b : a), instead);
}
