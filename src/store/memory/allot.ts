/**
 * ALLOT and OCCUPY in memory: the smallest correct form of what all workers of one store share of a topic's rate and of its places.
 */
import { bucketOf, takeFrom } from "../../message/rate.ts";
import type { At } from "../store.ts";
import type { SlotsWanted, StartsAllotted, StartsWanted } from "../topics.ts";
import { nowMs, type State } from "./state.ts";

export function allot(state: State, wanted: readonly StartsWanted[], at?: At): StartsAllotted[] {
  return wanted.map(({ topic, tenantId, perSecond, amount }) => {
    const name = JSON.stringify([topic, bucketOf(tenantId)]);
    const { bucket, granted, nextInMs } = takeFrom(state.starts.get(name), perSecond, amount, nowMs(state, at));
    state.starts.set(name, bucket);
    return { granted, nextInMs };
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
