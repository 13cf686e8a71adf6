/**
 * Moves what the secondary store took during an outage into the primary one: claimed there, put here if absent, settled there. What a worker
 * of the secondary store has begun to attempt stays there and is delivered there; attempts are never thrown away.
 */
import { type DecideRules, decide } from "../../message/decide.ts";
import { LIMITS } from "../../message/limits.ts";
import type { ClaimedMessage, MessageView, NewMessage } from "../../message/message.ts";
import { RETRY_POLICIES, type RetryPolicy } from "../../message/retry-policy.ts";
import type { Settlement } from "../../message/settlement.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Store } from "../store.ts";
import { type OfferDeps, type Offered, offer } from "./offer.ts";

export interface MoveDeps extends OfferDeps {
  readonly secondary: Store;
  readonly owner: string;
  /** Only these: others may use the secondary store for topics of their own. */
  readonly topics: readonly string[];
  readonly told: (message: NewMessage, offered: Offered) => void;
}

const BATCH = 100;
const LEASE_MS = 30_000;
const MOVED: Settlement = { kind: "delivered", outcome: "delivered" };
const CONFLICT = "key_conflict";
const LOST_RULES: DecideRules = { policy: RETRY_POLICIES.get("exponential") as RetryPolicy, ordering: "key", onUnknown: "retry" };

/** Returns how many the primary store has now that were only below before. */
export async function moveUp(deps: MoveDeps): Promise<number> {
  await takeBack(deps);
  let moved = 0;
  for (const topic of deps.topics) moved += (await movePending(deps, topic)) + (await moveDead(deps, topic));
  return moved + (await moveOrdered(deps));
}

/**
 * Leases that ran out: of a move that was cut off, because perhaps nobody works on the secondary store who would find it, and of
 * its own workers, judged as they would judge them.
 */
async function takeBack(deps: MoveDeps): Promise<void> {
  const { secondary, owner, topics } = deps;
  for (;;) {
    const lost = await secondary.reclaim({ owner, leaseMs: LEASE_MS, limit: BATCH });
    await settleAll(deps, lost, (i) => {
      const one = lost[i] as ClaimedMessage;
      return one.attempt === 1 && topics.includes(one.topic)
        ? { kind: "release" }
        : decide(one, { kind: "lost" }, LOST_RULES, 0.5);
    });
    if (lost.length < BATCH) return;
  }
}

async function movePending(deps: MoveDeps, topic: string): Promise<number> {
  let moved = 0;
  let cursor: string | undefined;
  do {
    const page = await deps.secondary.list({ status: "pending", topic, payload: false, limit: BATCH, cursor });
    cursor = page.nextCursor ?? undefined;
    const views = new Map(page.data.filter(isUntouched).map((view) => [view.id, view]));
    if (views.size === 0) continue;
    const claimed = await deps.secondary.claim({ owner: deps.owner, leaseMs: LEASE_MS, lanes: [], ids: [...views.keys()] });
    moved += await carry(deps, claimed, views);
  } while (cursor !== undefined);
  return moved;
}

const isUntouched = ({ attempts, heldReason, orderingKey, generation }: MessageView): boolean =>
  attempts === 0 && heldReason === null && orderingKey === null && generation === 0;

/** Ordered ones go up in their order: only the head of a key can be claimed, and it is settled before the next one is. */
async function moveOrdered(deps: MoveDeps): Promise<number> {
  let moved = 0;
  for (;;) {
    const lanes = (await deps.secondary.lanes())
      .filter(({ ordered, topic, dueInMs }) => ordered && dueInMs <= 0 && deps.topics.includes(topic))
      .map(({ lane }) => ({ lane, limit: BATCH }));
    if (lanes.length === 0) return moved;
    const claimed = await deps.secondary.claim({ owner: deps.owner, leaseMs: LEASE_MS, lanes, bytesMax: LIMITS.claimBytesMax });
    const begun = claimed.filter(({ attempt }) => attempt > 1);
    await settleAll(deps, begun, () => ({ kind: "release" }));
    const carried = await carry(
      deps,
      claimed.filter(({ attempt }) => attempt === 1),
      new Map(),
    );
    if (carried === 0) return moved;
    moved += carried;
  }
}

async function carry(
  deps: MoveDeps,
  claimed: readonly ClaimedMessage[],
  views: ReadonlyMap<string, MessageView>,
): Promise<number> {
  if (claimed.length === 0) return 0;
  const messages = claimed.map((one) => asNew(one, one.handedDown, views.get(one.id), deps.nowMs));
  let results: Offered[];
  try {
    results = await offer(
      messages.map((message) => ({ message, atMs: deps.nowMs })),
      deps,
    );
  } catch (error) {
    await settleAll(deps, claimed, () => ({ kind: "release" })).catch(() => {});
    throw error;
  }
  await settleAll(deps, claimed, (i) => settlementOf(results[i] as Offered));
  for (const [i, result] of results.entries()) deps.told(messages[i] as NewMessage, result);
  return results.filter(({ kind }) => kind === "taken").length;
}

function settlementOf(result: Offered): Settlement {
  if (result.kind === "taken") return MOVED;
  if (result.kind === "later") return { kind: "release" };
  // Its quarantine: an open dead letter of the secondary store.
  return { kind: "dead", blocksOrder: false, outcome: "reject", code: CONFLICT, error: result.reason };
}

async function settleAll(
  deps: MoveDeps,
  claimed: readonly ClaimedMessage[],
  settlement: (i: number) => Settlement,
): Promise<void> {
  if (claimed.length === 0) return;
  const settles = claimed.map(({ id, claim, attempt }, i) => ({
    id,
    claim,
    attempt,
    durationMs: null,
    settlement: settlement(i),
  }));
  await deps.secondary.settle(settles);
}

type Fixed = Pick<
  ClaimedMessage,
  "id" | "topic" | "tenantId" | "key" | "payload" | "priority" | "orderingKey" | "traceparent" | "schemaVersion"
>;

function asNew(one: Fixed, handedDown: boolean, view: MessageView | undefined, nowMs: number, rejected = false): NewMessage {
  const { id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion } = one;
  const direct = { code: view?.lastCode ?? null, error: view?.lastError ?? null };
  return {
    ...{ id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion },
    payloadHash: key === null ? "" : payloadHash(payload),
    delayMs: Math.max(0, Math.min((view?.dueAt?.getTime() ?? nowMs) - nowMs, LIMITS.delayMsMax)),
    ...(handedDown ? { directTry: rejected ? { ...direct, rejected: true } : direct } : {}),
  };
}

/** Refused in their direct try while the primary store was away. */
async function moveDead(deps: MoveDeps, topic: string): Promise<number> {
  let moved = 0;
  let cursor: string | undefined;
  do {
    const page = await deps.secondary.list({ status: "dead", resolution: "open", topic, limit: BATCH, cursor });
    cursor = page.nextCursor ?? undefined;
    const views = page.data.filter(({ attempts, lastCode }) => attempts === 0 && lastCode !== CONFLICT);
    const messages = views.map((view) => asNew(view, true, { ...view, dueAt: null }, deps.nowMs, true));
    const results = await offer(
      messages.map((message) => ({ message, atMs: deps.nowMs })),
      deps,
    );
    for (const [i, result] of results.entries()) {
      deps.told(messages[i] as NewMessage, result);
      if (result.kind !== "taken") continue;
      moved++;
      const reason = "moved to the primary store";
      await deps.secondary.intervene({ id: (messages[i] as NewMessage).id, action: "resolve", actor: "ladder", reason });
    }
  } while (cursor !== undefined);
  return moved;
}
