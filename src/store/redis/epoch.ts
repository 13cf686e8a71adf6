/**
 * Notices that Redis lost what it held: a restart without persistence, a flush, a failover to an empty node. The data carries a
 * mark from its first day, and every script looks at it; another mark, or none, means other data. What a store knew of topics is
 * then declared again, so that work goes on.
 */
import type { TopicDefinition, TopicSource } from "../../message/topic.ts";
import type { Checked } from "../store.ts";
import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";
import { CHECK } from "./scripts/upkeep.ts";

export interface Epoch {
  /** The mark that the data has to have; empty before the first look. */
  mark(): string;
  /**
   * Asks whether Redis would take a write now, and whether the data is still the same; if not, returns when topics are there again.
   * `acknowledge`: a person knows what was lost before this data was born; every process learns it.
   */
  look(acknowledge?: boolean): Promise<void>;
  /** How often the data was lost so far, and topics were declared again. */
  losses(): number;
  /** The last time; null: never, or a person knows. */
  lost(): Checked["lost"];
  /** Remembers a topic, to declare it again; absent: paused as before. */
  learn(definition: TopicDefinition, source: TopicSource, paused?: boolean): void;
  /** Remembers whether it is paused: a topic that an operator paused must not run because the data is gone. */
  paused(name: string, paused: boolean): void;
  forget(name: string): void;
}

const WHAT =
  "Redis lost what it held (a restart without persistence, a flush, or a failover to an empty node): " +
  "messages that were accepted before are gone, topics were declared again";

/** `onLoss` hears that the data is gone, once for each time. */
export function createEpoch(
  db: () => Db,
  topics: () => Pick<TopicStore, "put" | "pause">,
  onLoss: (message: string) => void,
): Epoch {
  const declared = new Map<string, { definition: TopicDefinition; source: TopicSource; paused: boolean }>();
  let born = "";
  let losses = 0;
  let known = false;
  let last: Checked["lost"] = null;
  let restored: Promise<void> = Promise.resolve();

  async function restore(before: string): Promise<void> {
    try {
      for (const { definition, source, paused } of [...declared.values()]) {
        await topics().put(definition, source);
        if (paused) await topics().pause(definition.name, true);
      }
    } catch (error) {
      // The next look tries again.
      born = before;
      throw error;
    }
    losses++;
    last = { atMs: db().clock.wallMs(), what: WHAT };
    onLoss(WHAT);
  }

  return {
    mark: () => born,
    async look(acknowledge = false) {
      const { random, keys, unmarked } = db();
      const mark = Buffer.from(random.bytes(8)).toString("hex");
      const [said, acknowledged] = (await unmarked(CHECK, [keys.key("meta")], [mark, acknowledge ? 1 : 0])) as [string, number];
      const found = String(said);
      known = acknowledged === 1;
      const before = born;
      born = found;
      // Many callers find out at the same moment: the first one mends it, all wait.
      if (before !== "" && found !== before) restored = restore(before);
      await restored;
    },
    losses: () => losses,
    lost: () => (known ? null : last),
    learn(definition, source, paused = declared.get(definition.name)?.paused ?? false) {
      declared.set(definition.name, { definition, source, paused });
    },
    paused(name, paused) {
      const topic = declared.get(name);
      if (topic) topic.paused = paused;
    },
    forget: (name) => void declared.delete(name),
  };
}
