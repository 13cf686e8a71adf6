/**
 * The redrive part of the recovery seam: a durable operation over a frozen list of messages. What is done to a message and what its item
 * says of it are one write under the operation's fence, so that a killed runner is continued and never repeats an item; what became of
 * the message is read from the message itself.
 */
import type { MessageView, NewMessage } from "../message/message.ts";
import type { NewProvenance, Paged } from "./recovery.ts";
import type { At } from "./store.ts";

/**
 * replay: the same message, same key, next generation. new_key: a new message under a new key, the old one resolved. copy: a message to
 * another topic carries the effect; once that is delivered, the old one is resolved. resolve: ended with the reason. watch:
 * nothing is done to it, only what becomes of it is recorded.
 */
export type RedriveMode = "replay" | "new_key" | "copy" | "resolve" | "watch";

/** planned: frozen and shown (dry run), waits for a person. stopped: by itself, because too much failed. */
export type RedriveStatus = "planned" | "running" | "paused" | "stopped" | "cancelled" | "done";

/** Open dead letters that fit all members given; `ids`: exactly these, of those that fit. */
export interface RedriveSelect {
  readonly groupId?: number | undefined;
  readonly topic?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly code?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  /** At most so many, oldest death first. */
  readonly limit: number;
  /** Messages of this generation or above are listed as skipped: replayed often enough. */
  readonly generationMax: number;
}

export interface NewRedrive {
  readonly id: string;
  /** Pressing twice is one redrive: the same key gives the first one back. */
  readonly requestKey: string | null;
  readonly requestHash: string;
  readonly status: "planned" | "running";
  readonly mode: RedriveMode;
  /** What is learned from it, and for which candidate it runs. */
  readonly action: string | null;
  readonly candidateId: number | null;
  readonly actor: string;
  readonly reason: string;
  readonly select: RedriveSelect;
  /** The runner's policy (canary, rate, bound), JSON text. */
  readonly plan: string;
  /** With the write: the candidate must still carry this execution, and gets this redrive. */
  readonly executionId?: string | undefined;
  readonly provenance: readonly NewProvenance[];
}

export interface RedriveCounts {
  readonly selected: number;
  readonly waiting: number;
  /** Sent, and not known yet what became of it. */
  readonly sent: number;
  readonly healed: number;
  readonly failed: number;
  /** Not touched: moved on since, generation cap. */
  readonly skipped: number;
}

export interface Redrive extends Omit<NewRedrive, "provenance" | "status" | "executionId" | "requestHash"> {
  readonly status: RedriveStatus;
  /** Why it stands as it does: who paused it, why it stopped. */
  readonly statusReason: string | null;
  readonly version: number;
  readonly counts: RedriveCounts;
  /** The runner's own state between steps (canary passed, ramp), JSON text. */
  readonly state: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}

export type RedriveStarted =
  | { readonly kind: "started" | "same"; readonly redrive: Redrive }
  /** The request key belongs to a redrive of another request. */
  | { readonly kind: "conflict"; readonly redrive: Redrive }
  /** The candidate is no longer executing under this execution. */
  | { readonly kind: "lost" };

/** waiting → sent → healed | failed; waiting → skipped. */
export type ItemState = "waiting" | "sent" | "healed" | "failed" | "skipped";

export interface RedriveItem {
  /** Its place in the list, from 1. */
  readonly n: number;
  readonly messageId: string;
  /** As they were when the list was frozen. */
  readonly generation: number;
  readonly revision: number;
  readonly groupId: number | null;
  readonly state: ItemState;
  readonly reason: string | null;
  /** The message that carries the effect where it is another one (new_key, copy). */
  readonly carrierId: string | null;
  readonly sentAt: Date | null;
  readonly endedAt: Date | null;
}

export interface RedriveClaim {
  readonly redrive: Redrive;
  readonly token: string;
}

export interface RedrivePreview {
  readonly messages: number;
  readonly overGeneration: number;
  readonly topics: readonly { readonly topic: string; readonly messages: number }[];
  readonly tenants: number;
  readonly oldestAt: Date | null;
}

export interface MessageOrigin {
  readonly replayOf: string;
  readonly redriveId: string | null;
  readonly edited: boolean;
}

export interface MessageEdit extends At {
  readonly id: string;
  readonly revision?: number | undefined;
  /** The new message: same topic and tenant, edited payload. With the old one's key, the key leads to it from now on. */
  readonly message: NewMessage;
  readonly actor: string;
  readonly reason: string;
}

export type MessageEdited =
  | { readonly kind: "done"; readonly message: MessageView }
  | { readonly kind: "not_found" }
  | { readonly kind: "wrong_state"; readonly message: MessageView }
  | { readonly kind: "revision_conflict"; readonly revision: number }
  /** The new key belongs to another message. */
  | { readonly kind: "key_conflict"; readonly id: string };

export interface RedriveStore {
  /** What a select means now; changes nothing. */
  preview(select: RedriveSelect): Promise<RedrivePreview>;
  /** Freezes the list and starts (or plans) in one write. */
  start(redrive: NewRedrive, at?: At): Promise<RedriveStarted>;
  get(id: string): Promise<Redrive | null>;
  /** Newest first. */
  list(filter: {
    readonly status?: RedriveStatus | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<Paged<Redrive>>;
  items(
    id: string,
    page: { readonly state?: ItemState | undefined; readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Paged<RedriveItem>>;
  /** Only from one of `from`; `version`: only from that one. Cancelling skips what waits. */
  change(
    id: string,
    change: {
      readonly from: readonly RedriveStatus[];
      readonly version?: number | undefined;
      readonly status: RedriveStatus;
      readonly reason: string | null;
    },
    provenance: readonly NewProvenance[],
    at?: At,
  ): Promise<
    { readonly kind: "done" | "wrong_state" | "version_conflict"; readonly redrive: Redrive } | { readonly kind: "not_found" }
  >;

  /**
   * A redrive with work and no live lease: running, or ended, paused or stopped with items sent whose fate is open. The one that was
   * worked on longest ago first. Null: none.
   */
  claim(owner: string, leaseMs: number, at?: At): Promise<RedriveClaim | null>;
  /** False: the token is stale and nothing changed. `state` is kept for whoever claims next; `release` ends the lease. */
  keep(
    id: string,
    token: string,
    keep: { readonly leaseMs?: number | undefined; readonly state?: string | undefined; readonly release?: boolean | undefined },
    at?: At,
  ): Promise<boolean>;
  /** The next waiting items in order, with their messages where asked for. */
  next(
    id: string,
    limit: number,
    bodies: boolean,
  ): Promise<{ readonly item: RedriveItem; readonly message: MessageView | null }[]>;
  /**
   * Does to each what the mode says, and marks it, in one write: only while running, under the token, only what is waiting, only a dead
   * letter that still has the revision it was frozen with; the others are skipped with the reason. `carrier` for new_key and copy.
   */
  send(
    id: string,
    token: string,
    items: readonly { readonly n: number; readonly carrier?: NewMessage | undefined }[],
    at?: At,
  ): Promise<
    { readonly kind: "done"; readonly sent: number; readonly skipped: number } | { readonly kind: "lost" | "not_running" }
  >;
  /**
   * Looks at sent items, those looked at longest ago first, and ends those whose fate is known: delivered (or settled by a person, for
   * resolve after `quietMs`) is healed, dead again is failed, a resolved one that was replayed is failed (reverted). Adds what was
   * learned for the redrive's action in the same write, and resolves the originals of delivered copies. Null: the token is stale.
   */
  look(
    id: string,
    token: string,
    how: { readonly limit: number; readonly halfLifeMs: number; readonly quietMs: number },
    at?: At,
  ): Promise<RedriveCounts | null>;

  edit(edit: MessageEdit): Promise<MessageEdited>;
  /** What a message was made from; null: it stands for itself. */
  origin(messageId: string): Promise<MessageOrigin | null>;
}
