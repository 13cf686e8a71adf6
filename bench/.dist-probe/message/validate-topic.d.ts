import type { SinkConfig, TopicDefinition } from "./topic.ts";
/** Between the end of an attempt and the end of its lease: the time to settle. */
export declare function leaseHeadroomMs(leaseMs: number): number;
/** The one total deadline of an attempt. A function may run longer than the lease, which is extended under it. */
export declare function attemptTimeoutMs(sink: SinkConfig, leaseMs: number): number;
/** Everything that is wrong with a definition, as sentences; none: it may be stored. */
export declare function topicProblems(topic: TopicDefinition): string[];
/** Throws `invalid_topic` with every problem in `detail.problems`. */
export declare function checkTopic(topic: TopicDefinition): void;
