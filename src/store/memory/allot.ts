/**
 * ALLOT and OCCUPY in memory: the smallest correct form of what all workers of one store share of a topic's rate and of its places.
 */
import { bucketOf, burstOf } from "../../message/rate.ts";
import type { At } from "../store.ts";
import type { SlotsWanted, StartsAllotted, StartsWanted } from "../topics.ts";
import { nowMs, type State } from "./state.ts";

/** A clock that was set back by more than this is a clock that was set, not a caller that is late. */
const LATE_MS = 1_000;
/** So near to a whole one that only rounding is missing. */
const NEARLY = 1e-6;

export function allot(state: State, wanted: readonly StartsWanted[], at?: At): StartsAllotted[] {
  const now = nowMs(state, at);
  return wanted.map(({ topic, tenantId, perSecond, amount }) => {
    const name = JSON.stringify([topic, bucketOf(tenantId)]);
    const burst = burstOf(perSecond);
    const before = state.starts.get(name) ?? { tokens: burst, atMs: now };
    const there = Math.min(burst, before.tokens + (Math.max(0, now - before.atMs) * perSecond) / 1_000);
    const granted = amount < 0 ? amount : Math.min(amount, Math.floor(Math.max(0, there) + NEARLY));
    const tokens = Math.min(burst, there - granted);
    const atMs = now < before.atMs - LATE_MS ? now : Math.max(now, before.atMs);
    state.starts.set(name, { tokens, atMs });
    return { granted, nextInMs: Math.max(0, ((1 - NEARLY - tokens) / perSecond) * 1_000) };
  });
}

export function occupy(state: State, owner: string, wanted: readonly SlotsWanted[], ttlMs: number, at?: At): number[] {
  const now = nowMs(state, at);
  return wanted.map(({ topic, total, wants }) => {
    const owners = state.slots.get(topic) ?? new Map<string, { held: number; untilMs: number }>();
    for (const [one, { untilMs }] of owners) if (untilMs <= now) owners.delete(one);
    owners.delete(owner);
    const others = [...owners.values()].reduce((sum, { held }) => sum + held, 0);
    const held = Math.max(0, Math.min(wants, total - others));
    if (held > 0) owners.set(owner, { held, untilMs: now + ttlMs });
    if (owners.size > 0) state.slots.set(topic, owners);
    else state.slots.delete(topic);
    return held;
  });
}
