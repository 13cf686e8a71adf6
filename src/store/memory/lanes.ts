/**
 * Where pending messages wait: a list by (due, id) for each lane, and for ordered lanes a list by id for each ordering key.
 * Nothing else knows how a lane is named.
 */
import type { At, Lane } from "../store.ts";
import { type LaneState, nowMs, type OrderingKey, type State, type Stored } from "./state.ts";

type Order = (a: Stored, b: Stored) => number;

const byId: Order = (a, b) => (a.message.id < b.message.id ? -1 : a.message.id > b.message.id ? 1 : 0);
export const byDue: Order = (a, b) => a.dueMs - b.dueMs || byId(a, b);

/** Puts a pending message where it waits. A held one that is not ordered waits nowhere: it is never due. */
export function park(state: State, stored: Stored): void {
  if (stored.ordered) insert(keyOf(state, stored).waiting, stored, byId);
  else if (stored.heldReason === null) insert(laneOf(state, stored).due, stored, byDue);
}

/** Takes a pending message out of where it waits. Call before its due time or suspicion changes. */
export function unpark(state: State, stored: Stored): void {
  if (stored.ordered) remove(keyOf(state, stored).waiting, stored, byId);
  else if (stored.heldReason === null) remove(laneOf(state, stored).due, stored, byDue);
  tidy(state, stored);
}

/** Takes what a claim chose out of where it waits. In a lane without order that is its front, unless the newest were asked for: one cut for all of it. */
export function unparkClaimed(state: State, chosen: readonly Stored[], newest: ReadonlySet<string>): void {
  const fronts = new Map<LaneState, { last: Stored; count: number }>();
  for (const stored of chosen) {
    const lane = laneOf(state, stored);
    if (stored.ordered) {
      // Closed before it is taken out, so that the key of an only message does not vanish and open again.
      keyOf(state, stored).inFlight = true;
      unpark(state, stored);
    } else if (newest.has(lane.lane)) unpark(state, stored);
    else fronts.set(lane, { last: stored, count: (fronts.get(lane)?.count ?? 0) + 1 });
  }
  for (const [lane, { last, count }] of fronts) {
    if (lane.due[count - 1] !== last) throw new Error(`memory store: ${last.message.id} is not where it should be waiting`);
    lane.due.splice(0, count);
    tidy(state, last);
  }
}

/** The lane a message belongs to now, made when it is missing. */
export function laneOf(state: State, stored: Stored): LaneState {
  const { topic, tenantId, priority } = stored.message;
  const suspicion = stored.ordered ? 0 : stored.suspicion;
  const retried = isApart(stored);
  const lane = JSON.stringify([topic, tenantId, priority, suspicion, retried, stored.ordered]);
  let found = state.lanes.get(lane);
  if (!found) {
    found = { lane, topic, tenantId, priority, suspicion, retried, ordered: stored.ordered, due: [], keys: new Map() };
    state.lanes.set(lane, found);
  }
  return found;
}

/** Whether it waits in the lane of those that failed before. */
export function isApart({ ordered, suspicion, retried }: Stored): boolean {
  return retried && suspicion === 0 && !ordered;
}

/** The ordering key of an ordered message. */
export function keyOf(state: State, stored: Stored): OrderingKey {
  const keys = laneOf(state, stored).keys;
  const name = stored.message.orderingKey ?? "";
  let key = keys.get(name);
  if (!key) {
    key = { waiting: [], inFlight: false, blockedBy: null };
    keys.set(name, key);
  }
  return key;
}

/** Drops what has become empty, so that lanes and keys do not pile up (I10). */
export function tidy(state: State, stored: Stored): void {
  const lane = laneOf(state, stored);
  if (stored.ordered) {
    const key = keyOf(state, stored);
    if (key.waiting.length === 0 && !key.inFlight && key.blockedBy === null) lane.keys.delete(stored.message.orderingKey ?? "");
  }
  if (lane.due.length === 0 && lane.keys.size === 0) state.lanes.delete(lane.lane);
}

/** The messages of a lane that may be claimed once they are due, first one first. */
export function claimable(lane: LaneState): Stored[] {
  if (!lane.ordered) return lane.due;
  const heads: Stored[] = [];
  for (const key of lane.keys.values()) {
    const head = key.waiting[0];
    if (head && head.heldReason === null && !key.inFlight && key.blockedBy === null) heads.push(head);
  }
  return heads.sort(byDue);
}

export function listLanes(state: State, at?: At): Lane[] {
  const now = nowMs(state, at);
  const lanes: Lane[] = [];
  for (const found of state.lanes.values()) {
    const first = claimable(found)[0];
    const { lane, topic, tenantId, priority, suspicion, retried, ordered } = found;
    if (first) lanes.push({ lane, topic, tenantId, priority, suspicion, retried, ordered, dueInMs: first.dueMs - now });
  }
  return lanes;
}

function insert(list: Stored[], stored: Stored, order: Order): void {
  list.splice(position(list, stored, order), 0, stored);
}

function remove(list: Stored[], stored: Stored, order: Order): void {
  const at = position(list, stored, order);
  if (list[at] !== stored) throw new Error(`memory store: ${stored.message.id} is not where it should be waiting`);
  list.splice(at, 1);
}

function position(list: readonly Stored[], stored: Stored, order: Order): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order(list[middle] as Stored, stored) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
