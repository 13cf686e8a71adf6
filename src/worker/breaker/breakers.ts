/**
 * The breakers of this process, one for each topic: every dispatcher and every deliver() tells the same one what it saw and asks the same
 * one what it may do. They are the primary store's, whichever store a message is attempted from.
 */

import type { Events } from "../../observe/events.ts";
import { type Clock, within } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { UnderWay } from "../../platform/under-way.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { TopicTable } from "../../topic/topic-table.ts";
import { Breaker } from "./breaker.ts";

export interface BreakersOptions {
  readonly topicStore: TopicStore;
  readonly topics: TopicTable;
  readonly owner: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
}

const NOTES_MS = 500;

export class Breakers {
  readonly topicStore: TopicStore;
  readonly #options: BreakersOptions;
  readonly #breakers = new Map<string, Breaker>();
  readonly #watchers = new Set<() => void>();
  /** What nobody waits for, and must not be lost at a stop. */
  readonly calls = new UnderWay();

  constructor(options: BreakersOptions) {
    this.#options = options;
    this.topicStore = options.topicStore;
  }

  of(name: string): Breaker {
    let breaker = this.#breakers.get(name);
    if (!breaker) {
      const { topicStore, topics, owner, clock, random, events } = this.#options;
      const changed = (): void => {
        for (const watcher of this.#watchers) watcher();
      };
      const { calls } = this;
      const entry = (topic: string) => topics.entry(topic);
      breaker = new Breaker(name, { topics: topicStore, owner, clock, random, events, entry, changed, calls });
      this.#breakers.set(name, breaker);
    }
    return breaker;
  }

  /** Calls back when one of them changed. */
  watch(listener: () => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  /** What they tell the store is worth a moment, and no more if the store hangs. */
  async close(): Promise<void> {
    await within(this.#options.clock, this.calls.finished(), NOTES_MS);
  }
}
