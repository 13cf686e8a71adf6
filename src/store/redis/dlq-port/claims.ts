/**
 * The port's claims: the store's own, by id. A token carries all that a settle needs, so that any instance can use it; the
 * store's token in it is the fence (DF-4). After a counted attempt the store's claim has ended, and the token stands for the next
 * one until another caller claims it.
 */
import { conclude, released, topicRules } from "../../../message/conclude.ts";
import type { ClaimedMessage, MessageView } from "../../../message/message.ts";
import type { Settlement } from "../../../message/settlement.ts";
import type { TopicDefinition } from "../../../message/topic.ts";
import { payloadHash } from "../../../message/validate.ts";
import type { Random } from "../../../platform/random.ts";
import type { Store } from "../../store.ts";
import { checkId, TOPIC } from "./entry.ts";

/** As settlement declares it, for a caller that has only the port. */
export const DEFINITION: TopicDefinition = {
  ...{ name: TOPIC, sink: { kind: "function" }, retry: { policy: "settlement" }, schemaVersion: null, leaseMs: 30_000 },
  ...{ concurrency: null, tenantConcurrency: null, ordering: "none" },
};
/** For a claim that is settled at once. */
const SHORT_MS = 10_000;

export type Held = Pick<ClaimedMessage, "id" | "claim" | "attempt">;

interface ClaimParts {
  readonly store: Store;
  readonly owner: string;
  readonly random: Random;
  readonly find: (reservationId: string) => Promise<MessageView | null>;
}

export function createClaims({ store, owner, random, find }: ClaimParts) {
  /** Claims whose attempt was counted: that write has ended them, and releaseClaim() has not confirmed it yet. */
  const ended = new Map<string, Held>();

  /**
   * Claims whose holder died: concluded as a worker concludes them. Those of other topics run out again, for their own workers.
   */
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

  /**
   * What a token may change: its live claim; after a counted attempt a new one, if no other caller claimed it in between; without
   * one, what is free.
   */
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
