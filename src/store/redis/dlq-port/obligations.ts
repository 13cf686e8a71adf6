/**
 * How the port finds its messages in a store: by reservation, by what is due, by what is dead. It remembers the ids that it has seen and
 * nothing else; what it answers is read from the store each time.
 */
import { LIMITS } from "../../../message/limits.ts";
import type { MessageView } from "../../../message/message.ts";
import { payloadHash } from "../../../message/validate.ts";
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
    /**
     * Due by the store's clock, the longest due first: as many messages lie in as many lanes, those whose first one is due longest. It costs
     * the same however many wait (FIN-24).
     */
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
