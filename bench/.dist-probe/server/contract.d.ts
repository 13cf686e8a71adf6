/**
 * The JSON shapes of the HTTP API, in the snake_case of the kernel's words, and how messages become them. Optional fields
 * may be added later; none is changed or removed.
 */
import type { AttemptRecord, MessageView, ProvenanceRecord } from "../message/message.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Page, StatusCount } from "../store/store.ts";
export interface EnqueuedJson {
    readonly id: string;
    readonly inserted: boolean;
}
export interface AttemptJson {
    readonly attempt: number;
    readonly outcome: AttemptRecord["outcome"];
    readonly counted: boolean;
    readonly at: string;
    readonly duration_ms: number | null;
    readonly code: string | null;
    readonly error: string | null;
    readonly next_attempt_at: string | null;
}
export interface ProvenanceJson {
    readonly at: string;
    readonly actor: string;
    readonly action: ProvenanceRecord["action"];
    readonly reason: string | null;
}
/** A message without its payload, which is never built from a value but spliced in as text. */
export interface MessageJson {
    readonly id: string;
    readonly topic: string;
    readonly tenant_id: string | null;
    readonly key: string | null;
    readonly ordering_key: string | null;
    readonly priority: number;
    readonly status: MessageView["status"];
    readonly attempts: number;
    readonly generation: number;
    readonly revision: number;
    readonly resolution: MessageView["resolution"];
    readonly held_reason: string | null;
    readonly next_attempt_at: string | null;
    readonly created_at: string;
    readonly died_at: string | null;
    readonly last_error: string | null;
    readonly last_code: string | null;
    readonly schema_version: number | null;
    readonly traceparent: string | null;
}
export interface CountJson {
    readonly topic: string;
    readonly status: StatusCount["status"];
    readonly resolution: StatusCount["resolution"];
    readonly count: number;
    readonly oldest_ms: number | null;
}
/** Why nothing happens to a pending message: its own hold first, else what its topic is in. */
export declare function heldReason(message: MessageView, topic: TopicRecord | null): string | null;
export declare function messageJson(message: MessageView, topic: TopicRecord | null): MessageJson;
export declare function attemptJson(record: AttemptRecord): AttemptJson;
export declare function provenanceJson(record: ProvenanceRecord): ProvenanceJson;
/** I8: the payload is spliced in as the text it is; parsing and printing it again would change numbers and escapes. */
export declare function withPayload(object: object, payload: string): string;
/** A page of messages as JSON text, each with or without its payload. */
export declare function pageText(page: Page, topics: ReadonlyMap<string, TopicRecord>, payloads: boolean): string;
export declare function countJson(count: StatusCount): CountJson;
