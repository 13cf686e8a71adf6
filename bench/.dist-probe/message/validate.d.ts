/** `namespace/name`, lower case: it stands in addresses, headers, metric labels and patterns. */
export declare function isTopicName(name: string): boolean;
/** A worker's choice of topics: a name, `namespace/*`, or `*` for all. */
export declare function topicMatches(pattern: string, name: string): boolean;
export declare function isTopicPattern(pattern: string): boolean;
/** Whether every surrogate has its partner, so that the text survives UTF-8 unchanged. */
export declare function isWellFormed(text: string): boolean;
/** The options of one message, as a caller may give them. */
export interface MessageFields {
    readonly key?: string | null | undefined;
    readonly tenantId?: string | null | undefined;
    readonly delayMs?: number | undefined;
    /** −100 … 100, higher first. */
    readonly priority?: number | undefined;
    /** Messages of a topic that carry the same one are delivered in order, one at a time. */
    readonly orderingKey?: string | null | undefined;
    readonly traceparent?: string | null | undefined;
    /** Made by the caller, for its own retries: a UUID version 7. */
    readonly id?: string | undefined;
}
export declare function checkFields(fields: MessageFields): void;
export declare function isTraceparent(text: unknown): text is string;
/** A value as the exact text that is stored and delivered: printed once, here (I8). */
export declare function payloadText(value: unknown): string;
/** Text that is to be stored and delivered as it is: JSON, well-formed, within the limits. Returns its value. */
export declare function parsePayloadText(text: string): unknown;
/** First 16 bytes of SHA-256 of the text, in hex. */
export declare function payloadHash(text: string): string;
