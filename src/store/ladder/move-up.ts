/**
 * Moves what the secondary store took during an outage into the primary one: claimed there, put here if absent, settled there. Attempts that
 * were made there go with it and are never thrown away. What a person holds or has replayed there stays, and ordered messages that
 * were begun there.
 */
import { conclude, released } from "../../message/conclude.ts";
import { LIMITS } from "../../message/limits.ts";
import type { AttemptRecord, ClaimedMessage, MessageView, NewMessage } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import { payloadHash } from "../../message/validate.ts";
import type { HandedDown } from "../handed-down.ts";
import type { Store } from "../store.ts";
import { readTry } from "../tried-below.ts";
import { type OfferDeps, type Offered, offer } from "./offer.ts";

export interface MoveDeps extends OfferDeps {
  readonly secondary: Store;
  readonly owner: string;
  /** Only these: others may use the secondary store for topics of their own. */
  readonly topics: readonly string[];
  readonly told: (message: NewMessage, offered: Offered) => void;
}

const BATCH = 100;
/** Longer than a batch takes; what a killed process had claimed comes back after it. */
const LEASE_MS = 10_000;
const MOVED: Settlement = { kind: "delivered", outcome: "delivered" };
const CONFLICT = "key_conflict";
const INTERRUPTED = "move_interrupted";

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
    const isMove = ({ attempt, topic }: ClaimedMessage): boolean => attempt === 1 && topics.includes(topic);
    if (lost.length > 0) {
      await secondary.settle(lost.map((one) => (isMove(one) ? released(one) : conclude(one, { kind: "lost" }, undefined, 0.5))));
    }
    if (lost.length < BATCH) return;
  }
}

async function movePending(deps: MoveDeps, topic: string): Promise<number> {
  let moved = 0;
  let cursor: string | undefined;
  do {
    const page = await deps.secondary.list({ status: "pending", topic, payload: false, limit: BATCH, cursor });
    cursor = page.nextCursor ?? undefined;
    const views = new Map(page.data.filter(isOurs).map((view) => [view.id, view]));
    if (views.size === 0) continue;
    const claimed = await deps.secondary.claim({ owner: deps.owner, leaseMs: LEASE_MS, lanes: [], ids: [...views.keys()] });
    moved += await carry(deps, claimed, views);
  } while (cursor !== undefined);
  return moved;
}

/** Nobody has decided about it there, and it has no place in an order. */
const isOurs = ({ heldReason, orderingKey, generation }: MessageView): boolean =>
  heldReason === null && orderingKey === null && generation === 0;

/**
 * Ordered ones go up in their order: only the head of a key can be claimed, and it is settled before the next one is. Heads that were
 * begun there stay; they are kept until the end, because given back at once they would be the first to come again and hide all others.
 */
async function moveOrdered(deps: MoveDeps): Promise<number> {
  const { secondary, owner, topics } = deps;
  const begun: ClaimedMessage[] = [];
  let moved = 0;
  try {
    for (;;) {
      const lanes = (await secondary.lanes())
        .filter(({ ordered, topic, dueInMs }) => ordered && dueInMs <= 0 && topics.includes(topic))
        .map(({ lane }) => ({ lane, limit: BATCH }));
      if (lanes.length === 0) return moved;
      const claimed = await secondary.claim({ owner, leaseMs: LEASE_MS, lanes, bytesMax: LIMITS.claimBytesMax });
      const fresh = claimed.filter(({ attempt }) => attempt === 1);
      const carried = await carry(deps, fresh, new Map());
      if (carried === 0 && claimed.length === fresh.length) return moved;
      moved += carried;
      begun.push(...claimed.filter(({ attempt }) => attempt > 1));
      const leases = new Map(begun.map(({ claim }) => [claim.lease, claim]));
      await secondary.extend([...leases.values()], LEASE_MS);
    }
  } finally {
    await settleAll(deps, begun, () => ({ kind: "release" }));
  }
}

async function carry(
  deps: MoveDeps,
  claimed: readonly ClaimedMessage[],
  views: ReadonlyMap<string, MessageView>,
): Promise<number> {
  if (claimed.length === 0) return 0;
  const back = (i: number): Settlement => putBack(views.get((claimed[i] as ClaimedMessage).id), deps.nowMs);
  let entries: HandedDown[];
  let results: Offered[];
  try {
    entries = await Promise.all(claimed.map((one) => asEntry(deps, one, one.handedDown, views.get(one.id))));
    results = await offer(entries, deps);
  } catch (error) {
    await settleAll(deps, claimed, back).catch(() => {});
    throw error;
  }
  await settleAll(deps, claimed, (i) => settlementOf(results[i] as Offered, () => back(i)));
  for (const [i, result] of results.entries()) deps.told((entries[i] as HandedDown).message, result);
  return results.filter(({ kind }) => kind === "taken").length;
}

/** As if it had not been claimed, its wait included: a release alone would make it due at once. */
function putBack(view: MessageView | undefined, nowMs: number): Settlement {
  const delayMs = (view?.dueAt?.getTime() ?? 0) - nowMs;
  if (delayMs <= 0) return { kind: "release" };
  const why = {
    outcome: "interrupted",
    code: "move_interrupted",
    error: "the primary store went away while it was moved",
  } as const;
  return { kind: "retry", delayMs, counted: false, suspicion: 0, ...why };
}

function settlementOf(result: Offered, back: () => Settlement): Settlement {
  if (result.kind === "taken") return MOVED;
  if (result.kind === "later") return back();
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

/** The message as it goes up, with the attempts that were made there. `view`: as it stood before it was claimed. */
async function asEntry(deps: MoveDeps, one: Fixed, handedDown: boolean, view: MessageView | undefined): Promise<HandedDown> {
  const { id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion } = one;
  const { nowMs: atMs } = deps;
  const more = view && (view.attempts > 0 || view.lastCode === INTERRUPTED);
  const attempts = more ? (await deps.secondary.history(id)).attempts : [];
  const first = attempts.find(({ attempt }) => attempt === 0) ?? { code: view?.lastCode ?? null, error: view?.lastError ?? null };
  const direct = { code: first.code, error: first.error };
  const dead = view?.status === "dead";
  const delayMs = Math.max(0, Math.min((view?.dueAt?.getTime() ?? atMs) - atMs, LIMITS.delayMsMax));
  const failed = attempts
    .filter(isFailed)
    .map(({ outcome, code, error, durationMs: ms }) => readTry({ outcome, code, error, ms }));
  const message: NewMessage = {
    ...{ id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion, delayMs },
    payloadHash: key === null ? "" : payloadHash(payload),
    ...(handedDown ? { directTry: dead && failed.length === 0 ? { ...direct, rejected: true } : direct } : {}),
  };
  return failed.length > 0 ? { message, atMs, tried: { failed, atMs, delayMs, dead } } : { message, atMs };
}

const isFailed = ({ counted, outcome }: AttemptRecord): boolean => counted && outcome !== "delivered" && outcome !== "duplicate";

/** Refused while the primary store was away, in the direct try or in an attempt there. */
async function moveDead(deps: MoveDeps, topic: string): Promise<number> {
  let moved = 0;
  let cursor: string | undefined;
  do {
    const page = await deps.secondary.list({ status: "dead", resolution: "open", topic, limit: BATCH, cursor });
    cursor = page.nextCursor ?? undefined;
    const views = page.data.filter((view) => isOurs(view) && view.lastCode !== CONFLICT);
    const entries = await Promise.all(views.map((view) => asEntry(deps, view, true, view)));
    const results = await offer(entries, deps);
    for (const [i, result] of results.entries()) {
      const { message } = entries[i] as HandedDown;
      deps.told(message, result);
      if (result.kind !== "taken") continue;
      moved++;
      const reason = "moved to the primary store";
      await deps.secondary.intervene({ id: message.id, action: "resolve", actor: "ladder", reason });
    }
  } while (cursor !== undefined);
  return moved;
}
