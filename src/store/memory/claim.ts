/**
 * Claims: taking due messages under one lease, pushing its end out, and taking over leases that ran out. The token is the
 * fence; expiry only allows the takeover, so a late holder that was not replaced may still extend and settle.
 */
import { LIMITS } from "../../message/limits.ts";
import type { Claim, ClaimedMessage } from "../../message/message.ts";
import type { At, ClaimRequest, From, ReclaimRequest } from "../store.ts";
import { keyOf, laneOf, unparkClaimed, unparkNamed } from "./lanes.ts";
import { type Lease, nowMs, type OrderingKey, type State, type Stored } from "./state.ts";

interface Taken {
  readonly stored: Stored;
  readonly lane: string;
}

/** `inOrder`: with ids also those that carry ordering keys, as far as they are the next of their key in the order given. */
export function claim(state: State, request: ClaimRequest, inOrder = false): ClaimedMessage[] {
  const now = nowMs(state, request);
  const taken = request.ids
    ? named(state, request.ids, request.due ? now : Number.POSITIVE_INFINITY, inOrder)
    : choose(state, request, now);
  if (taken.length === 0) return [];
  const chosen = taken.map(({ stored }) => stored);
  if (request.ids) unparkNamed(state, chosen);
  else
    unparkClaimed(
      state,
      chosen,
      new Set(request.lanes.flatMap(({ lane, from = "oldest" }) => (from === "oldest" ? [] : [lane]))),
    );
  const parts = [taken.filter(({ stored }) => !isSuspect(stored)), taken.filter(({ stored }) => isSuspect(stored))];
  return parts.flatMap((part) => (part.length === 0 ? [] : underOneLease(state, part, request, now)));
}

/** A suspect between others: those of a lane without an order have a lane of their own. */
const isSuspect = ({ ordered, suspicion }: Stored): boolean => ordered && suspicion > 0;

function underOneLease(state: State, taken: readonly Taken[], { owner, leaseMs }: ClaimRequest, now: number): ClaimedMessage[] {
  const id = String(++state.leasesMade);
  const lease: Lease = { id, size: taken.length, open: new Map(), token: newToken(state), owner, untilMs: now + leaseMs };
  state.leases.set(id, lease);
  for (const { stored, lane } of taken) {
    stored.status = "processing";
    stored.attempts++;
    lease.open.set(stored.message.id, lane);
  }
  return claimed(state, lease, (stored) => stored.message.payload);
}

/** Of suspects between others one group in a claim, a few or a single one, so that what is lost with it says who it was (I6). */
function suspectGroup(): (stored: Stored) => boolean {
  let group = 0;
  let left = 0;
  return (stored) => {
    if (!isSuspect(stored)) return true;
    if (group === 0) {
      group = stored.suspicion;
      left = group === 1 ? LIMITS.suspectGroupMax : 1;
    }
    return stored.suspicion === group && left-- > 0;
  };
}

/** Messages that failed, and suspects, are due later than others: at the end of an ordered lane they would hide all others. */
const isUntried = ({ ordered, retried, suspicion }: Stored): boolean => !ordered || (!retried && suspicion === 0);

/** What waits in a lane, in the order in which a claim looks at it. */
function inOrder(waiting: readonly Stored[], limit: number, from: From, now: number): readonly Stored[] {
  if (from === "oldest") return waiting;
  const untried = waiting.filter((one) => one.dueMs <= now && isUntried(one));
  if (from === "newest") return untried.reverse();
  const first = Math.max(0, Math.min(Math.floor(from * untried.length), untried.length - limit));
  return untried.length > 0 ? untried.slice(first) : waiting;
}

/** The due messages of the named lanes in their order, up to each lane's limit and the bytes of the whole batch. */
function choose(state: State, request: ClaimRequest, now: number): Taken[] {
  const taken = new Map<string, Taken>();
  const fits = suspectGroup();
  let bytesLeft = request.bytesMax ?? Number.POSITIVE_INFINITY;
  for (const { lane, limit, from = "oldest" } of request.lanes) {
    let left = limit;
    for (const stored of inOrder(state.lanes.get(lane)?.due ?? [], limit, from, now)) {
      if (left <= 0 || stored.dueMs > now) break;
      if (taken.has(stored.message.id) || !fits(stored)) continue;
      bytesLeft -= Buffer.byteLength(stored.message.payload);
      // At least one, or a message larger than the budget would never be claimed.
      if (bytesLeft < 0 && taken.size > 0) return [...taken.values()];
      taken.set(stored.message.id, { stored, lane });
      left--;
    }
  }
  return [...taken.values()];
}

/** Messages by their ids, due or not; what carries an ordering key is only ever taken in its order. */
function named(state: State, ids: readonly string[], dueUntilMs: number, inOrder: boolean): Taken[] {
  const next = inOrder ? nextOfKey(state) : () => false;
  return [...new Set(ids)].flatMap((id) => {
    const stored = state.messages.get(id);
    if (stored?.status !== "pending" || stored.heldReason !== null || stored.dueMs > dueUntilMs) return [];
    if (stored.ordered && !next(stored)) return [];
    return [{ stored, lane: laneOf(state, stored).lane }];
  });
}

/** Whether all that stand before it in its key are taken by the same call. */
function nextOfKey(state: State): (stored: Stored) => boolean {
  const taken = new Map<OrderingKey, number>();
  return (stored) => {
    const key = keyOf(state, stored);
    const before = taken.get(key) ?? 0;
    if (key.inFlight || key.blockedBy !== null || key.waiting[before] !== stored) return false;
    taken.set(key, before + 1);
    return true;
  };
}

export function extend(state: State, claims: readonly Claim[], leaseMs: number, at?: At): ("extended" | "lost")[] {
  const now = nowMs(state, at);
  return claims.map((held) => {
    const lease = liveLease(state, held);
    if (!lease) return "lost";
    lease.untilMs = now + leaseMs;
    return "extended";
  });
}

export function reclaim(state: State, request: ReclaimRequest): ClaimedMessage[] {
  const now = nowMs(state, request);
  const expired = [...state.leases.values()].filter((lease) => lease.untilMs < now).sort((a, b) => a.untilMs - b.untilMs);
  return expired.slice(0, request.limit).flatMap((lease) => {
    if (request.dryRun) return claimed(state, { ...lease, token: "" }, () => "");
    lease.token = newToken(state);
    lease.owner = request.owner;
    lease.untilMs = now + request.leaseMs;
    return claimed(state, lease, () => "");
  });
}

/** The lease of a claim, if its token is still the one that counts (I4). */
export function liveLease(state: State, held: Claim): Lease | undefined {
  const lease = state.leases.get(held.lease);
  return lease?.token === held.token ? lease : undefined;
}

function claimed(state: State, lease: Lease, payload: (stored: Stored) => string): ClaimedMessage[] {
  return [...lease.open].map(([id, lane]) => {
    const stored = state.messages.get(id) as Stored;
    const { topic, tenantId, priority, key, orderingKey, traceparent, schemaVersion, directTry } = stored.message;
    return {
      id,
      claim: { lease: lease.id, token: lease.token },
      lane,
      topic,
      tenantId,
      priority,
      key,
      orderingKey,
      payload: payload(stored),
      traceparent,
      schemaVersion,
      attempt: stored.attempts,
      base: stored.base,
      handedDown: directTry !== undefined,
      suspicion: stored.suspicion,
      retried: stored.retried && stored.suspicion === 0,
    };
  });
}

function newToken(state: State): string {
  return Buffer.from(state.random.bytes(16)).toString("hex");
}
