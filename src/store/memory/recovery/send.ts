/**
 * Sending: what the mode says is done to each message and its item is marked, in one write. Only a dead letter that stands exactly as it
 * was frozen is touched, so a message is never replayed twice for one generation.
 */
import { MakegoodError } from "../../../message/errors.ts";
import type { Accepted, NewMessage } from "../../../message/message.ts";
import { SKIPPED } from "../../redrive.ts";
import type { At } from "../../store.ts";
import { enqueue } from "../enqueue.ts";
import { intervene } from "../intervene.ts";
import { nowMs } from "../state.ts";
import { carriedBy } from "./carried.ts";
import { atomically, type ItemRow, type Memory, type RedriveRow, set, setItem } from "./records.ts";
import { underToken } from "./redrives.ts";

interface ToSend {
  readonly n: number;
  readonly carrier?: NewMessage | undefined;
}

type Sent =
  | { readonly kind: "done"; readonly sent: number; readonly skipped: number }
  | { readonly kind: "lost" | "not_running" };

export function send(memory: Memory, id: string, token: string, requested: readonly ToSend[], at?: At): Sent {
  return atomically(memory, (): Sent => {
    const redrive = underToken(memory, id, token);
    if (!redrive) return { kind: "lost" };
    if (redrive.status !== "running") return { kind: "not_running" };
    const now = new Date(nowMs(memory.kernel, at));
    const asked = new Map(requested.map((each) => [each.n, each.carrier]));
    const waiting = [...asked.keys()].flatMap((n) => {
      const item = memory.items.get(id)?.get(n);
      return item?.state === "waiting" ? [item] : [];
    });
    const skipped = new Map<number, string>();
    for (const item of waiting) {
      const reason = movedOn(memory, item) ?? carriedNow(memory, redrive, item);
      if (reason) skipped.set(item.n, reason);
    }
    const fit = waiting.filter(({ n }) => !skipped.has(n));
    const carriers = carry(memory, redrive, fit, asked, now);
    for (const item of fit) {
      const carrier = carriers.get(item.n);
      if (carrier?.kind === "conflict") skipped.set(item.n, SKIPPED.keyConflict);
      else if (carrier?.kind === "duplicate" && overGeneration(memory, redrive, carrier.id))
        skipped.set(item.n, SKIPPED.generationCap);
      else act(memory, redrive, item, carrier, now);
    }
    for (const item of waiting) {
      const reason = skipped.get(item.n);
      if (reason) setItem(memory, id, { ...item, state: "skipped", reason, endedAt: now });
    }
    return { kind: "done", sent: waiting.length - skipped.size, skipped: skipped.size };
  });
}

function movedOn(memory: Memory, { messageId, revision, generation }: ItemRow): string | null {
  const stored = memory.kernel.messages.get(messageId);
  if (!stored) return SKIPPED.gone;
  const open = stored.status === "dead" && stored.resolution === "open";
  return open && stored.revision === revision && stored.generation === generation ? null : SKIPPED.movedOn;
}

function carriedNow(memory: Memory, { mode }: RedriveRow, { messageId }: ItemRow): string | null {
  return (mode === "replay" || mode === "new_key") && carriedBy(memory, messageId) ? SKIPPED.carried : null;
}

/** Enqueues the messages that carry the effects; one that is there already under its key is the carrier. */
function carry(
  memory: Memory,
  { redriveId: id, mode }: RedriveRow,
  fit: readonly ItemRow[],
  asked: ReadonlyMap<number, NewMessage | undefined>,
  now: Date,
): Map<number, Accepted> {
  if (mode !== "new_key" && mode !== "copy") return new Map();
  const messages = fit.map(({ n, messageId }) => {
    const message = asked.get(n);
    if (message) return message;
    throw new MakegoodError(
      "invariant_violated",
      `Item ${n} of redrive ${id} has no message to carry the effect of ${messageId}; a ${mode} needs one for each item.`,
      { id, n },
    );
  });
  const accepted = enqueue(memory.kernel, messages, { atomic: "each", now });
  return new Map(fit.map(({ n }, i) => [n, accepted[i] as Accepted]));
}

function act(memory: Memory, redrive: RedriveRow, item: ItemRow, carrier: Accepted | undefined, now: Date): void {
  const { redriveId: id, mode, actor, reason } = redrive;
  const action = mode === "replay" ? mode : mode === "resolve" || mode === "new_key" ? "resolve" : null;
  if (action) intervene(memory.kernel, { id: item.messageId, action, actor, reason, revision: item.revision, now });
  if (mode === "copy" && carrier?.kind === "duplicate") tryAgain(memory, carrier.id, redrive, now);
  // One that was there under its key was made from something else, or stands for itself.
  if (carrier?.kind === "accepted") {
    set(memory, memory.origins, carrier.id, { replayOf: item.messageId, redriveId: id, edited: false });
  }
  setItem(memory, id, { ...item, state: "sent", carrierId: carrier?.id ?? null, sentAt: now });
}

/** An earlier copy that died. */
function deadCopy(memory: Memory, id: string) {
  const copy = memory.kernel.messages.get(id);
  return copy?.status === "dead" && copy.resolution === "open" ? copy : null;
}

function overGeneration(memory: Memory, { mode, select: { copyGenerationMax } }: RedriveRow, id: string): boolean {
  if (mode !== "copy" || copyGenerationMax === undefined) return false;
  return (deadCopy(memory, id)?.generation ?? -1) >= copyGenerationMax;
}

/** An earlier copy of the same effect that died carries it once more. */
function tryAgain(memory: Memory, id: string, { actor, reason }: RedriveRow, now: Date): void {
  const copy = deadCopy(memory, id);
  if (copy) intervene(memory.kernel, { id, action: "replay", actor, reason, revision: copy.revision, now });
}
