/**
 * Offers entries to a store that may have them already: put-if-absent and nothing else (CON-8), then the attempts that were made
 * of them below, so that budget and history are those of the message and not of the place. What the store has under the same id
 * or key stays as it is, in any state. A store that cannot be used throws; what one entry alone is to blame for is a value.
 */
import { conclude, released } from "../../message/conclude.ts";
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { Accepted, ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Store } from "../store.ts";
import type { HandedDown } from "./format/handed-down.ts";
import { madeAttempt, type TriedBelow } from "./format/tried-below.ts";

export type Offered =
  /** `id`: under which the store has it. */
  | { readonly kind: "taken"; readonly duplicate: boolean; readonly id: string }
  /** Another payload has its key. */
  | { readonly kind: "conflict"; readonly reason: string }
  /** It will never be taken as it is. */
  | { readonly kind: "never"; readonly reason: string }
  /** Not now, for a reason of its own; the others may go on. */
  | { readonly kind: "later"; readonly reason: string };

export interface OfferDeps {
  readonly to: Store;
  /** Of the claims under which attempts are carried over. */
  readonly owner: string;
  readonly ids: () => string;
  /** Wall clock. */
  readonly now: () => number;
}

/** Until its attempts are written, a message is out of the reach of workers for this long. */
const CARRY_MS = 10_000;

/** In the order given. */
export async function offer(entries: readonly HandedDown[], deps: OfferDeps): Promise<Offered[]> {
  if (entries.length === 0) return [];
  const results = await put(
    entries.map(({ message, tried }) => (tried ? { ...message, delayMs: CARRY_MS } : message)),
    deps,
  );
  const tries = new Map<string, TriedBelow>();
  for (const [i, { tried }] of entries.entries()) {
    const result = results[i];
    if (tried && result?.kind === "taken" && !result.duplicate) tries.set(result.id, tried);
  }
  await carryTries(deps, tries);
  return results;
}

async function put(messages: readonly NewMessage[], deps: OfferDeps): Promise<Offered[]> {
  try {
    const results = await deps.to.enqueue(messages, { atomic: "each" });
    return results.map((result, i) => offered(result, messages[i] as NewMessage));
  } catch (error) {
    if (isMakegoodError(error) && error.retryable) throw error;
    if (messages.length === 1) return [await alone(error, messages[0] as NewMessage, deps)];
    // One of them spoils the call: each by itself.
    const results: Offered[] = [];
    for (const message of messages) results.push(...(await put([message], deps)));
    return results;
  }
}

function offered(result: Accepted, message: NewMessage): Offered {
  if (result.kind !== "conflict") return { kind: "taken", duplicate: result.kind === "duplicate", id: result.id };
  return {
    kind: "conflict",
    reason: `key ${JSON.stringify(message.key)} belongs to message ${result.id}, which has another payload`,
  };
}

async function alone(error: unknown, message: NewMessage, deps: OfferDeps): Promise<Offered> {
  const reason = errorText(error);
  if (!isMakegoodError(error) || error.code === "unknown_topic") return { kind: "later", reason };
  if (error.code === "closed") throw error;
  if (error.code !== "clock_out_of_range") return { kind: "never", reason };
  // Older than what the store still makes room for: a new id, and the old one as the key where there was none, so that the receiver
  // sees the same effect (I7) and a second move finds the first.
  const again = { ...message, id: deps.ids(), key: message.key ?? message.id, payloadHash: payloadHash(message.payload) };
  const [result] = await deps.to.enqueue([again], { atomic: "each" });
  return result ? offered(result, again) : { kind: "later", reason };
}

/**
 * Each attempt is claimed and settled as what it was. That only ever raises the number of attempts, and touches nothing that has moved on in the
 * store (CON-8); cut off by a crash, it is done again and counts nothing twice. `tries`: by id in this store.
 */
async function carryTries({ to, owner }: OfferDeps, tries: ReadonlyMap<string, TriedBelow>): Promise<void> {
  let ids: string[] = [];
  for (const [id, { failed }] of tries) if (await isBehind(to, id, failed.length)) ids.push(id);
  while (ids.length > 0) {
    const claimed = await to.claim({ owner, leaseMs: CARRY_MS, lanes: [], ids });
    if (claimed.length === 0) return;
    await to.settle(claimed.map((one) => carried(one, tries.get(one.id) as TriedBelow)));
    ids = claimed.filter(({ id, attempt }) => attempt < (tries.get(id)?.failed.length ?? 0)).map(({ id }) => id);
  }
}

async function isBehind(store: Store, id: string, attempts: number): Promise<boolean> {
  const view = await store.get(id);
  if (view?.status !== "pending" || view.heldReason !== null) return false;
  return view.generation === 0 && view.attempts < attempts;
}

function carried(one: ClaimedMessage, tried: TriedBelow): Settle {
  const attempt = madeAttempt(tried, one.attempt - 1, CARRY_MS);
  // No claim: a worker was faster since we looked, and nothing is done here.
  return attempt ? conclude(one, { kind: "made", attempt }, undefined, 0, attempt.durationMs) : released(one);
}
