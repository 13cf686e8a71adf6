/**
 * This process's fresh view of the topics: every record as the store has it, the rules decide() needs, and the sink that
 * serves it here. Looked at again each second and at each hint while a worker runs; a changed definition gets a new sink,
 * and the old one is closed when its last attempt is over.
 */
import { DEFAULT_RULES, topicRules } from "../message/conclude.ts";
import type { DecideRules } from "../message/decide.ts";
import { errorText } from "../message/errors.ts";
import type { TopicRecord } from "../message/topic.ts";
import { attemptTimeoutMs } from "../message/validate-topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock, Timer } from "../platform/clock.ts";
import { type Loop, startLoop } from "../platform/loop.ts";
import { UnderWay } from "../platform/under-way.ts";
import type { Sink } from "../sink/sink.ts";
import type { Store } from "../store/store.ts";
import { Rest } from "./rest.ts";

const REFRESH_MS = 1_000;
const HINTS_MS = 100;
const TOPICS_MANY = 100;
/** With nobody at work the view may be older: only the way in reads it, and the store has the last word there. */
const STALE_MS = 5_000;

/** The revision of a topic that this process will declare when its store can be asked: a store that does not have it yet takes nothing away. */
export const UNDECLARED = -1;

/** A sink and how many attempts are using it. */
export interface SinkHandle {
  readonly sink: Sink;
  users: number;
  retired: boolean;
}

/** One topic; the object stays the same while its record changes. */
export interface TopicEntry {
  readonly name: string;
  record: TopicRecord;
  rules: DecideRules;
  timeoutMs: number;
  /** Monotonic: the record's countdowns run from here. */
  seenMs: number;
  gone: boolean;
  /** Null: this process has no sink for it. Undefined: not asked for yet. */
  handle: SinkHandle | null | undefined;
  /** Why there is no sink although the record describes one; null: there is, or none was asked for. */
  sinkError: string | null;
  /** While what its sink needs is not to be had here, the topic is left to other processes. */
  rest: Rest;
}

export interface TopicTableOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: Events;
  /** Null when this process cannot serve the topic; may throw. */
  readonly makeSink: (record: TopicRecord) => Sink | null;
}

export class TopicTable {
  readonly #options: TopicTableOptions;
  readonly #entries = new Map<string, TopicEntry>();
  readonly #watchers = new Set<() => void>();
  readonly #closing = new UnderWay();
  #loop: Loop | undefined;
  /** Watchers that want it. */
  #refreshing = 0;
  #unsubscribe: (() => void) | undefined;
  #gathering: Timer | undefined;
  #hintedMs = Number.NEGATIVE_INFINITY;
  #current: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;
  #refreshedMs = Number.NEGATIVE_INFINITY;

  constructor(options: TopicTableOptions) {
    this.#options = options;
  }

  entry(name: string): TopicEntry | undefined {
    return this.#entries.get(name);
  }

  entries(): IterableIterator<TopicEntry> {
    return this.#entries.values();
  }

  /** What is known without asking; asks in the background when that is old. */
  known(name: string): TopicRecord | undefined {
    const entry = this.#entries.get(name);
    if (entry && this.#options.clock.monotonicMs() - this.#refreshedMs > STALE_MS) this.#refreshSoon();
    return entry?.record;
  }

  async find(name: string): Promise<TopicRecord | null> {
    const known = this.known(name);
    if (known) return known;
    const record = await this.#options.store.topics.get(name);
    if (record) this.learn(record);
    return record;
  }

  /** Takes over a record that came from the store by another way than a refresh. */
  learn(record: TopicRecord): void {
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#entries.get(record.name);
    if (!known) {
      const rules = this.#rules(record);
      const timeoutMs = attemptTimeoutMs(record.sink, record.leaseMs);
      const { name } = record;
      const fresh = { gone: false, handle: undefined, sinkError: null, rest: new Rest() };
      this.#entries.set(name, { name, record, rules, timeoutMs, seenMs: nowMs, ...fresh });
      return;
    }
    const same = known.record.sink === record.sink || JSON.stringify(known.record.sink) === JSON.stringify(record.sink);
    if (!same) this.#retire(known);
    if (known.record.revision !== record.revision) {
      known.rules = this.#rules(record);
      known.timeoutMs = attemptTimeoutMs(record.sink, record.leaseMs);
    }
    known.record = record;
    known.seenMs = nowMs;
  }

  /** The sink that serves a topic here, made when it is first needed. */
  sink(entry: TopicEntry): SinkHandle | null {
    if (entry.handle !== undefined) return entry.handle;
    this.#listen();
    entry.handle = null;
    try {
      const sink = this.#options.makeSink(entry.record);
      if (sink) entry.handle = { sink, users: 0, retired: false };
    } catch (error) {
      entry.sinkError = errorText(error);
      const detail = { topic: entry.name, error: entry.sinkError };
      this.#options.events.emit({ type: "lifecycle", what: "sink_not_made", detail });
    }
    return entry.handle;
  }

  release(handle: SinkHandle): void {
    handle.users--;
    if (handle.retired && handle.users === 0) this.#close(handle);
  }

  /** Calls back after each refresh; the first watcher starts the clock, the last one stops it, except for those who only listen. */
  watch(listener: () => void, refreshes = true): () => void {
    this.#watchers.add(listener);
    if (!refreshes) return () => this.#watchers.delete(listener);
    this.#refreshing++;
    this.#listen();
    this.#loop ??= startLoop({
      clock: this.#options.clock,
      step: async () => {
        await this.refresh();
        return REFRESH_MS;
      },
      failed: (error, consecutive) => {
        this.#options.events.emit({ type: "store_error", during: "topics", error: errorText(error), consecutive });
        return Math.min(5_000, REFRESH_MS * consecutive);
      },
    });
    return () => {
      if (!this.#watchers.delete(listener)) return;
      this.#refreshing--;
      if (this.#refreshing > 0 || !this.#loop) return;
      void this.#loop.stop();
      this.#loop = undefined;
    };
  }

  /** One at a time; a call during a refresh shares the one that begins after it. */
  refresh(): Promise<void> {
    this.#next ??= this.#current.then(() => {
      this.#next = undefined;
      const read = this.#read();
      this.#current = read.catch(() => undefined);
      return read;
    });
    return this.#next;
  }

  async close(): Promise<void> {
    this.#unsubscribe?.();
    this.#gathering?.cancel();
    await this.#loop?.stop();
    for (const entry of this.#entries.values()) this.#retire(entry);
    await this.#closing.finished();
  }

  /** A worker needs to hear at once that a topic was paused; a process that only enqueues need not be woken for it. */
  #listen(): void {
    this.#unsubscribe ??= this.#options.store.wake((hint) => {
      if (hint.kind === "topics") this.#hinted();
    });
  }

  /**
   * At once, as long as a reading costs nothing. With very many topics one reading serves all hints of a moment: a thousand that are resumed one
   * by one are not a thousand readings of all.
   */
  #hinted(): void {
    const { clock } = this.#options;
    if (this.#gathering) return;
    if (this.#entries.size < TOPICS_MANY || clock.monotonicMs() - this.#hintedMs >= HINTS_MS) {
      this.#hintedMs = clock.monotonicMs();
      this.#refreshSoon();
      return;
    }
    this.#gathering = clock.after(
      HINTS_MS,
      () => {
        this.#gathering = undefined;
        this.#hintedMs = clock.monotonicMs();
        this.#refreshSoon();
      },
      true,
    );
  }

  async #read(): Promise<void> {
    const records = await this.#options.store.topics.list();
    const names = new Set(records.map(({ name }) => name));
    for (const record of records) this.learn(record);
    for (const [name, entry] of this.#entries) {
      if (names.has(name) || entry.record.revision === UNDECLARED) continue;
      this.#retire(entry);
      entry.gone = true;
      this.#entries.delete(name);
    }
    this.#refreshedMs = this.#options.clock.monotonicMs();
    for (const watcher of this.#watchers) watcher();
  }

  #refreshSoon(): void {
    this.#refreshedMs = this.#options.clock.monotonicMs();
    this.refresh().catch((error) => {
      this.#options.events.emit({ type: "store_error", during: "topics", error: errorText(error), consecutive: 1 });
    });
  }

  #retire(entry: TopicEntry): void {
    const handle = entry.handle;
    entry.handle = undefined;
    entry.sinkError = null;
    entry.rest = new Rest();
    if (!handle) return;
    handle.retired = true;
    if (handle.users === 0) this.#close(handle);
  }

  #close(handle: SinkHandle): void {
    const closed = Promise.resolve(handle.sink.close?.()).catch((error) => {
      this.#options.events.emit({ type: "lifecycle", what: "sink_not_closed", detail: { error: errorText(error) } });
    });
    this.#closing.add(closed);
  }

  #rules(record: TopicRecord): DecideRules {
    const rules = topicRules(record);
    if (rules) return rules;
    // Its messages still have bounded attempts.
    const detail = { topic: record.name, policy: record.retry.policy };
    this.#options.events.emit({ type: "lifecycle", what: "retry_policy_not_known", detail });
    return { ...DEFAULT_RULES, ordering: record.ordering, onUnknown: record.sink.onUnknown ?? "retry" };
  }
}
