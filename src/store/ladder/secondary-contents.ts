/**
 * What lies in the secondary store, as of its last answer and of what this process put there since: how many, and of which
 * ordering keys. What comes later for such a key goes below as well, or waits.
 */
import type { MessageView, NewMessage } from "../../message/message.ts";
import type { StatusCount, Store } from "../store.ts";

/** With more ordered messages of a topic than this, all keys of the topic count as being there. */
const KEYS_MAX = 500;

const WAITS: ReadonlySet<string> = new Set(["pending", "processing"]);

type Keyed = Pick<NewMessage, "topic" | "orderingKey">;

export class SecondaryContents {
  /**
   * Nothing is known before its first answer. `silent`: it was asked and gave none, and there is no note that it holds an
   * ordering key.
   */
  heard: "never" | "silent" | "yes" = "never";
  /** How often it was noted that an ordering key may lie there, and how many of those puts are still under way. */
  notes = 0;
  underWay = 0;
  /** False: there is no such note. */
  noted = true;
  count = 0;
  /** Open dead letters. */
  quarantined = 0;
  /** Wall clock. */
  oldestAtMs: number | null = null;
  /** Keys, or whole topics where those are too many → the count of puts when that was last seen. */
  readonly #keys = new Map<string, number>();
  #puts = 0;

  holdsKey(message: Keyed): boolean {
    if (message.orderingKey === null) return false;
    // A process before this one may have left something of any key there.
    if (this.heard === "never") return true;
    return this.#keys.has(message.topic) || this.#keys.has(keyOf(message));
  }

  get holdsKeys(): boolean {
    return this.#keys.size > 0;
  }

  came(message: Keyed, atMs: number, duplicate: boolean): void {
    if (message.orderingKey !== null) this.#keys.set(keyOf(message), ++this.#puts);
    if (duplicate) return;
    this.count++;
    this.oldestAtMs ??= atMs;
  }

  /** Asks the store; returns whether anything of these topics is being attempted there. */
  async look(secondary: Store, topics: readonly string[], nowMs: number): Promise<boolean> {
    // What is put there from here on is newer than its answer.
    const mark = this.#puts;
    const [lanes, all] = await Promise.all([secondary.lanes(), secondary.counts()]);
    const counts = all.filter(({ topic }) => topics.includes(topic));
    const ordered = new Set(lanes.filter((lane) => lane.ordered).map(({ topic }) => topic));
    const found: MessageView[] = [];
    const whole: string[] = [];
    // Not by lanes alone: a key whose head another process is moving right now has nothing to be claimed.
    for (const topic of new Set(counts.filter(({ status }) => WAITS.has(status)).map((one) => one.topic))) {
      for (const status of ["pending", "processing", "pending"] as const) {
        const { data, nextCursor } = await secondary.list({ status, topic, payload: false, limit: KEYS_MAX });
        found.push(...data);
        const some = ordered.has(topic) || this.#knows(topic) || data.some(({ orderingKey }) => orderingKey !== null);
        if (nextCursor !== null && some) whole.push(topic);
      }
    }
    for (const [key, at] of this.#keys) if (at <= mark) this.#keys.delete(key);
    const keys = [...whole, ...found.filter(({ orderingKey }) => orderingKey !== null).map(keyOf)];
    for (const key of keys) if (!this.#keys.has(key)) this.#keys.set(key, mark);
    this.#counted(counts, nowMs);
    this.heard = "yes";
    return counts.some(({ status }) => status === "processing");
  }

  #knows(topic: string): boolean {
    for (const key of this.#keys.keys()) if (key === topic || key.startsWith(`${topic}\n`)) return true;
    return false;
  }

  #counted(counts: readonly StatusCount[], nowMs: number): void {
    this.count = 0;
    this.quarantined = 0;
    this.oldestAtMs = null;
    for (const { status, resolution, count, oldestMs } of counts) {
      if (status === "dead" && resolution === "open") this.quarantined += count;
      if (!WAITS.has(status)) continue;
      this.count += count;
      if (oldestMs !== null) this.oldestAtMs = Math.min(this.oldestAtMs ?? nowMs, nowMs - oldestMs);
    }
  }
}

const keyOf = ({ topic, orderingKey }: Keyed): string => `${topic}\n${orderingKey}`;
