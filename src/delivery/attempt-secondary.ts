/**
 * While the primary store is away, what the secondary store took is attempted there, under claims of that store, on its topic's policy. Whatever
 * is not delivered goes up with its attempts when the primary is back. What carries an ordering key, or holds unknown outcomes, waits.
 */
import { conclude, released } from "../message/conclude.ts";
import type { ClaimedMessage } from "../message/message.ts";
import { inBackground, within } from "../platform/clock.ts";
import { startLoop } from "../platform/loop.ts";
import type { Lane, Store } from "../store/store.ts";
import { announce, type BelowAttempts, type BelowDeps, outcomeOf } from "./attempt-below.ts";
import type { TopicEntry } from "./topic-table.ts";

export interface SecondaryDeps extends BelowDeps {
  readonly secondary: Store;
  readonly owner: string;
}

const AT_ONCE_MAX = 8;
const LOOK_MS = 1_000;
const SOON_MS = 50;
const FAILED_MS_MAX = 10_000;
const RECLAIM_MS = 5_000;
const RECLAIM_MAX = 100;
/** A claim outlasts the attempt by this, so that its outcome can be written. */
const LEASE_MARGIN_MS = 5_000;

export function startSecondaryAttempts(deps: SecondaryDeps): BelowAttempts {
  const { below, clock } = deps;
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let reclaimedMs = Number.NEGATIVE_INFINITY;

  const loop = startLoop({
    clock: inBackground(clock),
    step: async () => {
      if (!below.storeAway) return LOOK_MS;
      if (clock.monotonicMs() - reclaimedMs > RECLAIM_MS) {
        reclaimedMs = clock.monotonicMs();
        await takeBack(deps);
      }
      const free = AT_ONCE_MAX - running.size;
      const { due: lane, nextMs } = free > 0 ? await look(deps, running.size) : NOTHING;
      if (!lane) return nextMs;
      for (const claimed of await claim(deps, lane, free)) {
        const run = attempt(deps, claimed, lane.entry, stopping.signal)
          // Not settled: its lease ends, and it comes back with the same key.
          .catch(() => {})
          .finally(() => {
            running.delete(run);
            loop.nudge();
          });
        running.add(run);
      }
      return SOON_MS;
    },
    // The secondary may be away in its turn; the ladder says so where it matters.
    failed: (_error, consecutive) => Math.min(FAILED_MS_MAX, LOOK_MS * consecutive),
  });
  const unwatch = below.watch(() => loop.nudge());
  return {
    async close(drainMs) {
      unwatch();
      // A store that hangs must not keep a process from ending.
      await within(clock, loop.stop(), Math.min(drainMs, LOOK_MS));
      await within(clock, Promise.allSettled([...running]), drainMs);
      stopping.abort();
      await within(clock, Promise.allSettled([...running]), LOOK_MS);
    },
  };
}

interface DueLane {
  readonly lane: Lane;
  readonly entry: TopicEntry;
  readonly limit: number;
}

interface Looked {
  /** The lane that has waited longest of those that may be tried here. */
  readonly due: DueLane | null;
  /** When there may be one. */
  readonly nextMs: number;
}

const NOTHING: Looked = { due: null, nextMs: LOOK_MS };

async function look({ secondary, topics, tries }: SecondaryDeps, underWay: number): Promise<Looked> {
  let found: DueLane | null = null;
  let nextMs = LOOK_MS;
  for (const lane of await secondary.lanes()) {
    const entry = topics.entry(lane.topic);
    if (lane.dueInMs > 0) nextMs = Math.min(nextMs, Math.max(lane.dueInMs, SOON_MS));
    if (lane.ordered || lane.dueInMs > 0 || (found && lane.dueInMs >= found.lane.dueInMs)) continue;
    if (!entry || entry.rules.onUnknown === "hold" || tries.obstacle(entry) !== null) continue;
    const alone = tries.admits(entry) === "one" || lane.suspicion > 0;
    if (!alone || underWay === 0) found = { lane, entry, limit: alone ? 1 : AT_ONCE_MAX };
  }
  return { due: found, nextMs };
}

function claim({ secondary, owner }: SecondaryDeps, { lane, entry, limit }: DueLane, free: number): Promise<ClaimedMessage[]> {
  const leaseMs = Math.max(entry.record.leaseMs, entry.timeoutMs + LEASE_MARGIN_MS);
  return secondary.claim({ owner, leaseMs, lanes: [{ lane: lane.lane, limit: Math.min(limit, free) }] });
}

async function attempt(deps: SecondaryDeps, claimed: ClaimedMessage, entry: TopicEntry, signal: AbortSignal): Promise<void> {
  const { attempt: number } = claimed;
  const tried = await deps.tries.run(entry, claimed, { attempt: number, timeoutMs: entry.timeoutMs, signal, triesMax: 1 });
  const settle = conclude(claimed, outcomeOf(tried), entry.rules, deps.random.next(), tried.ms);
  const [written] = await deps.secondary.settle([settle]);
  if (written === "settled") announce(deps.events, claimed, settle.settlement, tried.ms);
}

/** Claims whose process is gone: nobody else may be there to find them while the primary is away. */
async function takeBack(deps: SecondaryDeps): Promise<void> {
  const { secondary, owner, topics, random } = deps;
  const lost = await secondary.reclaim({ owner, leaseMs: LEASE_MARGIN_MS, limit: RECLAIM_MAX });
  for (const one of lost) {
    const entry = topics.entry(one.topic);
    await secondary.settle([entry ? conclude(one, { kind: "lost" }, entry.rules, random.next()) : released(one)]);
  }
}
