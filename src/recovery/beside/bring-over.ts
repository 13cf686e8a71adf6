/**
 * Keeps recovery true about the dead letters of another store: each is brought over once per death, and what ends on one side ends on the
 * other. Every step compares both sides as they are now and is safe to repeat, so it may stop anywhere and run in several processes.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { InterventionAction, MessageView, NewMessage } from "../../message/message.ts";
import { idTimeMs } from "../../platform/ids.ts";
import type { Fence } from "../../platform/job.ts";
import type { Store } from "../../store/store.ts";
import type { RecoveryDeps } from "../engine.ts";
import { everyPage } from "../pages.ts";
import { isRecoveryTopic } from "../topics.ts";
import type { Mirror, Mirrors } from "./mirror-sql.ts";
import { copyOf, PRIMARY } from "./replay-sink.ts";

/** I10: read with their payloads and written at once. */
const BATCH = 50;
/** A store here gives ids of other weeks no room; such a dead letter gets an id of today. */
const OWN_ID_MS_MAX = 7 * 86_400_000;
/** What the counts do not show: as many ended in the primary as could not be taken in. */
const OURS_EVERY = 10;

function* batches(ids: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += BATCH) yield ids.slice(from, from + BATCH);
}

/** Whether nothing is to be done: both sides say the same, or the sink is about to find out. */
function agrees(message: MessageView | null, mirror: Mirror | undefined): boolean {
  if (message?.resolution !== "open") return mirror?.resolution !== "open";
  if (mirror?.resolution === "open") return message.attempts <= mirror.attempts;
  return mirror !== undefined && mirror.resolution !== "resolved" && mirror.resolution !== "discarded";
}

/** What is done here about a dead letter that is no longer as it was brought over. */
function moveAfter(message: MessageView | null): { readonly action: InterventionAction; readonly reason: string } {
  if (message === null) return { action: "resolve", reason: "the primary store no longer has it" };
  if (message.resolution === "resolved") return { action: "resolve", reason: "resolved in the primary store" };
  if (message.resolution === "discarded") return { action: "discard", reason: "discarded in the primary store" };
  // It was replayed there, or died once more: the sink finds out how that ended.
  return { action: "replay", reason: "moved on in the primary store" };
}

export type BringOver = ReturnType<typeof createBringOver>;

/** `declare` makes sure that the topics of the primary are known here. */
export function createBringOver(
  primary: Store,
  here: Store,
  mirrors: Mirrors,
  declare: () => Promise<void>,
  { events, ids, clock }: Pick<RecoveryDeps, "events" | "ids" | "clock">,
) {
  let walks = 0;

  /** Dead here from the start. */
  function deadCopy(message: MessageView): NewMessage {
    const id = Math.abs(clock.wallMs() - idTimeMs(message.id)) > OWN_ID_MS_MAX ? ids() : message.id;
    const directTry = { code: message.lastCode ?? "unknown", error: message.lastError ?? "", rejected: true };
    return { ...copyOf(message), id, directTry };
  }

  const read = (some: readonly string[]) => Promise.all(some.map((id) => primary.get(id)));

  async function add(some: readonly string[], under: Fence | null): Promise<void> {
    const dead = (await read(some)).filter((message) => message?.resolution === "open") as MessageView[];
    const [first] = dead;
    if (!first) return;
    await declare();
    try {
      await mirrors.add(dead, dead.map(deadCopy), under);
    } catch (error) {
      if (isMakegoodError(error) && error.retryable) throw error;
      // One that cannot be written does not keep the others out.
      if (some.length > 1) for (const { id } of dead) await add([id], under);
      else {
        const detail = { message: first.id, topic: first.topic, error: errorText(error) };
        events.emit({ type: "lifecycle", what: "recovery_failure_set_aside", detail });
      }
    }
  }

  /** Both sides differ: as they are now, the one that has moved on is followed. Fenced, so a process that saw an earlier state does nothing. */
  async function follow(id: string): Promise<void> {
    const mirror = (await mirrors.ofPrimary([id])).get(id);
    const message = await primary.get(id);
    if (!mirror || agrees(message, mirror)) return;
    const { messageId, resolution, revision } = mirror;
    if (resolution === "open") {
      await here.intervene({ id: messageId, ...moveAfter(message), actor: PRIMARY, revision: revision ?? undefined });
      return;
    }
    const { actor = "recovery", reason = null } = (await here.history(messageId)).provenance.at(-1) ?? {};
    const action = resolution === "resolved" ? "resolve" : "discard";
    await primary.intervene({ id, action, actor, reason, revision: message?.revision });
  }

  /** `seen`: what the primary has under these ids; payloads may be left out. */
  async function compare(some: readonly string[], seen: readonly (MessageView | null)[], under: Fence | null): Promise<void> {
    const known = await mirrors.ofPrimary(some);
    const differing = some.filter((id, i) => {
      const message = seen[i] ?? null;
      return !(message && isRecoveryTopic(message.topic)) && !agrees(message, known.get(id));
    });
    for (const batch of batches(differing.filter((id) => !known.has(id)))) await add(batch, under);
    for (const id of differing) if (known.has(id)) await follow(id);
  }

  /** Messages of the primary of which something was heard. */
  async function look(heard: readonly string[], under: Fence | null = null): Promise<void> {
    for (const batch of batches(heard)) await compare(batch, await read(batch), under);
  }

  async function openThere(): Promise<number> {
    const dead = (await primary.counts()).filter(({ topic, resolution }) => resolution === "open" && !isRecoveryTopic(topic));
    return dead.reduce((sum, { count }) => sum + count, 0);
  }

  return {
    look,
    openThere,
    /** Everything, page by page: what was not heard of, died while we were away, or ended on one side only. */
    async walk(signal: AbortSignal, under: Fence | null = null): Promise<void> {
      const asked = { status: "dead", resolution: "open", payload: false } as const;
      for await (const page of everyPage((which) => primary.list({ ...asked, ...which }))) {
        if (signal.aborted) return;
        const found = page.map(({ id }) => id);
        await compare(found, page, under);
      }
      // All of the primary's are known now: as many here as there are the same ones, unless some were left out.
      if (++walks % OURS_EVERY !== 0 && (await openThere()) >= (await mirrors.openCount())) return;
      for await (const page of everyPage(mirrors.open)) {
        if (signal.aborted) return;
        await look(page, under);
      }
      await mirrors.forget(under);
    },
  };
}
