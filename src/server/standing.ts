/**
 * What a message or a topic is shown with beside its own record: its topic, and who serves it. A store that cannot say who serves what
 * takes nothing away from the answer but that.
 */
import type { TopicRecord } from "../message/topic.ts";
import type { Standing } from "../message/why-pending.ts";
import { type Served, servedBy } from "../message/worker-note.ts";
import type { Store } from "../store/store.ts";
import type { Kernel } from "./kernel.ts";

const NOT_KNOWN: Served = { why: () => null, unable: () => [] };

export async function servedNow({ topics }: Pick<Store, "topics">): Promise<Served> {
  return topics.workers().then(servedBy, () => NOT_KNOWN);
}

export async function standingOf({ mg, clock }: Kernel, topic: string): Promise<Standing> {
  const [record, served] = await Promise.all([mg.store.topics.get(topic), servedNow(mg.store)]);
  return { topic: record, served, nowMs: clock.wallMs() };
}

/** For a page of messages: one look at everything. */
export async function standings({ mg, clock }: Kernel): Promise<(topic: string) => Standing> {
  const [records, served] = await Promise.all([mg.store.topics.list(), servedNow(mg.store)]);
  const byName = new Map<string, TopicRecord>(records.map((record) => [record.name, record]));
  const nowMs = clock.wallMs();
  return (topic) => ({ topic: byName.get(topic) ?? null, served, nowMs });
}
