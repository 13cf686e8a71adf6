import type { Outcome } from "../message/outcome.ts";
import type { Events } from "../observe/events.ts";
import type { TopicStore } from "../store/topics.ts";
import type { Attempt } from "./attempt.ts";
export interface JudgeContext {
    readonly topicStore: TopicStore;
    readonly events: Events;
    readonly track: (call: Promise<unknown>) => void;
}
export declare function judgeSink(attempt: Attempt, outcome: Outcome, nowMs: number, context: JudgeContext): void;
