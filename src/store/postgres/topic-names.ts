/**
 * Which topics exist and how they are ordered, for the way in; read again after a while or a hint.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Ordering } from "../../message/message.ts";
import type { Connection } from "./connection.ts";

/** Topics change rarely and say so by a hint; this bounds how long a lost hint can matter. */
const TOPICS_TTL_MS = 5_000;

export function createTopicNames(connection: Connection, s: string, monotonicMs: () => number) {
  let topics = new Map<string, Ordering>();
  let readAt = Number.NEGATIVE_INFINITY;
  const fresh = () => monotonicMs() - readAt < TOPICS_TTL_MS;
  return {
    known: (topic: string) => fresh() && topics.has(topic),
    /** Throws `unknown_topic` for the first that is not there. */
    async require(names: readonly string[]): Promise<void> {
      if (fresh() && names.every((topic) => topics.has(topic))) return;
      const text = `select name, definition::json ->> 'ordering' from ${s}.topic where not deleted`;
      const rows = await connection.rows("read topics", text, [], { reads: true });
      topics = new Map(rows.map(([name, ordering]) => [name as string, ordering as Ordering]));
      readAt = monotonicMs();
      const unknown = names.find((topic) => !topics.has(topic));
      if (unknown !== undefined) throw unknownTopic(unknown);
    },
    ordered: (topic: string, orderingKey: string | null) => orderingKey !== null && topics.get(topic) !== "none",
    forget() {
      readAt = Number.NEGATIVE_INFINITY;
    },
  };
}

export function unknownTopic(topic: string): MakegoodError {
  return new MakegoodError(
    "unknown_topic",
    `there is no topic ${JSON.stringify(topic)}: declare it in code or in the config file, or PUT /api/v1/topics/${topic}`,
    { topic },
  );
}
