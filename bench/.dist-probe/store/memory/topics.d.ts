import type { TopicStore } from "../topics.ts";
import { type State } from "./state.ts";
/** `alive` throws when the store is closed. */
export declare function createTopics(state: State, alive: () => void): TopicStore;
