/**
 * The redrive part of the recovery seam: a durable operation over a frozen list of messages. What is done to a message and what its item
 * says of it are one write under the operation's fence, so that a killed runner is continued and never repeats an item; what became of
 * the message is read from the message itself.
 */
import { MakegoodError } from "../../message/errors.ts";
import { withNames } from "../../message/json.ts";
import type { MessageView, NewMessage, Resolution, Status } from "../../message/message.ts";
import type { Carrier } from "../../message/topic.ts";
import type { At } from "../../store/store.ts";
import type { NewProvenance } from "../provenance.ts";

/**
 * replay: the same message, same key, next generation. new_key: a new message under a new key, the old one resolved. copy: a message to
 * another topic carries the effect; once that is delivered, the old one is resolved. resolve, discard: ended with the reason. reopen: what
 * another redrive resolved or discarded is open again. watch: nothing is done to it, only what becomes of it is recorded.
 */
export type RedriveMode = "replay" | "new_key" | "copy" | "resolve" | "discard" | "reopen" | "watch";

/** Whether a mode sends something to a receiver; the others are done at once. */
export const sends = (mode: RedriveMode): boolean => mode === "replay" || mode === "new_key" || mode === "copy";

/** planned: frozen and shown (dry run), waits for a person. stopped: by itself, because too much failed. */
export const REDRIVE_STATUSES = ["planned", "running", "paused", "stopped", "cancelled", "done"] as const;
export type RedriveStatus = (typeof REDRIVE_STATUSES)[number];

/**
 * Open dead letters that fit all members given; `ids`: exactly these, of those that fit. `groupId`: those that are open in it (or in the
 * one it was merged into) by their present death; `groupIds`: in one of these. `errorCode`: of the death.
 */
export interface RedriveSelect {
  readonly groupId?: number | undefined;
  readonly groupIds?: readonly number[] | undefined;
  /** They died at or after this moment, and before that one. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** For mode reopen: what this redrive resolved or discarded, and what stands as it left it. */
  readonly redriveId?: string | undefined;
  /** Also what is held for a person; else that is listed as skipped (`held`). */
  readonly includeHeld?: boolean | undefined;
  readonly topic?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  /**
   * The mark of a preview (`RedrivePreview.seen`): only what that one saw and what has not moved on since. What died, was counted in the
   * group or moved to it afterwards is left out, whatever time its death bears. Once the group was merged, split or held, nothing of it
   * was seen. A mark that no preview returned throws `invalid_request`.
   */
  readonly seen?: string | undefined;
  /** At most so many, oldest death first. */
  readonly limit: number;
  /** Messages of this generation or above are listed as skipped (`generation_cap`): replayed often enough. They count as selected. */
  readonly generationMax: number;
  /** For mode copy: an earlier copy that died in this generation or above is not tried again but skipped (`generation_cap`). */
  readonly copyGenerationMax?: number | undefined;
}

/** What is kept of it once the list is frozen: ids stand in the list, and only their number stays here. */
export interface KeptSelect extends Omit<RedriveSelect, "ids"> {
  readonly idsGiven?: number | undefined;
}

export function keptSelect({ ids, ...rest }: RedriveSelect): KeptSelect {
  return ids === undefined ? rest : { ...rest, idsGiven: ids.length };
}

/** In rows, hashes and the record a selection has the names it began with, so that what was written then means the same now. */
export function writtenSelect(select: Omit<RedriveSelect, "seen"> | KeptSelect): Record<string, unknown> {
  return withNames(select, { errorCode: "code" });
}

export function readSelect(text: string): KeptSelect {
  const dated = (name: string, value: unknown) => (name === "since" || name === "until" ? new Date(String(value)) : value);
  return withNames(JSON.parse(text, dated) as object, { code: "errorCode" }) as unknown as KeptSelect;
}

export interface NewRedrive {
  readonly redriveId: string;
  /** Pressing twice is one redrive: the same key (or the same id) gives the first one back. Asked before anything else. */
  readonly idempotencyKey: string | null;
  readonly requestHash: string;
  readonly status: "planned" | "running";
  readonly mode: RedriveMode;
  /** What is learned from it, and for which candidate it runs. */
  readonly action: string | null;
  readonly candidateId: number | null;
  readonly actor: string;
  readonly reason: string;
  /** What a person said was repaired before. */
  readonly repair?: string | null | undefined;
  readonly select: RedriveSelect;
  /** So many of each group are judged before the rest of it; absent: none. */
  readonly canary?: number | undefined;
  /** What a copy goes to, for mode copy. */
  readonly carrier?: Carrier | undefined;
  /** The runner's policy (canary, rate, bound), JSON text. */
  readonly plan: string;
  /** With the write: the candidate must still be executing under this, gets this redrive, and needs no lease from then on. */
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
  /** Not touched: moved on since, generation cap; or watched without learning anything. */
  readonly skipped: number;
}

type OfStart = "provenance" | "select" | "status" | "executionId" | "requestHash" | "canary" | "carrier";

export interface Redrive extends Omit<NewRedrive, OfStart> {
  readonly select: KeptSelect;
  readonly status: RedriveStatus;
  /** Why it stands as it does: who paused it, why it stopped. */
  readonly statusReason: string | null;
  readonly version: number;
  readonly counts: RedriveCounts;
  /** The runner's own state between steps (ramp, rate), JSON text. */
  readonly state: string | null;
  /** The process that carries it out now; null: none does. */
  readonly runner: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}

/** inconclusive: its receiver went down meanwhile; judged anew once that is back. */
export const VERDICTS = ["healed", "failed", "inconclusive"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** A part of a redrive that is judged by itself: the messages of one group in one topic. */
export interface RedriveGroup extends RedriveCounts {
  readonly no: number;
  /** Null: not ingested yet; then they are of one code. */
  readonly groupId: number | null;
  readonly topic: string;
  readonly errorCode: string | null;
  /** Null: not judged yet. */
  readonly verdict: Verdict | null;
  readonly reason: string | null;
  /** How many are still to be sent before it is judged, and what was known when that began. */
  readonly canary: number;
  readonly base: Pick<RedriveCounts, "healed" | "failed">;
}

/** A receiver that its breaker holds. */
export interface HeldReceiver {
  readonly topic: string;
  /** Null: all of the topic. */
  readonly tenantId: string | null;
  readonly reason: string | null;
  readonly nextProbeAt: Date;
}

/** A redrive with what one needs to understand why it stands as it does. */
export interface RedriveDetail extends Redrive {
  /** Failed ones first; at most a few. */
  readonly groups: readonly RedriveGroup[];
  /** How many groups have which verdict. */
  readonly verdicts: Readonly<Record<Verdict | "undecided", number>>;
  /** How many were left alone, by reason. */
  readonly leftOut: Readonly<Record<string, number>>;
  readonly heldReceivers: readonly HeldReceiver[];
}

export type RedriveStarted =
  | { readonly kind: "started" | "same"; readonly redrive: Redrive }
  /** The key belongs to a redrive of another request. */
  | { readonly kind: "conflict"; readonly redrive: Redrive }
  /** The candidate is no longer executing under this execution. */
  | { readonly kind: "lost" };

/**
 * waiting → sent → healed | failed; waiting → skipped; what was only watched: sent → skipped. Reasons are those of SKIPPED and
 * `endingOf`.
 */
export const ITEM_STATES = ["waiting", "sent", "healed", "failed", "skipped"] as const;
export type ItemState = (typeof ITEM_STATES)[number];

export interface RedriveItem {
  /** Its place in the list, from 1. */
  readonly n: number;
  readonly messageId: string;
  /** As they were when the list was frozen. */
  readonly generation: number;
  readonly revision: number;
  /** The group it was open in; null: not ingested yet. */
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

/** What a list would be, `limit` applied. */
export interface RedrivePreview {
  /** All that would be listed, those that would be left alone included. */
  readonly messages: number;
  readonly overGeneration: number;
  /** How many would be left alone, by reason: those over the generation cap, of held groups, with a copy under way. */
  readonly leftOut: Readonly<Record<string, number>>;
  /** Most messages first, then by name. */
  readonly topics: readonly { readonly topic: string; readonly messages: number }[];
  /** Different ones; no tenant is one of its own. */
  readonly tenants: number;
  /** The oldest death. */
  readonly oldestAt: Date | null;
  /** What this preview saw, for a select: the engine's own text. Where the select had one, that one again. */
  readonly seen: string;
}

/** A message that brings a dead letter's effect another way (mode copy), and is not known to have failed. */
export interface CarriedBy {
  readonly messageId: string;
  readonly carrierId: string;
  readonly redriveId: string;
}

export interface MessageOrigin {
  readonly replayOf: string;
  readonly redriveId: string | null;
  readonly edited: boolean;
}

export interface MessageEdit extends At {
  /** An open dead letter. */
  readonly id: string;
  readonly revision?: number | undefined;
  /**
   * The new message: same topic and tenant (anything else throws `invalid_request`), edited payload. With the old one's key, the key
   * leads to it from now on. The same new id again is the same edit, and answered as the first time.
   */
  readonly message: NewMessage;
  readonly actor: string;
  readonly reason: string;
  /** True: also while a copy of it is on its way. */
  readonly force?: boolean | undefined;
  /** Beside the message's own line: on record in the same write. */
  readonly provenance?: readonly NewProvenance[] | undefined;
}

export type MessageEdited =
  | { readonly kind: "done"; readonly message: MessageView }
  | { readonly kind: "not_found" }
  | { readonly kind: "wrong_state"; readonly message: MessageView }
  | { readonly kind: "revision_conflict"; readonly revision: number }
  /** The new key belongs to another message. */
  | { readonly kind: "key_conflict"; readonly id: string }
  /** Its copy is on its way, see `carried`. */
  | ({ readonly kind: "carried" } & CarriedBy);

/** The refusal of a call that would send a message while a copy of it is on its way. */
export function carriedError({ messageId, carrierId, redriveId }: CarriedBy): MakegoodError {
  const text = `message ${messageId} is on its way to another receiver as message ${carrierId} (redrive ${redriveId}): wait until that is known, discard message ${carrierId}, or say force if both may get it`;
  return new MakegoodError("carried", text, { id: messageId, carrierId, redriveId });
}

/** Why `send` left an item alone. */
export const SKIPPED = {
  generationCap: "generation_cap",
  cancelled: "cancelled",
  /** Not an open dead letter any more, or another revision. */
  movedOn: "moved_on",
  /** The message is not there any more. */
  gone: "gone",
  keyConflict: "key_conflict",
  /** A copy of it is on its way to another receiver: sent as well, both would get it. */
  carried: "carried",
  /** Its group is held for a person. */
  held: "held",
  /** Shown of what waits in a group that was judged as failed. */
  groupFailed: "group_failed",
} as const;

/** What became of one message, as `look` sees it. */
export interface Seen {
  readonly status: Status;
  readonly resolution: Resolution | null;
  readonly generation: number;
}

export interface Ending {
  /** `skipped`: it was watched in vain. */
  readonly state: "healed" | "failed" | "skipped";
  readonly reason: string;
  /** False: it tells nothing about the action. */
  readonly learned: boolean;
}

/**
 * The one meaning of "what became of it"; engines that read many at once must agree with it. `seen` is the message that carries the effect
 * (for new_key and copy the carrier, else the message itself; null: it is not there any more, so it was settled long ago); `generation`
 * is the item's. `quiet`: the quiet time has passed since it was sent. `taken`: a later redrive took up a watched message. Null: not
 * known yet.
 */
export function endingOf(mode: RedriveMode, generation: number, seen: Seen | null, quiet: boolean, taken = false): Ending | null {
  // Whatever becomes of it is the work of the other one: two that claim it would both learn from it.
  if (mode === "watch" && taken) return { state: "skipped", reason: "taken_over", learned: false };
  const ending = known(mode, generation, seen, quiet);
  if (ending === null && mode === "watch" && quiet) return { state: "skipped", reason: "not_known", learned: false };
  return ending;
}

const DONE_AS = { discard: "discarded", reopen: "reopened" } as const;

function known(mode: RedriveMode, generation: number, seen: Seen | null, quiet: boolean): Ending | null {
  if (seen === null) return { state: "healed", reason: "pruned", learned: false };
  // What a person ended or opened is done; only what an action resolved may still show that it should not have been.
  if (mode === "discard" || mode === "reopen") return { state: "healed", reason: DONE_AS[mode], learned: false };
  if (mode === "resolve") {
    if (seen.status !== "dead" || seen.resolution !== "resolved") return { state: "failed", reason: "reverted", learned: true };
    return quiet ? { state: "healed", reason: "resolved", learned: true } : null;
  }
  // A person replayed it once more: the generation that this redrive began did not deliver it.
  if (mode === "replay" && seen.generation > generation + 1) return { state: "failed", reason: "replayed_again", learned: true };
  if (seen.status === "delivered") return { state: "healed", reason: "delivered", learned: true };
  if (seen.status !== "dead") return null;
  if (seen.resolution === "resolved") return { state: "healed", reason: "resolved", learned: true };
  if (seen.resolution === "discarded") return { state: "failed", reason: "discarded", learned: true };
  // A watched one lies where it lay; only a death of a later generation is news.
  if (mode === "watch" && seen.generation <= generation) return null;
  return { state: "failed", reason: "dead_again", learned: true };
}
