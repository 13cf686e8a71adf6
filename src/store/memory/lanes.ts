/**
 * Where pending messages wait: for each lane a list by (due, id) of what may be claimed once it is due, and for each ordering key
 * a list in the order in which they were accepted, whose head stands in the lane's list while its key is open. Nothing else knows
 * how a lane is named.
 */
import type { NewMessage, Suspicion } from "../../message/message.ts";
import { partOf } from "../shared/part-of-lanes.ts";
import type { Lane, Lanes } from "../store.ts";
import { type LaneState, nowMs, type OrderingKey, type State, type Stored } from "./state.ts";

type Order = (a: Stored, b: Stored) => number;

const byId: Order = (a, b) => (a.message.id < b.message.id ? -1 : a.message.id > b.message.id ? 1 : 0);
const byPlace: Order = (a, b) => a.seq - b.seq;
export const byDue: Order = (a, b) => a.dueMs - b.dueMs || byId(a, b);

/** Puts a pending message where it waits. A held one that is not ordered waits nowhere: it is never due. */
export function park(state: State, stored: Stored): void {
  if (stored.ordered) {
    const key = keyOf(state, stored);
    insert(key.waiting, stored, byPlace);
    show(laneOf(state, stored), key);
  } else if (stored.heldReason === null) insert(laneOf(state, stored).due, stored, byDue);
}

/** Takes a pending message out of where it waits. Call before its due time or suspicion changes. */
export function unpark(state: State, stored: Stored): void {
  if (stored.ordered) remove(keyOf(state, stored).waiting, stored, byPlace);
  else if (stored.heldReason === null) remove(laneOf(state, stored).due, stored, byDue);
  tidy(state, stored);
}

/** Takes what a claim named out of where it waits: those that stand together there with one cut. */
export function unparkNamed(state: State, chosen: readonly Stored[]): void {
  for (let first = 0; first < chosen.length; ) {
    const stored = chosen[first] as Stored;
    const list = stored.ordered ? keyOf(state, stored).waiting : laneOf(state, stored).due;
    const at = position(list, stored, stored.ordered ? byPlace : byDue);
    let count = 0;
    while (first + count < chosen.length && list[at + count] === chosen[first + count]) count++;
    if (count === 0) throw new Error(`memory store: ${stored.message.id} is not where it should be waiting`);
    list.splice(at, count);
    if (stored.ordered) keyOf(state, stored).inFlight = true;
    tidy(state, stored);
    first += count;
  }
}

/** Whether anything of its ordering key waits or is in flight. */
export function holdsKey(state: State, { topic, tenantId, orderingKey }: NewMessage): boolean {
  return orderingKey !== null && (state.lanes.get(laneName(topic, tenantId, 0, 0, false, true))?.keys.has(orderingKey) ?? false);
}

/**
 * Takes what a claim chose out of where it waits. In each lane that is its front, unless it was claimed from elsewhere or a suspect was left
 * for another claim: one cut for all of it.
 */
export function unparkClaimed(state: State, chosen: readonly Stored[], elsewhere: ReadonlySet<string>): void {
  const fronts = new Map<LaneState, { last: Stored; count: number }>();
  for (const stored of chosen) {
    const lane = laneOf(state, stored);
    if (!stored.ordered && elsewhere.has(lane.lane)) {
      unpark(state, stored);
      continue;
    }
    fronts.set(lane, { last: stored, count: (fronts.get(lane)?.count ?? 0) + 1 });
    if (!stored.ordered) continue;
    const key = keyOf(state, stored);
    remove(key.waiting, stored, byPlace);
    key.inFlight = true;
    key.shown = null;
  }
  const all = new Set(chosen);
  for (const [lane, { last, count }] of fronts) {
    const before = lane.due.length;
    if (lane.due[count - 1] === last && !elsewhere.has(lane.lane)) lane.due.splice(0, count);
    else if (last.ordered) lane.due = lane.due.filter((stored) => !all.has(stored));
    if (lane.due.length !== before - count) throw new Error(`memory store: ${last.message.id} is not where it should be waiting`);
    tidy(state, last);
  }
}

/** The lane a message belongs to now, made when it is missing. */
export function laneOf(state: State, stored: Stored): LaneState {
  const { topic, tenantId, priority } = stored.message;
  const suspicion = stored.ordered ? 0 : stored.suspicion;
  const retried = isApart(stored);
  const lane = laneName(topic, tenantId, priority, suspicion, retried, stored.ordered);
  let found = state.lanes.get(lane);
  if (!found) {
    found = { lane, topic, tenantId, priority, suspicion, retried, ordered: stored.ordered, due: [], keys: new Map() };
    state.lanes.set(lane, found);
  }
  return found;
}

const laneName = (...parts: readonly [string, string | null, number, Suspicion, boolean, boolean]): string =>
  JSON.stringify(parts);

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
    key = { waiting: [], shown: null, inFlight: false, blockedBy: null };
    keys.set(name, key);
  }
  return key;
}

/** Puts the head of a key into its lane's list, or takes it out. Call after any change of the key. */
function show(lane: LaneState, key: OrderingKey): void {
  const head = key.inFlight || key.blockedBy !== null ? undefined : key.waiting[0];
  const next = head?.heldReason === null ? head : null;
  if (next === key.shown) return;
  if (key.shown) remove(lane.due, key.shown, byDue);
  if (next) insert(lane.due, next, byDue);
  key.shown = next;
}

/** Shows what a change of its key made claimable, and drops what has become empty, so that lanes and keys do not pile up (I10). */
export function tidy(state: State, stored: Stored): void {
  const lane = laneOf(state, stored);
  if (stored.ordered) {
    const key = keyOf(state, stored);
    show(lane, key);
    if (key.waiting.length === 0 && !key.inFlight && key.blockedBy === null) lane.keys.delete(stored.message.orderingKey ?? "");
  }
  if (lane.due.length === 0 && lane.keys.size === 0) state.lanes.delete(lane.lane);
}

export function listLanes(state: State, which?: Lanes): Lane[] {
  const now = nowMs(state, which);
  const lanes: Lane[] = [];
  for (const found of state.lanes.values()) {
    const first = found.due[0];
    const { lane, topic, tenantId, priority, suspicion, retried, ordered } = found;
    if (!first) continue;
    const due = which?.counted ? { due: found.due.filter(({ dueMs }) => dueMs <= now).length } : {};
    lanes.push({ lane, topic, tenantId, priority, suspicion, retried, ordered, dueInMs: first.dueMs - now, ...due });
  }
  return partOf(lanes, which);
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
