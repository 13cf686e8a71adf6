/**
 * How the port finds its messages in a store, by reservation, by what is due, by what is dead, and how it claims them. It remembers the ids
 * that it has seen; what it answers is read from the store each time. Claims are the store's own, by id. A token carries all that a settle
 * needs, so that any instance can use it; the store's token in it is the fence (DF-4).
 */
import { conclude, released, topicRules } from "../../../message/conclude.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { ClaimedMessage, MessageView } from "../../../message/message.ts";
import type { Settlement } from "../../../message/settlement.ts";
import type { TopicDefinition } from "../../../message/topic.ts";
import { payloadHash } from "../../../message/validate.ts";
import type { Random } from "../../../platform/random.ts";
import type { ListFilter, Store } from "../../store.ts";
import { CONFLICT, checkId, type History, isPlain, TOPIC } from "./entry.ts";

const KNOWN_MAX = 10_000;

/** The key of a reservation that is put again after it was settled. */
export const nextKey = (reservationId: string, id: string): string => `again-${payloadHash(`${reservationId}\n${id}`)}`;

export function createObligations(store: Store) {
  const known = new Map<string, string>();

  function learn(reservationId: string, id: string): void {
    known.delete(reservationId);
    known.set(reservationId, id);
    bound(known);
  }

  async function all(filter: Partial<ListFilter>): Promise<MessageView[]> {
    const found: MessageView[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list({ topic: TOPIC, limit: LIMITS.pageMax, ...filter, cursor });
      found.push(...page.data);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return found;
  }

  const ownLanes = async (counted = false) => (await store.lanes({ counted })).filter(({ topic }) => topic === TOPIC);

  /** The reservation's message; where it was settled and put again, the last one. */
  async function find(reservationId: string): Promise<MessageView | null> {
    checkId(reservationId);
    const id = known.get(reservationId);
    let view = id === undefined ? null : await store.get(id);
    view ??= (await all({ key: reservationId })).at(-1) ?? null;
    while (view?.status === "delivered") {
      const next: MessageView | undefined = (await all({ key: nextKey(reservationId, view.id) })).at(-1);
      if (!next) break;
      view = next;
    }
    if (view) learn(reservationId, view.id);
    return view;
  }

  return {
    learn,
    knows: (reservationId: string) => known.has(reservationId),
    find,
    all,
    /** By the store's clock, the longest due first: `limit` messages lie in as many lanes. It costs the same however many wait (FIN-24). */
    async due(limit: number): Promise<MessageView[]> {
      const lanes = (await ownLanes()).filter(({ dueInMs }) => dueInMs <= 0).sort((a, b) => a.dueInMs - b.dueInMs);
      const dueIn = lanes.slice(0, limit).map(({ lane }) => lane);
      return dueIn.length === 0 ? [] : (await store.list({ dueIn, limit })).data;
    },
    /** How many are due, counted by the store; nothing is read. */
    dueCount: async (): Promise<number> => (await ownLanes(true)).reduce((sum, { due = 0 }) => sum + due, 0),
    /** The open dead letters, oldest first: terminal records, and what contradicts another. */
    async dead(payload = true) {
      const views = (await all({ status: "dead", resolution: "open", payload })).reverse().sort((a, b) => diedMs(a) - diedMs(b));
      const conflicts = views.filter(({ key }) => key?.startsWith(CONFLICT));
      return { terminal: views.filter((view) => !conflicts.includes(view)), conflicts };
    },
    // Without a replay the view says it all: fifty due entries must not cost fifty reads of history (DF-22).
    historyOf: async (view: MessageView): Promise<History> =>
      isPlain(view) ? { attempts: [], provenance: [] } : store.history(view.id),
  };
}

const diedMs = ({ diedAt }: MessageView): number => diedAt?.getTime() ?? 0;

/** The oldest go first. */
export function bound(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= KNOWN_MAX) return;
    map.delete(oldest);
  }
}

/** As settlement declares it, for a caller that has only the port. */
export const DEFINITION: TopicDefinition = {
  ...{ name: TOPIC, sink: { kind: "function" }, retry: { policy: "settlement" }, schemaVersion: null, leaseMs: 30_000 },
  ...{ concurrency: null, tenantConcurrency: null, ordering: "none" },
};
/** For a claim that is settled at once. */
const SHORT_MS = 10_000;

export type Held = Pick<ClaimedMessage, "id" | "claim" | "attempt">;

type Find = (reservationId: string) => Promise<MessageView | null>;

export function createClaims(store: Store, owner: string, random: Random, find: Find) {
  /** Claims whose attempt was counted: that write has ended them, and releaseClaim() has not confirmed it yet. */
  const ended = new Map<string, Held>();

  /** Claims whose holder died: concluded as a worker concludes them. Those of other topics run out again, for their own workers. */
  async function takeBack(): Promise<void> {
    const rules = topicRules((await store.topics.get(TOPIC)) ?? DEFINITION);
    for (;;) {
      const lost = await store.reclaim({ owner, leaseMs: 1_000, limit: 100 });
      if (lost.length === 0) return;
      const ours = lost.filter(({ topic }) => topic === TOPIC);
      await store.settle(ours.map((one) => conclude(one, { kind: "lost" }, rules, random.next())));
    }
  }

  async function claimOf(view: MessageView, leaseMs: number, due: boolean): Promise<ClaimedMessage | null> {
    if (view.status === "processing") await takeBack();
    const [claimed] = await store.claim({ owner, leaseMs, lanes: [], ids: [view.id], due });
    return claimed ?? null;
  }

  /** A token changes its live claim; after a counted attempt a new one, if nobody claimed it in between; without one, what is free. */
  async function held(reservationId: string, token: string | null): Promise<Held | null> {
    checkId(reservationId);
    if (token === null) {
      const view = await find(reservationId);
      return view && (await claimOf(view, SHORT_MS, false));
    }
    const before = ended.get(token);
    if (!before) return readToken(reservationId, token);
    const [again] = await store.claim({ owner, leaseMs: SHORT_MS, lanes: [], ids: [before.id] });
    if (!again || again.attempt === before.attempt + 1) return again ?? null;
    await store.settle([released(again)]);
    return null;
  }

  async function write(reservationId: string, token: string | null, settlement: Settlement): Promise<Held | null> {
    const claim = await held(reservationId, token);
    if (claim === null || (await store.settle([under(claim, settlement)]))[0] !== "settled") return null;
    if (token !== null) ended.delete(token);
    return claim;
  }

  return { claimOf, write, ended };
}

const under = ({ id, claim, attempt }: Held, settlement: Settlement) => ({ id, claim, attempt, durationMs: null, settlement });
const short = (reservationId: string): string => payloadHash(reservationId).slice(0, 8);

/** All that a settle needs, so that any instance can use it; the store's own token in it is the fence (DF-4). */
export function writeToken(reservationId: string, { id, claim, attempt }: Held): string {
  return [short(reservationId), id, claim.lease, claim.token, attempt].join(".");
}

export function readToken(reservationId: string, text: string): Held | null {
  const [of, id, lease, token, attempt] = text.split(".");
  if (of !== short(reservationId) || !id || !lease || !token || !attempt) return null;
  return { id, claim: { lease, token }, attempt: Number(attempt) };
}
