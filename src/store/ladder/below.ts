/**
 * What waits in memory and in the journal of this process, as a store that can be worked on (DF-12): a dispatcher claims and settles there as
 * anywhere. An entry that is claimed is busy: the way up leaves it alone until it is settled, so a store that comes back in the middle of an
 * attempt gets it afterwards or not at all. Leases do not end here: whoever holds them is this process.
 */

import type { ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Settle, Settlement } from "../../message/settlement.ts";
import type { Clock } from "../../platform/clock.ts";
import type { WaitingBelow } from "../fallback.ts";
import type { HandedDown } from "../handed-down.ts";
import type { Journal } from "../journal.ts";
import { partOf } from "../part-of-lanes.ts";
import type { Lane, WorkStore } from "../store.ts";
import type { AfterTry, FailedTry } from "../tried-below.ts";
import type { MemoryRung } from "./memory-rung.ts";

export interface BelowOptions {
  readonly memory: MemoryRung;
  readonly journal?: Journal | undefined;
  /** Ids that are being attempted or moved. */
  readonly busy: Set<string>;
  readonly clock: Clock;
  readonly ids: () => string;
  /** An attempt has ended: what is left may be moved up. */
  readonly ended: () => void;
}

/** What does not count must not be tried without a pause either. */
const UNCOUNTED_MS = 1_000;

interface Taken {
  readonly message: NewMessage;
  readonly attempt: number;
  readonly retried: boolean;
  readonly journal: Journal | null;
}

export function createBelow(options: BelowOptions): WorkStore & { came(): void } {
  const { memory, journal, busy, clock } = options;
  const watchers = new Set<Parameters<WorkStore["wake"]>[0]>();
  /** By token. */
  const claims = new Map<string, Taken>();

  function* waiting(): Generator<WaitingBelow> {
    for (const one of memory.list()) if (!busy.has(one.id)) yield one;
    for (const one of journal?.list() ?? []) if (!busy.has(one.id)) yield one;
  }

  /** Those that no order and no verdict keeps back. */
  function* free(): Generator<WaitingBelow> {
    for (const one of waiting()) if (one.orderingKey === null && !one.dead) yield one;
  }

  function dueIn(lanes: Parameters<WorkStore["claim"]>[0]["lanes"]): string[] {
    const left = new Map(lanes.map(({ lane, limit }) => [lane, limit]));
    const nowMs = clock.wallMs();
    const due: string[] = [];
    for (const one of free()) {
      if (left.size === 0) break;
      const lane = laneName(one);
      const room = left.get(lane);
      if (room === undefined || one.dueAtMs > nowMs) continue;
      if (room > 1) left.set(lane, room - 1);
      else left.delete(lane);
      due.push(one.id);
    }
    return due;
  }

  async function take(id: string): Promise<ClaimedMessage | null> {
    if (busy.has(id)) return null;
    busy.add(id);
    const taken = await read(id).catch(() => null);
    if (!taken) {
      busy.delete(id);
      return null;
    }
    const { message, attempt } = taken;
    const token = options.ids();
    claims.set(token, taken);
    const { topic, directTry } = message;
    const { retried } = taken;
    const fixed = { base: 0, handedDown: directTry !== undefined, suspicion: 0, retried } as const;
    return { ...message, claim: { lease: token, token }, lane: laneName({ topic, retried }), attempt, ...fixed };
  }

  async function read(id: string): Promise<Taken | null> {
    const entry = memory.get(id);
    if (entry)
      return { message: entry.message, attempt: (entry.tried?.failed.length ?? 0) + 1, retried: isRetried(entry), journal: null };
    const begun = await journal?.begin(id);
    if (!begun || !journal) return null;
    return { message: begun.entry.message, attempt: begun.attempt, retried: isRetried(begun.entry), journal };
  }

  async function settle({ id, claim, settlement, durationMs }: Settle): Promise<"settled" | "lost"> {
    const taken = claims.get(claim.token);
    if (!taken || !claims.delete(claim.token)) return "lost";
    const rung = taken.journal;
    const after = settlement.kind === "release" ? null : afterTry(settlement, durationMs);
    try {
      // Removed only now: until it was delivered, a crash leaves it to whoever comes next, with the same key.
      if (settlement.kind === "delivered") await (rung ? rung.done([id]) : memory.done(id));
      else if (rung) await rung.ended(id, after);
      else if (after) memory.ended(id, after, clock.wallMs());
    } catch {
      // What could not be written costs a repeat with the same key, never the entry.
    } finally {
      busy.delete(id);
      options.ended();
    }
    return "settled";
  }

  return {
    async lanes(which) {
      const nowMs = clock.wallMs();
      const lanes = new Map<string, Lane>();
      for (const one of free()) {
        const dueInMs = one.dueAtMs - nowMs;
        const lane = laneName(one);
        if (dueInMs < (lanes.get(lane)?.dueInMs ?? Number.POSITIVE_INFINITY)) lanes.set(lane, laneOf(one, dueInMs));
      }
      return partOf([...lanes.values()], which);
    },
    async claim({ lanes, ids }) {
      const claimed: ClaimedMessage[] = [];
      for (const id of ids ?? dueIn(lanes)) {
        const one = await take(id);
        if (one) claimed.push(one);
      }
      return claimed;
    },
    extend: async (given) => given.map(({ token }) => (claims.has(token) ? "extended" : "lost")),
    settle: (settles) => Promise.all(settles.map(settle)),
    wake(listener) {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    idle: async () => {},
    came() {
      for (const watcher of watchers) watcher({ kind: "work", lane: null });
    },
  };
}

type InLane = Pick<WaitingBelow, "topic" | "retried">;

/** What failed before waits beside what did not, here too. */
const laneName = ({ topic, retried }: InLane): string => (retried ? `again ${topic}` : topic);

const laneOf = ({ topic, retried }: InLane, dueInMs: number): Lane => ({
  ...{ lane: laneName({ topic, retried }), topic, tenantId: null, priority: 0, suspicion: 0, retried, ordered: false, dueInMs },
});

const isRetried = ({ message, tried }: HandedDown): boolean => message.directTry !== undefined || (tried ?? null) !== null;

function afterTry(settlement: Exclude<Settlement, { kind: "release" }>, ms: number | null): AfterTry {
  if (settlement.kind === "delivered") return { failed: null, delayMs: 0, dead: false };
  const { code, error } = settlement;
  const failed: FailedTry = { outcome: settlement.outcome as FailedTry["outcome"], code, error, ms };
  if (settlement.kind === "dead") return { failed, delayMs: 0, dead: true };
  const delayMs = settlement.kind === "retry" ? settlement.delayMs : 0;
  if (settlement.counted) return { failed, delayMs, dead: false };
  return { failed: null, delayMs: Math.max(delayMs, UNCOUNTED_MS), dead: false };
}
