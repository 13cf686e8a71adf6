/**
 * Offers entries to a store that may have them already: put-if-absent and nothing else (CON-8). What the store has under the same id or key
 * stays as it is, whatever became of it. A store that cannot be used throws; what one entry alone is to blame for is a value.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import { payloadHash } from "../../message/validate.ts";
import { dueMessage, type HandedDown } from "../handed-down.ts";
import type { Store } from "../store.ts";
import { CARRY_MS, type Carried, carryAttempts } from "./carry-attempts.ts";

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
  readonly store: Store;
  /** Of the claims under which attempts are carried over. */
  readonly owner: string;
  readonly ids: () => string;
  readonly nowMs: number;
}

/** In the order given. */
export async function offer(entries: readonly HandedDown[], deps: OfferDeps): Promise<Offered[]> {
  if (entries.length === 0) return [];
  const results = await put(entries, deps);
  const carried = new Map<string, Carried>();
  for (const [i, entry] of entries.entries()) {
    const result = results[i];
    if (result?.kind !== "taken" || result.duplicate || !hasAttempts(entry)) continue;
    carried.set(result.id, { ...entry.tried, delayMs: dueMessage(entry, deps.nowMs).delayMs });
  }
  if (carried.size > 0) await carryAttempts(deps.store, deps.owner, carried);
  return results;
}

type Attempted = HandedDown & { readonly tried: NonNullable<HandedDown["tried"]> };

const hasAttempts = (entry: HandedDown): entry is Attempted => (entry.tried?.failed.length ?? 0) > 0;

async function put(entries: readonly HandedDown[], deps: OfferDeps): Promise<Offered[]> {
  const messages = entries.map((entry) =>
    hasAttempts(entry) ? { ...entry.message, delayMs: CARRY_MS } : dueMessage(entry, deps.nowMs),
  );
  try {
    const results = await deps.store.enqueue(messages, { atomic: "each" });
    return results.map((result, i) => offered(result, messages[i] as NewMessage));
  } catch (error) {
    if (isMakegoodError(error) && error.retryable) throw error;
    if (entries.length === 1) return [await alone(error, messages[0] as NewMessage, deps)];
    // One of them spoils the call: each by itself.
    const results: Offered[] = [];
    for (const entry of entries) results.push(...(await put([entry], deps)));
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
  const [result] = await deps.store.enqueue([again], { atomic: "each" });
  return result ? offered(result, again) : { kind: "later", reason };
}
