/**
 * Attempts that were made below go into the store that takes the message: each is claimed and settled there as what it was, so that the
 * budget and the history are those of the message and not of the place. It only ever raises the number of attempts, and touches
 * nothing that has moved on in the store (CON-8); cut off by a crash, it is done again and counts nothing twice.
 */
import type { ClaimedMessage } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import type { Store } from "../store.ts";
import type { FailedTry } from "../tried-below.ts";

export interface Carried {
  readonly failed: readonly FailedTry[];
  readonly dead: boolean;
  /** The wait that is left before the next attempt. */
  readonly delayMs: number;
}

/** Until its attempts are written, a message is out of the reach of workers for this long. */
export const CARRY_MS = 10_000;

/** By id in this store. */
export async function carryAttempts(store: Store, owner: string, carried: ReadonlyMap<string, Carried>): Promise<void> {
  let ids: string[] = [];
  for (const [id, { failed }] of carried) if (await isBehind(store, id, failed.length)) ids.push(id);
  while (ids.length > 0) {
    const claimed = await store.claim({ owner, leaseMs: CARRY_MS, lanes: [], ids });
    if (claimed.length === 0) return;
    await store.settle(
      claimed.map((one) => ({
        ...{ id: one.id, claim: one.claim, attempt: one.attempt },
        durationMs: carried.get(one.id)?.failed[one.attempt - 1]?.ms ?? null,
        settlement: settlementOf(one, carried.get(one.id) as Carried),
      })),
    );
    ids = claimed.filter(({ id, attempt }) => attempt < (carried.get(id) as Carried).failed.length).map(({ id }) => id);
  }
}

async function isBehind(store: Store, id: string, attempts: number): Promise<boolean> {
  const view = await store.get(id);
  if (view?.status !== "pending" || view.heldReason !== null) return false;
  return view.generation === 0 && view.attempts < attempts;
}

function settlementOf({ attempt, suspicion }: ClaimedMessage, { failed, dead, delayMs }: Carried): Settlement {
  const one = failed[attempt - 1];
  // Somebody was faster since we looked: as if we had not been here.
  if (!one) return { kind: "release" };
  const { outcome, code, error } = one;
  if (attempt < failed.length) {
    return { kind: "retry", delayMs: CARRY_MS, counted: true, suspicion, outcome, code, error };
  }
  if (dead) return { kind: "dead", blocksOrder: false, outcome, code, error };
  return { kind: "retry", delayMs, counted: true, suspicion, outcome, code, error };
}
