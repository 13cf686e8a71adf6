/**
 * Workers for what lies below the primary store while that is away: a dispatcher on the secondary store, another on the journal and memory of
 * this process. They attempt as every worker does; what was not delivered goes up with its attempts when the primary is back. What carries
 * an ordering key, or holds unknown outcomes, waits for it.
 */
import { reclaimExpired } from "../maintenance/jobs/reclaim-expired.ts";
import { type Maintenance, startMaintenance } from "../maintenance/maintenance.ts";
import { type Events, eventsOf } from "../observe/events.ts";
import { type Clock, inBackground, within } from "../platform/clock.ts";
import type { JobTurn } from "../platform/job.ts";
import { startLoop } from "../platform/loop.ts";
import type { Random } from "../platform/random.ts";
import type { Ladder } from "../store/fallback.ts";
import type { Store, WorkStore } from "../store/store.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import type { Breakers } from "../worker/breaker/breakers.ts";
import { Dispatcher } from "../worker/dispatcher.ts";

export interface BelowWorkersOptions {
  readonly ladder: Ladder;
  readonly secondary: Store | null;
  readonly topics: TopicTable;
  readonly breakers: Breakers;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly pollMs: number;
}

/** Few: beside them stand the direct tries of every deliver(). */
const AT_ONCE_MAX = 8;
const LOOK_MS = 1_000;
const RECLAIM_MS = 5_000;
/** A store that hangs must not keep a process from ending. */
const STOP_MS = 2_000;

/** They begin when the primary is first found away. */
export function startBelowWorkers(options: BelowWorkersOptions): { close(drainMs: number): Promise<void> } {
  const { ladder, secondary, topics, breakers, random, pollMs } = options;
  const clock = inBackground(options.clock);
  const away = (): boolean => ladder.away;
  const running: Dispatcher[] = [];
  let reclaiming: Maintenance | null = null;

  /** Nothing of it is claimed while the primary can take it. */
  function whileAway(store: WorkStore): WorkStore {
    const serves = (topic: string): boolean => topics.entry(topic)?.rules.onUnknown === "retry";
    return {
      lanes: async () => (away() ? (await store.lanes()).filter(({ ordered, topic }) => !ordered && serves(topic)) : []),
      claim: async (request) => (away() ? store.claim(request) : []),
      extend: (claims, leaseMs) => store.extend(claims, leaseMs),
      settle: (settles) => store.settle(settles),
      wake: (listener) => store.wake(listener),
      idle: async () => {},
    };
  }

  function start(): void {
    const how = { topics, breakers, clock, random, patterns: ["*"], concurrency: AT_ONCE_MAX, pollMs, drainMs: 0, below: true };
    const serve = (store: WorkStore, events: Events): void =>
      void running.push(new Dispatcher({ ...how, store: whileAway(store), events, owner: `below-${options.ids()}` }));
    const below = ladder.status().holdings.some(({ place }) => place === "journal") ? "journal" : "memory";
    serve(ladder.below, eventsOf(options.events, below));
    if (!secondary) return;
    const events = eventsOf(options.events, "secondary");
    serve(secondary, events);
    // Claims whose process is gone: nobody else may be there to find them.
    const owner = `below-${options.ids()}`;
    const rulesOf = (topic: string) => topics.entry(topic)?.rules;
    const store = { reclaim: secondary.reclaim.bind(secondary), settle: secondary.settle.bind(secondary) };
    const reclaim = reclaimExpired({ store, owner, random, events, rulesOf, everyMs: RECLAIM_MS });
    const run = async (signal: AbortSignal, turn: JobTurn): Promise<void> => {
      if (away()) await reclaim.run(signal, turn);
    };
    const whenAway = { ...reclaim, run };
    reclaiming = startMaintenance({ store: secondary, owner, clock, random, events, jobs: [whenAway] });
  }

  const loop = startLoop({
    clock,
    step: async () => {
      if (running.length === 0 && away()) start();
      return LOOK_MS;
    },
    failed: () => LOOK_MS,
  });
  const unwatch = ladder.below.wake(() => {
    if (running.length === 0) loop.nudge();
  });
  return {
    async close(drainMs) {
      unwatch();
      await loop.stop();
      const stopped = Promise.allSettled(running.map((one) => one.stop({ drainMs })));
      await within(options.clock, Promise.resolve(reclaiming?.stop()), STOP_MS);
      await within(options.clock, stopped, drainMs + STOP_MS);
    },
  };
}
