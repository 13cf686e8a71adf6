/**
 * The heart: looks which lanes have work, has them planned and claimed, and stops in good order. It never waits for one thing
 * while another could go on: looks, claims, attempts and settles overlap, and an error of the store becomes an event and a
 * rest, never the end of the loop.
 */
import { errorText } from "../message/errors.ts";
import { topicMatches } from "../message/validate.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, sleep } from "../platform/clock.ts";
import { type Loop, startLoop } from "../platform/loop.ts";
import type { Random } from "../platform/random.ts";
import { UnderWay } from "../platform/under-way.ts";
import type { WakeHint, WorkStore } from "../store/store.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import { type Announcer, startAnnouncer } from "./announcer.ts";
import type { Breakers } from "./breaker/breakers.ts";
import { planProbes } from "./breaker/probes.ts";
import { Claimer, type Took } from "./claimer.ts";
import { Idle } from "./idle.ts";
import { type LaneEntry, LaneTable } from "./lanes.ts";
import { LeaseTable } from "./leases.ts";
import { Look } from "./look.ts";
import { Pacer } from "./pacer.ts";
import { createPrefetch } from "./prefetch.ts";
import { Runner } from "./runner.ts";
import { announceSettled } from "./settled-event.ts";
import { Settler } from "./settler.ts";
import { StoreHealth } from "./store-health.ts";
import {
  allowanceOf,
  createTopicState,
  lookAgain,
  mayStart,
  SHUT_MS,
  type TopicState,
  tenantLimitOf,
  useEntry,
} from "./topic-state.ts";
import type { StopOptions, WorkerStatus } from "./worker.ts";

export interface DispatcherOptions {
  readonly store: WorkStore;
  readonly topics: TopicTable;
  readonly breakers: Breakers;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: string;
  readonly patterns: readonly string[];
  readonly concurrency: number;
  readonly pollMs: number;
  readonly drainMs: number;
  /** True: claims nothing that does not start at once, and neither it nor what it asks of the topics keeps the process alive. */
  readonly below?: boolean | undefined;
}

/** How long the outcomes of a drained worker may take to be written. */
const SETTLE_AT_STOP_MS = 10_000;

export class Dispatcher {
  readonly owner: string;
  readonly #options: DispatcherOptions;
  readonly #states = new Map<string, TopicState>();
  readonly #calls = new UnderWay();
  readonly #lanes: LaneTable;
  readonly #leases: LeaseTable;
  readonly #settler: Settler;
  readonly #runner: Runner;
  readonly #claimer: Claimer;
  readonly #look: Look;
  readonly #idle: Idle;
  readonly #pacer: Pacer;
  readonly #health: StoreHealth;
  readonly #loop: Loop;
  readonly #announcer: Announcer | null;
  readonly #unsubscribe: (() => void)[];
  #stopping: Promise<void> | undefined;
  #state: WorkerStatus["state"] = "working";
  /** Topics that are counted on at any time, and those that count only while they have something. */
  #served = 0;
  readonly #onDemand = new Set<string>();
  #probeDueMs = Number.POSITIVE_INFINITY;
  #paceDueMs = Number.POSITIVE_INFINITY;

  constructor(options: DispatcherOptions) {
    const { store, topics, breakers, events, clock, random, owner, concurrency, pollMs, below = false } = options;
    this.#options = options;
    this.owner = owner;
    const calls = this.#calls;
    const nudge = (): void => this.#nudge();
    const prefetch = createPrefetch(concurrency, below ? concurrency : undefined);
    const lanes = new LaneTable((name) => this.#topic(name));
    const health = new StoreHealth(clock, random, events);
    const leases = new LeaseTable({ store, clock, events });
    const settler = new Settler({
      store,
      clock,
      random,
      events,
      settled: (attempt, result) => {
        this.#runner.settled(attempt);
        announceSettled(attempt, result, events, clock.monotonicMs());
      },
      nudge,
    });
    const shared = { clock, events, concurrency, prefetch, settler, leases };
    this.#runner = new Runner({ ...shared, topics, breakers, random, nudge, calls });
    this.#claimer = new Claimer({ ...shared, store, owner, lanes, runner: this.#runner, health });
    this.#look = new Look({ store, clock, lanes, health, pollMs });
    const { topicStore } = breakers;
    this.#pacer = new Pacer({ topicStore, owner, clock, events, concurrency, alone: below, nudge, calls });
    this.#idle = new Idle({ store, owner, health });
    this.#lanes = lanes;
    this.#leases = leases;
    this.#settler = settler;
    this.#health = health;
    this.#countServed();
    this.#loop = startLoop({
      clock,
      step: async () => this.#step(),
      failed: (error) => {
        health.failed("dispatch", error);
        return Math.max(10, health.restUntilMs - clock.monotonicMs());
      },
    });
    const { patterns } = options;
    const chooses = (name: string): boolean => this.#chooses(name);
    this.#announcer = below ? null : startAnnouncer({ topicStore, topics, owner, patterns, chooses, clock });
    const changed = (): void => this.#topicsChanged();
    this.#unsubscribe = [store.wake((hint) => this.#hinted(hint)), topics.watch(changed, !below), breakers.watch(changed)];
    events.emit({ type: "lifecycle", what: "worker_started", detail: { owner, topics: options.patterns, concurrency } });
  }

  status(): WorkerStatus {
    return {
      state: this.#state,
      running: this.#runner.running,
      waiting: this.#runner.waiting,
      unsettled: this.#settler.backlog,
      storeFailures: Math.max(this.#health.failures, this.#settler.failures),
    };
  }

  stop(options: StopOptions = {}): Promise<void> {
    this.#stopping ??= this.#stop(options.drainMs ?? this.#options.drainMs);
    return this.#stopping;
  }

  /** One turn: send what can be sent, and say how long until there is a reason to look again. Waits for nothing. */
  #step(): number {
    const { clock, pollMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#state !== "working") return pollMs;
    if (nowMs < this.#health.restUntilMs) return this.#health.restUntilMs - nowMs;
    const open = this.#claimer.ready;
    if (open && nowMs < this.#claimer.notBeforeMs) return this.#claimer.notBeforeMs - nowMs;
    this.#pacer.keep(nowMs);
    this.#paceDueMs = Number.POSITIVE_INFINITY;
    const ready = open ? this.#lanes.ready(nowMs) : [];
    this.#probeDueMs = Number.POSITIVE_INFINITY;
    const sent = ready.length > 0 && this.#claim(ready, nowMs);
    // Room left after the first round: a second one may overlap with it.
    if (sent && this.#claimer.ready) return 0;
    // A lane whose topic has all it may hold is a backlog, not a reason to wait for hints.
    const backlog = ready.some(({ topic }) => topic.held > 0);
    if (open && !sent && !backlog && this.#claimer.underWay === 0 && this.#look.begun) this.#rest(nowMs);
    const lookMs = this.#look.dueMs(!this.#idle.waiting);
    if (nowMs >= lookMs) this.#calls.add(this.#look.look().then(() => this.#loop.nudge()));
    const dueMs = open ? Math.min(this.#lanes.nextDueMs(nowMs), this.#probeDueMs, this.#paceDueMs) : Number.POSITIVE_INFINITY;
    return Math.max(1, Math.min(pollMs, dueMs - nowMs, nowMs >= lookMs ? pollMs : lookMs - nowMs));
  }

  #claim(ready: readonly LaneEntry[], nowMs: number): boolean {
    this.#allow(ready, nowMs);
    const { open, claims, dueMs } = planProbes(ready, nowMs);
    this.#probeDueMs = Math.min(this.#probeDueMs, dueMs);
    const sent = this.#claimer.claimFrom(open, claims, nowMs);
    for (const claim of sent) this.#calls.add(claim.then((took) => this.#took(took)));
    return sent.length > 0;
  }

  #rest(nowMs: number): void {
    const rested = this.#idle.rest(nowMs).then((lookOnce) => {
      if (!lookOnce) return;
      this.#look.soon();
      this.#loop.nudge();
    });
    this.#calls.add(rested);
  }

  /** How much each topic of these lanes may have now. */
  #allow(lanes: readonly LaneEntry[], nowMs: number): void {
    const { topics, concurrency } = this.#options;
    const asking = new Set(lanes.map((lane) => lane.topic));
    const slowAsking = [...asking].filter(({ slow }) => slow).length;
    let slowHeld = 0;
    let served = this.#served;
    for (const topic of this.#states.values()) {
      if (topic.slow) slowHeld += topic.held;
      if (this.#onDemand.has(topic.name) && (topic.held > 0 || asking.has(topic))) served++;
    }
    const load = { concurrency, slowHeld, slowAsking, served, more: this.#onDemand.size > 0 };
    for (const topic of asking) {
      if (!topic.entry) {
        topic.allowance = 0;
        this.#calls.add(this.#refreshTopics());
        continue;
      }
      const sink = topics.sink(topic.entry);
      const { untilMs } = topic.entry.rest;
      if (nowMs < untilMs) this.#probeDueMs = Math.min(this.#probeDueMs, untilMs);
      useEntry(topic, topic.entry);
      topic.tenantLimit = tenantLimitOf(topic);
      topic.allowance = allowanceOf(topic, sink !== null, nowMs, load);
      topic.shutUntilMs = sink !== null && mayStart(topic, null, false, nowMs) ? Number.NEGATIVE_INFINITY : nowMs + SHUT_MS;
    }
    this.#paceDueMs = this.#pacer.limit(asking, lanes, nowMs);
  }

  #topic(name: string): TopicState {
    let state = this.#states.get(name);
    if (!state) {
      const { topics, breakers } = this.#options;
      state = createTopicState(name, this.#chooses(name), breakers.of(name));
      useEntry(state, topics.entry(name));
      this.#states.set(name, state);
    }
    return state;
  }

  /** All that could come, not only what has come: a slow topic leaves room for others before they show up, except for on-demand ones. */
  #countServed(): void {
    const { topics } = this.#options;
    this.#served = 0;
    this.#onDemand.clear();
    for (const entry of topics.entries()) {
      const handle = this.#chooses(entry.name) ? topics.sink(entry) : null;
      if (handle?.sink.onDemand) this.#onDemand.add(entry.name);
      else if (handle) this.#served++;
    }
  }

  #chooses(name: string): boolean {
    return this.#options.patterns.some((pattern) => topicMatches(pattern, name));
  }

  #took({ full, dry }: Took): void {
    if (this.#state !== "working") this.#runner.releaseWhere(() => true);
    if (dry) this.#look.again();
    this.#calls.add(this.#idle.claimed(full));
    this.#loop.nudge();
  }

  #hinted(hint: WakeHint): void {
    if (hint.kind !== "work") return;
    const found = hint.lane === null ? "unknown" : this.#lanes.hint(hint.lane, this.#options.clock.monotonicMs());
    if (found === "unknown") this.#look.soon();
    if (found !== "shut") this.#nudge();
  }

  #nudge(): void {
    if (this.#claimer.ready) this.#loop.nudge();
  }

  #topicsChanged(): void {
    const { topics, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    for (const topic of this.#states.values()) {
      useEntry(topic, topics.entry(topic.name));
      lookAgain(topic);
    }
    this.#countServed();
    this.#runner.releaseHeld(nowMs);
    this.#loop.nudge();
  }

  async #refreshTopics(): Promise<void> {
    const { topics, events } = this.#options;
    try {
      await topics.refresh();
    } catch (error) {
      events.emit({ type: "store_error", during: "topics", error: errorText(error), consecutive: 1 });
    }
  }

  async #stop(drainMs: number): Promise<void> {
    const { clock, events, below } = this.#options;
    this.#state = "draining";
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    const silent = this.#announcer?.stop();
    await this.#loop.stop();
    const startedMs = clock.monotonicMs();
    await this.#runner.drain(drainMs);
    // A claim under way may still bring something: it is given back on arrival.
    await this.#claimsOver(below ? 1_000 : Math.max(1_000, drainMs - (clock.monotonicMs() - startedMs)));
    await this.#settler.close(SETTLE_AT_STOP_MS);
    this.#runner.close();
    await this.#pacer.stop();
    this.#state = "stopped";
    await this.#idle.stop();
    await silent;
    events.emit({ type: "lifecycle", what: "worker_stopped", detail: { owner: this.owner, leases: this.#leases.size } });
  }

  async #claimsOver(ms: number): Promise<void> {
    const controller = new AbortController();
    const over = this.#calls.finished().then(() => controller.abort());
    await Promise.race([over, sleep(this.#options.clock, ms, controller.signal)]);
    controller.abort();
  }
}
