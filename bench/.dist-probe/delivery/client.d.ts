import type { MessageView } from "../message/message.ts";
import { type MessageFields } from "../message/validate.ts";
import type { Events } from "../observe/events.ts";
import type { Store, Transaction } from "../store/store.ts";
import type { Acceptance } from "./acceptance.ts";
import type { AnyTopic, TopicFor } from "./topic.ts";
import type { TopicTable } from "./topic-table.ts";
export interface Enqueued {
    readonly id: string;
    /** False: the key was there already, with the same payload; `id` is that message's. */
    readonly inserted: boolean;
}
export interface CallOptions {
    /** The caller's transaction: the message exists if and only if it commits. */
    readonly tx?: Transaction | undefined;
    readonly signal?: AbortSignal | undefined;
}
export type EnqueueMessageOptions = MessageFields & CallOptions;
/** One of several messages of one topic. */
export interface BatchMessage<In = unknown> extends MessageFields {
    readonly payload: In;
}
/** A message whose payload is already text: stored and delivered byte for byte. */
export interface TextMessage extends MessageFields {
    readonly topic: string;
    readonly payloadText: string;
}
export interface InterveneOptions {
    readonly actor: string;
    readonly reason?: string | null | undefined;
    /** The revision that was seen; refused as `revision_conflict` when the message has moved on since. */
    readonly revision?: number | undefined;
}
export interface Client {
    enqueue<In>(topic: TopicFor<In>, payload: NoInfer<In>, options?: EnqueueMessageOptions): Promise<Enqueued>;
    enqueue(topic: string, payload: unknown, options?: EnqueueMessageOptions): Promise<Enqueued>;
    /** One transaction, at most 1,000: all of them or none. */
    enqueueMany<In>(topic: TopicFor<In>, messages: readonly BatchMessage<NoInfer<In>>[], options?: CallOptions): Promise<Enqueued[]>;
    enqueueMany(topic: string, messages: readonly BatchMessage[], options?: CallOptions): Promise<Enqueued[]>;
    /** The same for texts of any topics. What is wrong with each stands in `detail.errors` as `{ index, code, message }`. */
    enqueueText(messages: readonly TextMessage[], options?: CallOptions): Promise<Enqueued[]>;
    replay(id: string, options: InterveneOptions): Promise<MessageView>;
    resolve(id: string, options: InterveneOptions): Promise<MessageView>;
    discard(id: string, options: InterveneOptions): Promise<MessageView>;
}
export interface ClientOptions {
    readonly store: Store;
    readonly acceptance: Acceptance;
    readonly topics: TopicTable;
    readonly declared: ReadonlyMap<string, AnyTopic>;
    readonly ids: () => string;
    readonly events: Events;
}
export declare function createClient(options: ClientOptions): Client;
