/**
 * Keeps recovery true about the dead letters of another store: each is brought over once per death, and what ends on one side ends on the
 * other. Every step compares both sides as they are now and is safe to repeat, so it may stop anywhere and run in several processes.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { MessageView } from "../../message/message.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { idTimeMs } from "../../platform/ids.ts";
import type { Store } from "../../store/store.ts";
import { isRecoveryTopic } from "../topics.ts";
import { type Mirror, type Mirrors, type NewMirror, RESOLUTION } from "./mirror-sql.ts";
import { PRIMARY } from "./replay-sink.ts";

export interface BringOverDeps {
  readonly primary: Store;
  readonly here: Pick<Store, "intervene" | "history">;
  readonly mirrors: Mirrors;
  /** Makes sure that these topics of the primary are known here. */
  readonly declare: (topics: readonly string[]) => Promise<void>;
  readonly events: Pick<Events, "emit">;
  readonly ids: () => string;
  readonly clock: Clock;
}

const PAGE = 500;
/** I10: read with their payloads and written at once. */
const BATCH = 50;
/** A store here gives ids of older days no room; such a dead letter gets an id of today. */
const OWN_ID_MS_MAX = 7 * 86_400_000;

const OURS_EVERY = 10;

const isOpen = (message: MessageView): boolean => message.status === "dead" && message.resolution === "open";

/** Whether nothing is to be done: both sides say the same, or the sink is about to find out. */
export function agrees(message: MessageView | null, mirror: Mirror | undefined): boolean {
  if (!mirror) return message === null || !isOpen(message);
  if (mirror.resolution === RESOLUTION.open) return message !== null && isOpen(message) && message.attempts <= mirror.attempts;
  const ended = mirror.resolution === RESOLUTION.resolved || mirror.resolution === RESOLUTION.discarded;
  return !(ended && message && isOpen(message));
}

export function createBringOver({ primary, here, mirrors, declare, events, ids, clock }: BringOverDeps) {
  let walks = 0;

  function mirrorOf(message: MessageView): NewMirror {
    const { id, topic, tenantId, key, payload, traceparent, schemaVersion, attempts, lastCode, lastError } = message;
    const own = clock.wallMs() - idTimeMs(id) > OWN_ID_MS_MAX ? ids() : id;
    const known = { id: own, topic, tenantId, key, payload, traceparent, schemaVersion };
    const directTry = { code: lastCode ?? "unknown", error: lastError ?? "", rejected: true };
    const hash = key === null ? "" : payloadHash(payload);
    const fixed = { payloadHash: hash, delayMs: 0, priority: 0, orderingKey: null, directTry };
    return { primaryId: id, attempts, message: { ...known, ...fixed } };
  }

  async function add(idsOfDead: readonly string[]): Promise<void> {
    const found = await Promise.all(idsOfDead.map((id) => primary.get(id)));
    const dead = found.filter((message) => message !== null && isOpen(message)) as MessageView[];
    if (dead.length === 0) return;
    await declare(dead.map(({ topic }) => topic));
    try {
      await mirrors.add(dead.map(mirrorOf));
    } catch (error) {
      if (isMakegoodError(error) && error.retryable) throw error;
      // One that cannot be written does not keep the others out.
      if (idsOfDead.length > 1) for (const { id } of dead) await add([id]);
      else leaveOut(dead[0] as MessageView, error);
    }
  }

  function leaveOut({ id, topic }: MessageView, error: unknown): void {
    const detail = { message: id, topic, error: errorText(error) };
    events.emit({ type: "lifecycle", what: "recovery_failure_set_aside", detail });
  }

  /** Both sides differ: as they are now, the one that has moved on is followed. */
  async function follow(id: string): Promise<void> {
    const message = await primary.get(id);
    const mirror = (await mirrors.ofPrimary([id])).get(id);
    if (!mirror || agrees(message, mirror)) return;
    const { messageId } = mirror;
    if (message && isOpen(message) && mirror.resolution !== RESOLUTION.open) {
      const last = (await here.history(messageId)).provenance.at(-1);
      const action = mirror.resolution === RESOLUTION.resolved ? "resolve" : "discard";
      const by = { actor: last?.actor ?? "recovery", reason: last?.reason ?? null };
      await primary.intervene({ id, action, ...by, revision: message.revision });
      return;
    }
    if (message === null || message.resolution === "resolved" || message.resolution === "discarded") {
      const action = message?.resolution === "discarded" ? "discard" : "resolve";
      const reason = message === null ? "the primary store no longer has it" : `${message.resolution} in the primary store`;
      await here.intervene({ id: messageId, action, actor: PRIMARY, reason });
      return;
    }
    // It was replayed there, or died once more: the sink finds out how that ended.
    await here.intervene({ id: messageId, action: "replay", actor: PRIMARY, reason: "moved on in the primary store" });
  }

  /** `seen`: messages of the primary, payloads left out. */
  async function compare(seen: readonly MessageView[]): Promise<void> {
    const ours = seen.filter(({ topic }) => !isRecoveryTopic(topic));
    if (ours.length === 0) return;
    const known = await mirrors.ofPrimary(ours.map(({ id }) => id));
    const differing = ours.filter((message) => !agrees(message, known.get(message.id)));
    const missing = differing.filter(({ id }) => !known.has(id)).map(({ id }) => id);
    for (let from = 0; from < missing.length; from += BATCH) await add(missing.slice(from, from + BATCH));
    for (const { id } of differing) if (known.has(id)) await follow(id);
  }

  /** What is open here and is not, or not any more, in the primary. */
  async function walkOurs(signal: AbortSignal): Promise<void> {
    let after: string | null = null;
    while (!signal.aborted) {
      const page: Mirror[] = await mirrors.open(after, PAGE);
      for (let from = 0; from < page.length; from += BATCH) {
        const batch = page.slice(from, from + BATCH);
        const found = await Promise.all(batch.map(({ primaryId }) => primary.get(primaryId)));
        for (const [i, mirror] of batch.entries()) if (!agrees(found[i] ?? null, mirror)) await follow(mirror.primaryId);
      }
      if (page.length < PAGE) return;
      after = page.at(-1)?.primaryId ?? null;
    }
  }

  async function openInPrimary(): Promise<number> {
    const dead = (await primary.counts()).filter(({ topic, resolution }) => resolution === "open" && !isRecoveryTopic(topic));
    return dead.reduce((sum, { count }) => sum + count, 0);
  }

  /** How many dead letters of the primary are not known here; below zero: so many are open only here. */
  async function behind(): Promise<number> {
    const [there, known] = await Promise.all([openInPrimary(), mirrors.openCount()]);
    return there - known;
  }

  return {
    behind,
    /** Messages of the primary of which something was heard. */
    async look(heard: readonly string[]): Promise<void> {
      for (let from = 0; from < heard.length; from += BATCH) {
        const found = await Promise.all(heard.slice(from, from + BATCH).map((id) => primary.get(id)));
        await compare(found.filter((message) => message !== null));
      }
    },
    /** Everything, page by page: what was not heard of, died while we were away, or ended on one side only. */
    async walk(signal: AbortSignal): Promise<void> {
      const asked = { status: "dead", resolution: "open", payload: false, limit: PAGE } as const;
      let cursor: string | undefined;
      do {
        const page = await primary.list({ ...asked, cursor });
        await compare(page.data);
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined && !signal.aborted);
      // All of the primary's are known now: as many here as there are the same ones, unless some were left out.
      if ((await behind()) < 0 || ++walks % OURS_EVERY === 0) await walkOurs(signal);
      await mirrors.forget();
    },
  };
}

export type BringOver = ReturnType<typeof createBringOver>;
