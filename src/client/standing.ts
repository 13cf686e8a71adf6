/**
 * What a message or a topic is shown with beside its own record: its topic, and who serves it. A store that cannot say who serves what
 * takes nothing away from the answer but that.
 */
import type { MessageView } from "../message/message.ts";
import type { TopicRecord } from "../message/topic.ts";
import { heldBy, type Standing, whyPending } from "../message/why-pending.ts";
import { type Hold, type Served, servedBy } from "../message/worker-note.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";

const NOT_KNOWN: Served = { why: () => null, unable: () => [] };

export async function servedNow({ topics }: Pick<Store, "topics">): Promise<Served> {
  return topics.workers().then(servedBy, () => NOT_KNOWN);
}

export async function standingOf(store: Pick<Store, "topics">, clock: Clock, topic: string): Promise<Standing> {
  const [record, served] = await Promise.all([store.topics.get(topic), servedNow(store)]);
  return { topic: record, served, nowMs: clock.wallMs() };
}

/** For a page of messages: one look at everything. */
export async function standings(store: Pick<Store, "topics">, clock: Clock): Promise<(topic: string) => Standing> {
  const [records, served] = await Promise.all([store.topics.list(), servedNow(store)]);
  const byName = new Map<string, TopicRecord>(records.map((record) => [record.name, record]));
  const nowMs = clock.wallMs();
  return (topic) => ({ topic: byName.get(topic) ?? null, served, nowMs });
}

/** A message and why it is where it is. */
export interface ShownMessage extends MessageView {
  /** Why nothing happens to it, its topic's and its tenant's state included; null: nothing holds it. */
  readonly heldReason: string | null;
  /** Why it is not being attempted now; null unless it is pending. */
  readonly pendingReason: Hold | null;
}

export function shown(message: MessageView, standing: Standing): ShownMessage {
  const heldReason = heldBy(message, standing)?.code ?? null;
  return { ...message, heldReason, pendingReason: whyPending(message, standing) };
}
