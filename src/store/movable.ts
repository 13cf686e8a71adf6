/**
 * The seam for moving messages between stores: each is read and written exactly as it stands, with its attempts, its times, its place and
 * its history. What is there already is never changed, so that a move can be cut off anywhere and made again. Every engine passes
 * testing/movable-conformance.
 */
import type { AttemptRecord, MessageView, ProvenanceRecord, Suspicion } from "../message/message.ts";
import type { Store } from "./store.ts";

/** `processing`: in flight when it was read. It cannot be put: what becomes of it is for the caller to say. */
export interface MovableMessage extends Omit<MessageView, "lastError" | "lastCode"> {
  /** Attempts that were spent before this generation began. */
  readonly base: number;
  readonly suspicion: Suspicion;
  readonly retried: boolean;
  readonly handedDown: boolean;
  /** Its place among those of its ordering key; null where it has none. */
  readonly place: number | null;
  /** A dead letter that keeps its ordering key closed. */
  readonly blocksOrder: boolean;
  /** When it was delivered, resolved or discarded. */
  readonly settledAt: Date | null;
  readonly history: readonly AttemptRecord[];
  readonly provenance: readonly ProvenanceRecord[];
}

export interface MovableRead {
  /** Also what is delivered, resolved or discarded. */
  readonly all: boolean;
  /** As returned by the page before; opaque. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** The payload bytes of one page; at least one message comes even if it alone is larger. */
  readonly bytesMax: number;
}

export interface MovablePage {
  readonly messages: readonly MovableMessage[];
  readonly next: string | null;
}

/**
 * `present`: this very message is there, however it stands by now. `duplicate`: another id has its key with the same payload.
 * `conflict`: its id or its key belongs to another payload. But for `put` nothing was written; `id` is the one that is there.
 */
export interface PutResult {
  readonly kind: "put" | "present" | "duplicate" | "conflict";
  readonly id: string;
}

export interface Movable {
  /** In the store's own order. A message that is there from the first page to the last is read exactly once, however it moves meanwhile. */
  read(request: MovableRead): Promise<MovablePage>;
  /** Those of them that are there, as they stand now; in any order. */
  find(ids: readonly string[]): Promise<MovableMessage[]>;
  /** All in one write, each id once; answers in the order given. Their topics must be there. */
  put(messages: readonly MovableMessage[]): Promise<PutResult[]>;
}

export interface WithMovable {
  readonly movable: Movable;
}

/** Null where a store cannot be moved. */
export function movableOf(store: Store): Movable | null {
  return (store as Store & Partial<WithMovable>).movable ?? null;
}

/** The last failure that its history tells of. */
export function lastFailure(history: readonly AttemptRecord[]): AttemptRecord | undefined {
  return history.findLast(({ outcome }) => outcome !== "delivered" && outcome !== "duplicate");
}
