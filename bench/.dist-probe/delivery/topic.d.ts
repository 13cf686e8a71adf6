import type { Ordering } from "../message/message.ts";
import type { RetryConfig } from "../message/retry-policy.ts";
import type { InferInput, InferOutput, StandardSchemaV1 } from "../message/standard-schema.ts";
import type { SinkConfig, TopicDefinition } from "../message/topic.ts";
import type { DeliverContext, Delivery, Sink } from "../sink/sink.ts";
/** Returning is delivered, throwing is a retry; an Outcome that is returned or thrown is taken at its word. */
export type TopicHandler<Out> = (payload: Out, delivery: Delivery, context: DeliverContext) => unknown;
/** `In` is what may be enqueued, `Out` what the handler gets: the schema's two sides. */
export interface Topic<In = unknown, Out = In> {
    readonly name: string;
    readonly definition: TopicDefinition;
    readonly schema: StandardSchemaV1<In, Out> | null;
    readonly handler: TopicHandler<Out> | null;
    /** A sink object of this process; null: made from the handler, else from `definition.sink`. */
    readonly sink: Sink | null;
    /** Declared without a sink: only sends from here, and never replaces a definition that another process stored. */
    readonly sendsOnly: boolean;
}
export type AnyTopic = Topic<any, any>;
/** Whatever its handler gets, `In` may be enqueued to it. */
export type TopicFor<In> = Topic<In, any>;
export interface TopicOptions<Out = unknown> {
    /** Absent: the topic only sends from here; another process or the API gives it its sink. */
    readonly sink?: SinkConfig | TopicHandler<Out> | Sink | undefined;
    readonly retry?: string | (Omit<RetryConfig, "policy"> & {
        readonly policy?: string | undefined;
    }) | undefined;
    readonly schemaVersion?: number | undefined;
    readonly leaseMs?: number | undefined;
    /** One total deadline per attempt. With a handler it may be longer than the lease. */
    readonly timeoutMs?: number | undefined;
    readonly concurrency?: number | undefined;
    readonly tenantConcurrency?: number | undefined;
    /** `key` (default): messages that carry an ordering key are delivered in order; others are not affected. */
    readonly ordering?: Ordering | undefined;
    readonly onUnknown?: "retry" | "hold" | undefined;
}
export declare function topic<S extends StandardSchemaV1>(name: string, options: TopicOptions<InferOutput<S>> & {
    readonly schema: S;
}): Topic<InferInput<S>, InferOutput<S>>;
export declare function topic<P = unknown>(name: string, options?: TopicOptions<P> & {
    readonly schema?: undefined;
}): Topic<P>;
