/**
 * The way in: checks a message, prints its payload once, makes its id before the first try and hands it to the store, on
 * its own or inside the caller's transaction. `{ id, inserted }` comes back once it is durable; the same key with another
 * payload is refused, never silently ignored.
 */
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import type { Accepted, NewMessage } from "../message/message.ts";
import type { TopicName, TopicRecord } from "../message/topic.ts";
import { checkNumber, type MessageFields } from "../message/validate.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, within } from "../platform/clock.ts";
import type { ListFilter, Store, Transaction } from "../store/store.ts";
import type { AnyTopic, TopicFor } from "../topic/topic.ts";
import type { Acceptance } from "./acceptance.ts";
import type { Made, MessageBuilder, TextMessage } from "./build-message.ts";
import { createInterventions, type Interventions, type ReplayUncarried } from "./intervene.ts";
import { type ShownMessage, shown, standingOf, standings } from "./standing.ts";

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

/** Which messages are listed; nothing: the newest of all. */
export interface MessageFilter extends Omit<ListFilter, "limit" | "topic"> {
  readonly topic?: AnyTopic | TopicName | undefined;
  /** 50 unless said, at most 1,000. */
  readonly limit?: number | undefined;
}

export interface MessagePage {
  /** Newest first. */
  readonly data: ShownMessage[];
  /** For the next page; null: this was the last. */
  readonly nextCursor: string | null;
}

export interface Client extends Interventions {
  enqueue<In = unknown>(
    topic: TopicFor<In> | TopicName,
    payload: NoInfer<In>,
    options?: EnqueueMessageOptions,
  ): Promise<Enqueued>;
  /** One transaction, at most 1,000: all of them or none. */
  enqueueMany<In = unknown>(
    topic: TopicFor<In> | TopicName,
    messages: readonly BatchMessage<NoInfer<In>>[],
    options?: CallOptions,
  ): Promise<Enqueued[]>;
  /** The same for texts of any topics. What is wrong with each stands in `detail.errors` as `{ index, code, message }`. */
  enqueueText(messages: readonly TextMessage[], options?: CallOptions): Promise<Enqueued[]>;
  /** A message and why it waits, in the words of the HTTP API; null: there is none. `store.get` has only what is stored. */
  get(id: string): Promise<ShownMessage | null>;
  /** Messages and why they wait, newest first, a page at a time. */
  list(filter?: MessageFilter): Promise<MessagePage>;
  /** Nothing of the topic is attempted any more, by any worker; what is accepted waits and spends no attempts. */
  pause(topic: AnyTopic | TopicName): Promise<TopicRecord>;
  /** Its messages are attempted again; a sink that asked for no more is enabled. */
  resume(topic: AnyTopic | TopicName): Promise<TopicRecord>;
}

export interface ClientOptions {
  readonly replayUncarried?: ReplayUncarried | undefined;
  readonly store: Store;
  /** Whether the store is open; where it is not, a call waits for it a moment. */
  readonly opened: () => boolean;
  readonly whenOpened: (signal?: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  /** False: something of these messages' ordering keys still lies below the store. */
  readonly keysMovedUp: (messages: readonly NewMessage[], withinMs: number) => Promise<boolean>;
  readonly acceptance: Acceptance;
  readonly builder: MessageBuilder;
  readonly events: Events;
}

const LIST_DEFAULT = 50;
/** How long a call waits for a store that is still opening. */
const OPENING_MS = 2_000;

export function createClient(options: ClientOptions): Client {
  const { store, acceptance, events, builder, opened } = options;

  /** enqueue() promises the store and nothing below it: a store that is not open yet is waited for, and then it is unavailable. */
  async function open({ signal }: CallOptions): Promise<void> {
    const open = options.whenOpened(signal).then(() => true);
    if (await within(options.clock, open, OPENING_MS)) return;
    throw new MakegoodError("store_unavailable", `the store is not open yet: it did not answer within ${OPENING_MS} ms`);
  }

  /** What has an ordering key waits for those of its key that lie below the store: they came first. */
  async function waitForKeys(messages: readonly NewMessage[]): Promise<void> {
    if (await options.keysMovedUp(messages, OPENING_MS)) return;
    throw new MakegoodError("store_unavailable", "earlier messages of this ordering key wait below the store and go first");
  }

  async function accept(messages: readonly NewMessage[], call: CallOptions): Promise<Enqueued[]> {
    call.signal?.throwIfAborted();
    if (messages.some(({ orderingKey }) => orderingKey !== null)) await waitForKeys(messages);
    const { spans } = events;
    return spans === null ? write(messages, call) : spans.sent(messages, (carrying) => write(carrying, call));
  }

  async function write(messages: readonly NewMessage[], call: CallOptions): Promise<Enqueued[]> {
    const results = await acceptance.accept(messages, call.tx, call.signal);
    const conflicts = results.flatMap((result, index) => (result.kind === "conflict" ? [conflict(result, index, messages)] : []));
    throwAll(conflicts, messages.length);
    if (events.heard) announce(messages, results);
    return results.map(({ id, kind }) => ({ id, inserted: kind === "accepted" }));
  }

  function announce(messages: readonly NewMessage[], results: readonly Accepted[]): void {
    const [only] = results;
    if (only && results.length === 1) {
      const inserted = only.kind === "accepted" ? 1 : 0;
      events.emit({ type: "accepted", topic: (messages[0] as NewMessage).topic, inserted, duplicate: 1 - inserted });
      return;
    }
    const counts = new Map<string, { inserted: number; duplicate: number }>();
    results.forEach(({ kind }, i) => {
      const { topic } = messages[i] as NewMessage;
      const count = counts.get(topic) ?? { inserted: 0, duplicate: 0 };
      counts.set(topic, count);
      count[kind === "accepted" ? "inserted" : "duplicate"]++;
    });
    for (const [topic, count] of counts) events.emit({ type: "accepted", topic, ...count });
  }

  /** Every message that is wrong is reported, not only the first. */
  async function many(count: number, make: (index: number) => Made, call: CallOptions): Promise<Enqueued[]> {
    if (count > LIMITS.batchMessagesMax) {
      const limit = LIMITS.batchMessagesMax;
      throw new MakegoodError("invalid_message", `a batch may have at most ${limit} messages, this one has ${count}`, { limit });
    }
    if (count === 0) return [];
    if (!opened()) await open(call);
    const messages: NewMessage[] = [];
    const errors: IndexedError[] = [];
    for (let index = 0; index < count; index++) {
      try {
        const made = make(index);
        messages.push(made instanceof Promise ? await made : made);
      } catch (error) {
        if (!isMakegoodError(error) || error.retryable) throw error;
        errors.push({ index, error });
      }
    }
    throwAll(errors, count);
    return accept(messages, call);
  }

  async function setPaused(topic: AnyTopic | TopicName, paused: boolean): Promise<TopicRecord> {
    const name = nameOf(topic);
    const record = await store.topics.pause(name, paused);
    if (!record) throw new MakegoodError("topic_not_found", `there is no topic ${name}`, { topic: name });
    events.emit({ type: "lifecycle", what: paused ? "topic_paused" : "topic_resumed", detail: { topic: name } });
    return record;
  }

  return {
    async enqueue(topic, payload, call = {}) {
      if (!opened()) await open(call);
      const [result] = await accept([await builder.fromValue(topic, payload, call)], call);
      return result as Enqueued;
    },
    enqueueMany: (topic, messages, call = {}) =>
      many(messages.length, (i) => builder.fromValue(topic, messages[i]?.payload, messages[i] as BatchMessage), call),
    enqueueText: (messages, call = {}) => many(messages.length, (i) => builder.fromText(messages[i] as TextMessage), call),
    async get(id) {
      const message = await store.get(id);
      return message && shown(message, await standingOf(store, options.clock, message.topic));
    },
    async list({ topic, limit = LIST_DEFAULT, ...filter } = {}) {
      checkNumber("limit", limit, 1, LIMITS.pageMax, true);
      const page = await store.list({ ...filter, topic: topic && nameOf(topic), limit });
      const standing = await standings(store, options.clock);
      return { data: page.data.map((message) => shown(message, standing(message.topic))), nextCursor: page.nextCursor };
    },
    pause: (topic) => setPaused(topic, true),
    resume: (topic) => setPaused(topic, false),
    ...createInterventions(store, events, options.replayUncarried),
  };
}

const nameOf = (topic: AnyTopic | TopicName): TopicName => (typeof topic === "string" ? topic : topic.name);

interface IndexedError {
  readonly index: number;
  readonly error: MakegoodError;
}

/** A single message throws its own error; in a batch the first one's, with all of them in the detail. */
function throwAll(errors: readonly IndexedError[], count: number): void {
  const first = errors[0];
  if (!first) return;
  if (count === 1) throw first.error;
  const list = errors.map(({ index, error }) => ({ index, code: error.code, message: errorText(error), detail: error.detail }));
  const text = `message ${first.index} of ${count}: ${first.error.message}`;
  throw new MakegoodError(first.error.code, text, { ...first.error.detail, index: first.index, errors: list });
}

function conflict(result: Accepted, index: number, messages: readonly NewMessage[]): IndexedError {
  const { key, topic, tenantId, id } = messages[index] as NewMessage;
  const text = `key ${JSON.stringify(key)} of topic ${topic} belongs to message ${result.id}, which has another payload`;
  const error = new MakegoodError("key_conflict", text, { id: result.id, refusedId: id, key, topic, tenantId });
  return { index, error };
}
