/**
 * Tries at a sink outside a worker's claims: those of deliver() and those of what waits below the stores. It says what stands in the way,
 * runs the sink under one deadline, and tells the topic's breaker what the answer says about the receiver.
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, within } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Store } from "../store/store.ts";
import { Breaker } from "./breaker.ts";
import { type Sent, type Tried, tryDirectly } from "./direct-try.ts";
import type { Why } from "./rest.ts";
import type { TopicEntry, TopicTable } from "./topic-table.ts";

export interface SinkTriesDeps {
  readonly store: Store;
  readonly topics: TopicTable;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
}

export interface TryHow {
  /** 0 for a try before the message is stored, else the attempt's number. */
  readonly attempt: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** How often at most; more than once only after transport errors that leave open what happened. */
  readonly triesMax?: number | undefined;
}

/** What stands in the way of a try. */
export type Obstacle = Why;

const NOTES_MS = 500;

export class SinkTries {
  readonly #deps: SinkTriesDeps;
  readonly #breakers = new Map<string, Breaker>();
  readonly #probing = new Set<string>();
  readonly #notes = new Set<Promise<unknown>>();
  readonly #owner: string;

  constructor(deps: SinkTriesDeps) {
    this.#deps = deps;
    this.#owner = `deliver-${deps.ids()}`;
  }

  /** Why nothing of the topic may be tried here now; null: it may. */
  obstacle(entry: TopicEntry): Obstacle | null {
    const { paused, disabledReason, breaker } = entry.record;
    if (paused) return { code: "topic_paused", error: "the topic is paused" };
    if (disabledReason !== null) return { code: "sink_disabled", error: disabledReason };
    if (!this.#deps.topics.sink(entry)) return { code: "no_sink", error: "this process has no sink for the topic" };
    const { why, untilMs } = entry.rest;
    if (why && (this.#deps.clock.monotonicMs() < untilMs || this.#probing.has(entry.name))) return why;
    const admits = this.admits(entry);
    if (admits === "all" || (admits === "one" && !this.#probing.has(entry.name))) return null;
    return { code: "breaker_open", error: breaker.reason ?? "the topic's breaker is open" };
  }

  /** `one`: a single try, to see whether the receiver is back. */
  admits({ name }: TopicEntry): "all" | "one" | "none" {
    const breaker = this.#breaker(name);
    const nowMs = this.#deps.clock.monotonicMs();
    const admits = breaker.admits(nowMs);
    if (admits === "none") breaker.seekProbe(nowMs);
    return admits;
  }

  async run(entry: TopicEntry, message: Sent, how: TryHow): Promise<Tried> {
    const { topics, clock, random } = this.#deps;
    const handle = topics.sink(entry);
    if (!handle) return { outcome: { kind: "unserved", code: "no_sink", error: "the topic's sink is gone" }, tries: 0, ms: 0 };
    const { name } = entry;
    const startedMs = clock.monotonicMs();
    const probe = this.#breaker(name).admits(startedMs) === "one" || entry.rest.why !== null;
    if (probe) this.#probing.add(name);
    handle.users++;
    try {
      const tried = await tryDirectly({ sink: handle.sink, message, clock, random, ...how });
      if (tried.outcome.kind !== "unserved") entry.rest.end();
      else if (entry.handle === handle) this.#leaveToOthers(entry, message.id, tried.outcome);
      this.#judge(entry, message.id, startedMs, tried);
      return tried;
    } finally {
      topics.release(handle);
      if (probe) this.#probing.delete(name);
    }
  }

  /** What the breaker tells the store is worth a moment, and no more if the store hangs. */
  async close(): Promise<void> {
    await within(this.#deps.clock, Promise.allSettled([...this.#notes]), NOTES_MS);
  }

  #judge(entry: TopicEntry, id: string, startedMs: number, { outcome }: Tried): void {
    const breaker = this.#breaker(entry.name);
    switch (outcome.kind) {
      case "delivered":
      case "duplicate":
      case "reject":
        breaker.proved();
        return;
      case "disable":
        this.#disable(entry, `${outcome.code}: ${outcome.error}`);
        return;
      case "retry":
      case "unknown":
        if (outcome.code === "aborted") return;
        if (outcome.kind === "retry" && outcome.receiver === "answers") breaker.proved();
        if (outcome.kind === "retry" && outcome.receiver !== undefined) return;
        breaker.failed(id, startedMs, this.#deps.clock.monotonicMs(), `${outcome.code}: ${outcome.error}`);
    }
  }

  #leaveToOthers(entry: TopicEntry, id: string, { code, error }: Why): void {
    const restMs = entry.rest.begin({ code, error }, this.#deps.clock.monotonicMs());
    this.#deps.events.emit({ type: "unserved", topic: entry.name, id, code, error, restMs });
  }

  #disable(entry: TopicEntry, reason: string): void {
    const { store, events } = this.#deps;
    if (entry.record.disabledReason !== null) return;
    entry.record = { ...entry.record, disabledReason: reason };
    events.emit({ type: "sink_disabled", topic: entry.name, reason });
    const disabling = store.topics.disable(entry.name, reason).catch((error) => {
      events.emit({ type: "store_error", during: "disable", error: errorText(error), consecutive: 1 });
    });
    this.#track(disabling);
  }

  #breaker(name: string): Breaker {
    const { store, topics, clock, events } = this.#deps;
    let breaker = this.#breakers.get(name);
    if (!breaker) {
      const entry = (topic: string) => topics.entry(topic);
      const rest = { changed: () => {}, track: (note: Promise<unknown>) => this.#track(note) };
      breaker = new Breaker(name, { topics: store.topics, owner: this.#owner, clock, events, entry, ...rest });
      this.#breakers.set(name, breaker);
    }
    return breaker;
  }

  #track(note: Promise<unknown>): void {
    this.#notes.add(note);
    const over = (): void => void this.#notes.delete(note);
    note.then(over, over);
  }
}
