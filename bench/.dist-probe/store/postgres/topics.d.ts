import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";
/** `told` hears that a topic changed. */
export declare function createTopics(db: Db, told: () => void): TopicStore;
