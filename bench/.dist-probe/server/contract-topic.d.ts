import type { Ordering } from "../message/message.ts";
import type { SinkConfig, TopicDefinition, TopicRecord } from "../message/topic.ts";
import { type FieldFault } from "./fields.ts";
export interface TopicJson {
    readonly name: string;
    readonly sink: {
        readonly kind: SinkConfig["kind"];
        readonly url: string | null;
        readonly timeout_ms: number;
        readonly headers: Readonly<Record<string, string>>;
        /** How many secrets are set; they themselves are write-only. */
        readonly secrets_set: number;
        readonly on_unknown: "retry" | "hold";
        readonly status_map: Readonly<Record<string, string>> | null;
    };
    readonly retry: {
        readonly policy: string;
        readonly attempts_max: number;
        readonly base_ms: number;
        readonly max_ms: number;
        readonly jitter: "equal" | "none";
        readonly table_ms: readonly number[] | null;
    };
    readonly schema_version: number | null;
    readonly lease_ms: number;
    readonly concurrency: number | null;
    readonly tenant_concurrency: number | null;
    readonly ordering: Ordering;
    readonly paused: boolean;
    readonly source: TopicRecord["source"];
    readonly revision: number;
    readonly disabled_reason: string | null;
    readonly breaker: {
        readonly state: "closed" | "open" | "half_open";
        readonly probe_in_ms: number;
        readonly trips: number;
        readonly reason: string | null;
    };
}
/** Says what is wrong with a sink, at declaration: its address, its headers, its secrets. */
export type SinkCheck = (sink: SinkConfig) => readonly string[];
export interface TopicRules {
    readonly checkSink: SinkCheck;
    /** From the config file: private addresses are allowed, because whoever writes the file runs the process. */
    readonly trusted: boolean;
}
export type TopicRead = {
    readonly ok: true;
    readonly definition: TopicDefinition;
    readonly paused: boolean | undefined;
} | {
    readonly ok: false;
    readonly faults: readonly FieldFault[];
};
/** Shown instead of a header's value that looks like a credential, and refused where a value is meant. */
export declare const REDACTED = "[redacted]";
export declare function readTopic(name: string, value: unknown, rules: TopicRules): TopicRead;
export declare function topicJson(topic: TopicRecord): TopicJson;
