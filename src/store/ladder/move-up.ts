/**
 * The way up, from any place below: claimed there, put into the store above if absent, settled there. Attempts that were made
 * below go with it and are never thrown away. What a person holds or has replayed there stays, and ordered messages that were
 * begun in a store.
 */
import { conclude, released } from "../../message/conclude.ts";
import { LIMITS } from "../../message/limits.ts";
import type { ClaimedMessage, MessageView, NewMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Intervention, ListFilter, Store } from "../store.ts";
import type { HandedDown } from "./format/handed-down.ts";
import { triedIn } from "./format/tried-below.ts";
import { type OfferDeps, type Offered, offer } from "./offer.ts";

/** What is needed of a place below. */
export interface Source extends Pick<Store, "list" | "claim" | "settle" | "history"> {
  intervene(intervention: Intervention): Promise<unknown>;
  /** This process's alone: its claims by id take also what carries an ordering key, in its order, and a release leaves the wait as it was. */
  readonly own?: boolean | undefined;
  /** It will never be taken as it is; absent: it becomes, or stays, an open dead letter there. */
  quarantine?(id: string, reason: string): Promise<void>;
}

/** One that others use, too, whose claims may be lost and whose ordered messages are claimed in their order. */
export type SharedSource = Source & Pick<Store, "lanes" | "extend" | "reclaim">;

export interface MoveDeps extends OfferDeps {
  readonly from: Source | SharedSource;
  /** Only these: others may use the place for topics of their own. Null: all are ours. */
  readonly topics: readonly string[] | null;
  readonly mayGo: (view: MessageView) => boolean;
  /** False: a store further up has the last word on what this one will not take. */
  readonly isLast: boolean;
  readonly onOffered: (message: NewMessage, offered: Offered) => void;
}

const BATCH = 100;
/** Longer than a batch takes; what a killed process had claimed comes back after it. */
const LEASE_MS = 10_000;
const CONFLICT = "key_conflict";
const INTERRUPTED = "move_interrupted";

type Shared = MoveDeps & { readonly from: SharedSource; readonly topics: readonly string[] };

const isShared = (deps: MoveDeps): deps is Shared => "reclaim" in deps.from;

export async function moveUp(deps: MoveDeps): Promise<void> {
  if (isShared(deps)) await takeBack(deps);
  for (const topic of deps.topics ?? [undefined]) {
    await byPages(deps, { status: "pending", topic, payload: false, limit: BATCH }, movePending);
    await byPages(deps, { status: "dead", resolution: "open", topic, limit: BATCH }, moveDead);
  }
  if (isShared(deps)) await moveOrdered(deps);
}

/**
 * Leases that ran out: of a move that was cut off, because the secondary store may have no worker that would find it, and of
 * its own workers, concluded as they would conclude them.
 */
async function takeBack({ from, owner, topics }: Shared): Promise<void> {
  for (;;) {
    const lost = await from.reclaim({ owner, leaseMs: LEASE_MS, limit: BATCH });
    const isMove = ({ attempt, topic }: ClaimedMessage): boolean => attempt === 1 && topics.includes(topic);
    if (lost.length > 0)
      await from.settle(lost.map((one) => (isMove(one) ? released(one) : conclude(one, { kind: "lost" }, undefined, 0.5))));
    if (lost.length < BATCH) return;
  }
}

type Step = (deps: MoveDeps, views: readonly MessageView[]) => Promise<unknown>;

async function byPages(deps: MoveDeps, filter: ListFilter, step: Step): Promise<void> {
  let cursor: string | undefined;
  do {
    const { data, nextCursor } = await deps.from.list({ ...filter, cursor });
    const views = data.filter((view) => isOurs(view, deps.from) && deps.mayGo(view));
    if (views.length > 0) await step(deps, views);
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
}

/** No person has decided about it there, and it has no place in an order of that store. */
function isOurs({ status, heldReason, orderingKey, generation, lastCode }: MessageView, { own = false }: Source): boolean {
  if (heldReason !== null || generation > 0) return false;
  return own || (orderingKey === null && !(status === "dead" && lastCode === CONFLICT));
}

async function movePending(deps: MoveDeps, views: readonly MessageView[]): Promise<void> {
  const ids = views.map(({ id }) => id);
  const claimed = await deps.from.claim({ owner: deps.owner, leaseMs: LEASE_MS, lanes: [], ids });
  await carry(deps, claimed, new Map(views.map((view) => [view.id, view])));
}

/**
 * Ordered ones go up in their order: only the head of a key can be claimed, and it is settled before the next one is. Heads that were
 * begun there stay; they are kept until the end, because given back at once they would be the first to come again and hide all others.
 */
async function moveOrdered(deps: Shared): Promise<void> {
  const { from, owner, topics } = deps;
  const begun: ClaimedMessage[] = [];
  try {
    for (;;) {
      const lanes = (await from.lanes())
        .filter(({ ordered, topic, dueInMs }) => ordered && dueInMs <= 0 && topics.includes(topic))
        .map(({ lane }) => ({ lane, limit: BATCH }));
      if (lanes.length === 0) return;
      const claimed = await from.claim({ owner, leaseMs: LEASE_MS, lanes, bytesMax: LIMITS.claimBytesMax });
      const fresh = claimed.filter(({ attempt }) => attempt === 1);
      const carried = await carry(deps, fresh, new Map());
      if (carried === 0 && claimed.length === fresh.length) return;
      begun.push(...claimed.filter(({ attempt }) => attempt > 1));
      const leases = new Map(begun.map(({ claim }) => [claim.lease, claim]));
      await from.extend([...leases.values()], LEASE_MS);
    }
  } finally {
    if (begun.length > 0) await from.settle(begun.map(released));
  }
}

/** Returns how many the store above has now. */
async function carry(
  deps: MoveDeps,
  claimed: readonly ClaimedMessage[],
  views: ReadonlyMap<string, MessageView>,
): Promise<number> {
  if (claimed.length === 0) return 0;
  const { from } = deps;
  const back = (one: ClaimedMessage): Settle => (from.own ? released(one) : putBack(one, views.get(one.id), deps.now()));
  let entries: HandedDown[];
  let results: Offered[];
  try {
    entries = await Promise.all(claimed.map((one) => asEntry(deps, one, one.handedDown, views.get(one.id))));
    results = await offer(entries, deps);
  } catch (error) {
    await from.settle(claimed.map(back)).catch(() => {});
    throw error;
  }
  for (const [i, result] of results.entries()) deps.onOffered((entries[i] as HandedDown).message, result);
  await from.settle(claimed.map((one, i) => afterOffer(deps, one, results[i] as Offered) ?? back(one)));
  await quarantine(deps, claimed, results);
  return results.filter(({ kind }) => kind === "taken").length;
}

/** Null: it stays where it is. */
function afterOffer({ isLast }: MoveDeps, one: ClaimedMessage, result: Offered): Settle | null {
  if (result.kind === "taken") return conclude(one, { kind: "delivered" });
  if (result.kind === "later" || !isLast) return null;
  // Its quarantine in a store: an open dead letter.
  return conclude(one, { kind: "reject", code: CONFLICT, error: result.reason });
}

async function quarantine(
  { from, isLast }: MoveDeps,
  ones: readonly { id: string }[],
  results: readonly Offered[],
): Promise<void> {
  for (const [i, { id }] of ones.entries()) {
    const result = results[i] as Offered;
    if (isLast && (result.kind === "conflict" || result.kind === "never")) await from.quarantine?.(id, result.reason);
  }
}

/** As if it had not been claimed, its wait included: a release alone would make it due at once. */
function putBack(one: ClaimedMessage, view: MessageView | undefined, nowMs: number): Settle {
  const waitMs = (view?.nextAttemptAt?.getTime() ?? 0) - nowMs;
  if (waitMs <= 0) return released(one);
  const error = "the primary store went away while it was moved";
  return conclude(one, { kind: "interrupted", move: { waitMs, error } });
}

type Fixed = Pick<
  ClaimedMessage,
  "id" | "topic" | "tenantId" | "key" | "payload" | "priority" | "orderingKey" | "traceparent" | "schemaVersion"
>;

/** The message as it goes up, with the attempts that were made there. `view`: as it stood before it was claimed. */
async function asEntry(deps: MoveDeps, one: Fixed, handedDown: boolean, view: MessageView | undefined): Promise<HandedDown> {
  const { id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion } = one;
  const atMs = deps.now();
  const more = view && (view.attempts > 0 || view.lastCode === INTERRUPTED);
  const attempts = more ? (await deps.from.history(id)).attempts : [];
  const first = attempts.find(({ attempt }) => attempt === 0) ?? { code: view?.lastCode ?? null, error: view?.lastError ?? null };
  const direct = { code: first.code, error: first.error };
  const dead = view?.status === "dead";
  const dueMs = view?.nextAttemptAt?.getTime() ?? atMs;
  // Never longer than the wait was when it began, also when a clock was set back meanwhile.
  const wholeMs = dueMs - ((attempts.at(-1)?.at ?? view?.createdAt)?.getTime() ?? dueMs);
  const delayMs = Math.max(0, Math.min(dueMs - atMs, wholeMs, LIMITS.delayMsMax));
  const tried = triedIn(attempts, dead, atMs, delayMs);
  const message: NewMessage = {
    ...{ id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion, delayMs },
    payloadHash: key === null ? "" : payloadHash(payload),
    ...(handedDown ? { directTry: dead && !tried ? { ...direct, rejected: true } : direct } : {}),
  };
  return { message, atMs, tried };
}

/** Refused while the primary store was away, in the direct try or in an attempt there. */
async function moveDead(deps: MoveDeps, views: readonly MessageView[]): Promise<void> {
  const entries = await Promise.all(views.map((view) => asEntry(deps, view, true, view)));
  const results = await offer(entries, deps);
  for (const [i, result] of results.entries()) {
    const { message } = entries[i] as HandedDown;
    deps.onOffered(message, result);
    if (result.kind !== "taken") continue;
    const reason = "moved to the primary store";
    await deps.from.intervene({ id: message.id, action: "resolve", actor: "ladder", reason });
  }
  await quarantine(deps, views, results);
}
