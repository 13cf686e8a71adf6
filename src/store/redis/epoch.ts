/**
 * Notices that Redis lost what it held: a restart without persistence, a flush, a failover to an empty node. The data carries a
 * mark from its first day; another mark means other data. What a store knew of topics is then declared again, so that work goes on.
 */
import type { TopicDefinition, TopicSource } from "../../message/topic.ts";
import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";
import { CHECK } from "./scripts/upkeep.ts";

export interface Epoch {
  /** Asks whether Redis would take a write now, and whether the data is still the same; if not, returns when topics are there again. */
  look(): Promise<void>;
  /** How often the data was lost so far, and topics were declared again. */
  losses(): number;
  /** Remembers a topic, to declare it again. */
  learn(definition: TopicDefinition, source: TopicSource): void;
  forget(name: string): void;
}

/** `lost` hears that the data is gone, once for each time. */
export function createEpoch(db: Db, topics: () => Pick<TopicStore, "put">, lost: (message: string) => void): Epoch {
  const known = new Map<string, { definition: TopicDefinition; source: TopicSource }>();
  let born: string | undefined;
  let losses = 0;
  let restored: Promise<void> = Promise.resolve();

  async function restore(before: string): Promise<void> {
    try {
      for (const { definition, source } of [...known.values()]) await topics().put(definition, source);
    } catch (error) {
      // Whoever looks next tries again.
      born = before;
      throw error;
    }
    losses++;
    lost(
      "Redis lost what it held (a restart without persistence, a flush, or a failover to an empty node): " +
        "messages that were accepted before are gone, topics were declared again",
    );
  }

  return {
    async look() {
      const mark = Buffer.from(db.random.bytes(8)).toString("hex");
      const found = String(await db.run(CHECK, [db.keys.key("meta")], [mark]));
      const before = born;
      born = found;
      // Many callers find out at the same moment: the first one mends it, all wait.
      if (before !== undefined && found !== before) restored = restore(before);
      await restored;
    },
    losses: () => losses,
    learn: (definition, source) => void known.set(definition.name, { definition, source }),
    forget: (name) => void known.delete(name),
  };
}
