/**
 * Runs what was claimed: starts attempts as slots come free, ends each exactly once, and hands its settlement to the settler.
 * One coarse sweep watches all deadlines and leases, so that an attempt costs no timer; synchronous outcomes cost no
 * promise.
 */

import { conclude, released } from "../message/conclude.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, sleep, type Timer } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { UnderWay } from "../platform/under-way.ts";
import type { SinkHandle, TopicEntry, TopicTable } from "../topic/topic-table.ts";
import { type Attempt, afterCut, cutShort, runTry } from "./attempt.ts";
import type { Breakers } from "./breaker/breakers.ts";
import { noteOutcome, provesLife } from "./breaker/note-outcome.ts";
import { type LeaseState, LeaseTable } from "./leases.ts";
import type { Prefetch } from "./prefetch.ts";
import type { Settler } from "./settler.ts";
import { forgetTenant, isWellSupplied, mayStart, NEVER_SEEN, paced, stillRunning, type TenantState } from "./topic-state.ts";
import { Waiting } from "./waiting.ts";

export interface RunnerOptions {
  readonly topics: TopicTable;
  readonly breakers: Breakers;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly concurrency: number;
  readonly prefetch: Prefetch;
  readonly settler: Settler;
  readonly leases: LeaseTable;
  /** Slots came free. */
  readonly nudge: () => void;
  readonly calls: UnderWay;
}

const SWEEP_MS = 100;
/** How long an aborted sink may take to answer before its slot is taken back. */
const GRACE_MS = 1_000;
/** A burst of synchronous attempts lets other work in after this. */
const BURST_MS = 20;
/** What waits longer than this for its start was claimed too early. */
const WAITED_MS = 500;

/** Its last attempts ended with the processes that made them, where nobody could take them back: it is not tried once more (I6). */
const SPENT: Outcome = { kind: "reject", code: "attempts_spent", error: "its attempts ended with the processes that made them" };

const isSpent = ({ message }: Attempt, { rules }: TopicEntry): boolean =>
  message.attempt - message.base > rules.policy.attemptsMax;

const mayRun = ({ lane, probe }: Attempt, nowMs: number): boolean =>
  mayStart(lane.topic, lane.tenantId, probe !== undefined, nowMs);

/** A tenant that was never seen to fail is likelier to be well than one that was; one that went through, likelier than both until a probe fails. */
function noteTenant(tenant: TenantState, outcome: Outcome, probe: boolean, nowMs: number): void {
  if (provesLife(outcome)) tenant.livedMs = nowMs;
  else if ((outcome.kind === "retry" || outcome.kind === "unknown") && (probe || tenant.livedMs === NEVER_SEEN))
    tenant.livedMs = Number.NEGATIVE_INFINITY;
}

export class Runner {
  readonly #options: RunnerOptions;
  readonly #waiting = new Waiting();
  readonly #running = new Set<Attempt>();
  readonly #emptied = new Set<() => void>();
  #bytes = 0;
  #retried = 0;
  #bursting: boolean = false;
  #stopped: boolean = false;
  #burst: Timer | undefined;
  #burstBeganMs = 0;
  #sweep: Timer | undefined;
  #sweptMs = 0;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** How many it holds of those that failed before. */
  get retried(): number {
    return this.#retried;
  }

  /** Payload bytes held, about: until they are settled, because until then they are in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Its settlement is written, by this worker or by another. */
  settled(attempt: Attempt): void {
    this.#bytes -= attempt.message.payload.length;
    this.#options.leases.settled(attempt.lease);
  }

  take(attempt: Attempt): void {
    const { topic, tenant } = attempt.lane;
    topic.held++;
    tenant.held++;
    if (attempt.lane.retried) this.#retried++;
    this.#bytes += attempt.message.payload.length;
    this.#waiting.push(attempt);
  }

  /** Starts what may start; called after every arrival and every end. */
  run(): void {
    if (this.#bursting || this.#stopped) return;
    this.#bursting = true;
    const { clock, concurrency, settler } = this.#options;
    let nowMs = clock.monotonicMs();
    while (this.#running.size < concurrency && this.#waiting.length > 0) {
      if (!this.#burst) this.#beginBurst(nowMs);
      if (nowMs - this.#burstBeganMs > BURST_MS) break;
      const attempt = this.#waiting.next();
      if (!attempt) break;
      nowMs = this.#start(attempt, nowMs);
    }
    this.#bursting = false;
    this.#watch(nowMs);
    settler.consider(this.#running.size === 0 && this.#waiting.length === 0);
  }

  /** Gives back what has not been started, as if it had never been claimed. */
  releaseWhere(chosen: (attempt: Attempt, index: number) => boolean): void {
    const taken = this.#waiting.takeWhere(chosen);
    for (const attempt of taken) this.#release(attempt);
    if (taken.length > 0) this.#options.settler.consider(this.#running.size === 0);
  }

  /** Gives back what may not be started any more. */
  releaseHeld(nowMs: number): void {
    this.releaseWhere((attempt) => !mayRun(attempt, nowMs));
  }

  /** The lease belongs to another worker: nothing under it may be started, and what runs is aborted. */
  #lost(lease: LeaseState): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const attempt of this.#waiting.takeWhere((one) => one.lease === lease)) {
      this.#end(attempt, nowMs);
      this.#drop(attempt);
    }
    for (const attempt of this.#running) if (attempt.lease === lease) attempt.abort("lost", nowMs);
  }

  /** Lets attempts finish for `drainMs`, then interrupts them. Nothing is held afterwards. */
  async drain(drainMs: number): Promise<void> {
    this.#stopped = true;
    this.releaseWhere(() => true);
    this.#options.settler.consider(true);
    await this.#empty(drainMs);
    for (const attempt of this.#running) attempt.abort("shutdown", this.#options.clock.monotonicMs());
    await this.#empty(GRACE_MS / 2);
    for (const attempt of this.#running) this.#finish(attempt, { kind: "interrupted" }, this.#options.clock.monotonicMs());
    this.#burst?.cancel();
  }

  /** The last timer; after everything is settled. */
  close(): void {
    this.#sweep?.cancel();
  }

  #start(attempt: Attempt, nowMs: number): number {
    const { topics, clock } = this.#options;
    const { topic } = attempt.lane;
    const handle =
      topic.entry && LeaseTable.lasts(attempt.lease, nowMs) && mayRun(attempt, nowMs) ? topics.sink(topic.entry) : null;
    if (!handle || !topic.entry) {
      this.#release(attempt);
      return nowMs;
    }
    handle.users++;
    attempt.handle = handle;
    topic.running++;
    attempt.lane.tenant.running++;
    attempt.timeoutMs = topic.entry.timeoutMs;
    attempt.startedMs = nowMs;
    const outcome = isSpent(attempt, topic.entry) ? SPENT : runTry(attempt, handle.sink, this.#options.events.spans);
    if (outcome instanceof Promise) {
      this.#running.add(attempt);
      void outcome.then((answer) => this.#answered(attempt, answer));
      return nowMs;
    }
    const endedMs = clock.monotonicMs();
    this.#finish(attempt, outcome, endedMs);
    return endedMs;
  }

  #answered(attempt: Attempt, outcome: Outcome): void {
    // Abandoned after its grace: its slot and its settlement are gone, what it says now is too late.
    if (attempt.over) return;
    this.#finish(attempt, outcome, this.#options.clock.monotonicMs());
    this.run();
    if (this.#stopped) this.#options.settler.consider(this.#running.size === 0);
    if (!isWellSupplied(attempt.lane.topic)) this.#options.nudge();
  }

  #finish(attempt: Attempt, answer: Outcome, nowMs: number): void {
    const { random, settler } = this.#options;
    const { lane, message, lease } = attempt;
    const { topic } = lane;
    this.#end(attempt, nowMs);
    const rules = topic.entry?.rules;
    // Without rules the topic was deleted under it: the process that finds the lapsed lease decides by the defaults.
    const durationMs = nowMs - attempt.startedMs;
    if (lease.lost || attempt.cut === "lost" || !rules) {
      attempt.span?.end({ kind: "lost" }, durationMs);
      this.#drop(attempt);
      return;
    }
    const outcome = afterCut(attempt, answer);
    attempt.span?.end(outcome, durationMs);
    if (outcome.kind !== "interrupted" && outcome.kind !== "unserved") paced(topic, durationMs);
    if (outcome !== SPENT) {
      noteOutcome(attempt, topic, outcome, nowMs, this.#options);
      noteTenant(lane.tenant, outcome, attempt.probe !== undefined, nowMs);
    }
    if (outcome.kind !== "delivered" && !mayStart(topic, message.tenantId, false, nowMs)) this.releaseHeld(nowMs);
    const chance = outcome.kind === "delivered" ? 0 : random.next();
    const probe = attempt.probe && topic.breaker.spares(message, attempt.probe);
    settler.add(attempt, conclude(probe ? { ...message, probe } : message, outcome, rules, chance, durationMs), nowMs);
  }

  #release(attempt: Attempt): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#end(attempt, nowMs);
    this.#options.settler.add(attempt, released(attempt.message), nowMs);
  }

  /** Not ours to settle any more. */
  #drop(attempt: Attempt): void {
    const { id, topic, attempt: number } = attempt.message;
    this.settled(attempt);
    this.#options.events.emit({ type: "claim_lost", topic, id, attempt: number });
  }

  /** The slot, the bytes and the counts are free again, whatever the outcome. */
  #end(attempt: Attempt, nowMs: number): void {
    const { lane, lease, handle } = attempt;
    attempt.over = true;
    lane.topic.held--;
    lane.tenant.held--;
    if (lane.retried) this.#retried--;
    lease.unfinished--;
    if (lease.unfinished === 0) this.#options.prefetch.batchDone(lease.size, nowMs - lease.receivedMs);
    if (handle) {
      lane.topic.running--;
      lane.tenant.running--;
      this.#waiting.ended(lane.topic, lane.tenant);
      this.#letGo(handle);
    }
    if (lane.tenant.lanes === 0) forgetTenant(lane.topic, lane.tenantId, lane.tenant);
    if (this.#running.delete(attempt) && this.#running.size === 0) for (const emptied of this.#emptied) emptied();
  }

  #letGo(handle: SinkHandle): void {
    if (handle.users > 1 || !handle.retired) handle.users--;
    else this.#options.topics.release(handle);
  }

  /**
   * Attempts that need no promise, on a store that answers without leaving the process, would otherwise follow each other
   * without end and let no timer and no socket of this process have its turn.
   */
  #beginBurst(nowMs: number): void {
    this.#burstBeganMs = nowMs;
    this.#burst = this.#options.clock.after(0, () => {
      this.#burst = undefined;
      if (this.#waiting.length === 0) return;
      this.run();
      this.#options.nudge();
    });
  }

  /** Keeps the sweep going while there is anything to watch. */
  #watch(nowMs: number): void {
    if (this.#sweep || this.#options.leases.size === 0) return;
    this.#sweptMs = nowMs;
    this.#sweep = this.#options.clock.after(SWEEP_MS, () => this.#sweepNow());
  }

  #sweepNow(): void {
    this.#sweep = undefined;
    const { clock, leases, calls } = this.#options;
    const nowMs = clock.monotonicMs();
    // After a blocked event loop answers may have arrived that nobody has read yet: they are read before they count as late.
    const blocked = nowMs - this.#sweptMs > 10 * SWEEP_MS;
    if (!blocked) this.#checkDeadlines(nowMs);
    calls.add(
      leases.extendDue(nowMs).then((lost) => {
        for (const lease of lost) this.#lost(lease);
      }),
    );
    this.#trim(nowMs);
    this.#watch(nowMs);
  }

  #checkDeadlines(nowMs: number): void {
    let ended = false;
    for (const attempt of this.#running) {
      const ranMs = nowMs - attempt.startedMs;
      stillRunning(attempt.lane.topic, ranMs);
      if (attempt.cut === null) {
        if (ranMs >= attempt.timeoutMs) attempt.abort("deadline", nowMs);
      } else if (nowMs - attempt.cutMs >= GRACE_MS) {
        this.#finish(attempt, cutShort(attempt), nowMs);
        ended = true;
      }
    }
    if (!ended) return;
    this.run();
    this.#options.nudge();
  }

  /** What cannot be started soon goes back, newest first: another worker may have a free slot. */
  #trim(nowMs: number): void {
    if (nowMs - this.#waiting.oldestMs() < WAITED_MS) return;
    const { prefetch } = this.#options;
    prefetch.tooMuch();
    const kept = Math.max(0, prefetch.target - this.#running.size);
    this.releaseWhere((_, index) => index >= kept);
  }

  /** Resolves when nothing runs, or after `ms`. */
  async #empty(ms: number): Promise<void> {
    if (this.#running.size === 0) return;
    const controller = new AbortController();
    const emptied = (): void => controller.abort();
    this.#emptied.add(emptied);
    await sleep(this.#options.clock, ms, controller.signal);
    this.#emptied.delete(emptied);
  }
}
