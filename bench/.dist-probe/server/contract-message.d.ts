/**
 * A posted body as messages: the envelope is scanned once, payloads are cut out as text, every other field is judged by
 * itself. Everything that is wrong with a message is collected, so that a caller learns all of it in one answer.
 */
import { type ErrorCode } from "../message/errors.ts";
/** A message as posted: every field has been checked, the topic has not been looked up. */
export interface PostedMessage {
    readonly topic: string;
    readonly payload: string;
    readonly key: string | null;
    readonly tenantId: string | null;
    readonly delayMs: number;
    readonly priority: number;
    readonly orderingKey: string | null;
}
export interface Fault {
    readonly code: ErrorCode;
    readonly detail: string;
}
export type Posted = {
    readonly message: PostedMessage;
    readonly faults: readonly [];
} | {
    readonly faults: readonly Fault[];
};
export type PostedBody = {
    readonly kind: "single";
    readonly posted: Posted;
} | {
    readonly kind: "batch";
    readonly posted: readonly Posted[];
};
/** Throws `invalid_message` or `invalid_payload` when the body as a whole is not one of the two forms. */
export declare function readPosted(text: string, payloadBytesMax: number): PostedBody;
/** What is wrong with a key, from a body or a header; null when nothing is. */
export declare function keyFault(key: unknown): Fault | null;
