/**
 * DF-12: while the primary store is away, what waits in memory and in the journal of this process is attempted from here, on its topic's
 * policy: due times, attempts, breaker, unknown outcomes, as a worker would. What was delivered leaves; everything else goes up with
 * its attempts when the store is back. What carries an ordering key, or holds unknown outcomes, waits for a store.
 */
import { conclude } from "../message/conclude.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Settlement } from "../message/settlement.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, inBackground, within } from "../platform/clock.ts";
import { startLoop } from "../platform/loop.ts";
import type { Random } from "../platform/random.ts";
import type { Below, TakenBelow, WaitingBelow } from "../store/fallback.ts";
import type { AfterTry, FailedTry } from "../store/tried-below.ts";
import type { Tried } from "./direct-try.ts";
import type { SinkTries, TryHow } from "./sink-tries.ts";
import type { TopicEntry, TopicTable } from "./topic-table.ts";

export interface BelowDeps {
  readonly below: Below;
  readonly tries: SinkTries;
  readonly topics: TopicTable;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
}

export interface BelowAttempts {
  /** Attempts under way may finish within `drainMs`; then they are interrupted, which does not count. */
  close(drainMs: number): Promise<void>;
}

/** Few: beside them stand the direct tries of every deliver(). */
const AT_ONCE_MAX = 8;
const LOOK_MS = 1_000;
const LOOK_MS_MIN = 10;
/** What does not count must not be tried without a pause either. */
const UNCOUNTED_MS = 1_000;

export function startBelowAttempts(deps: BelowDeps): BelowAttempts {
  const { below, topics, tries, clock } = deps;
  const stopping = new AbortController();
  /** Id → topic. */
  const underWay = new Map<string, string>();
  const running = new Set<Promise<void>>();

  function look(): number {
    if (!below.storeAway) return LOOK_MS;
    const nowMs = clock.wallMs();
    let nextMs = LOOK_MS;
    for (const one of below.list()) {
      // Whoever ends looks again.
      if (underWay.size >= AT_ONCE_MAX) return LOOK_MS;
      if (one.dueAtMs > nowMs) nextMs = Math.min(nextMs, one.dueAtMs - nowMs);
      else if (!underWay.has(one.id) && mayTry(one)) start(one);
    }
    return Math.max(LOOK_MS_MIN, nextMs);
  }

  function mayTry({ topic, ordered, dead }: WaitingBelow): boolean {
    const entry = topics.entry(topic);
    if (!entry || dead || ordered || entry.rules.onUnknown === "hold" || tries.obstacle(entry) !== null) return false;
    return tries.admits(entry) === "all" || ![...underWay.values()].includes(topic);
  }

  function start({ id, topic }: WaitingBelow): void {
    underWay.set(id, topic);
    const run = attempt(id)
      // The entry is where it was, and is attempted again.
      .catch(() => {})
      .finally(() => {
        underWay.delete(id);
        running.delete(run);
        loop.nudge();
      });
    running.add(run);
  }

  async function attempt(id: string): Promise<void> {
    const taken = await below.take(id);
    if (!taken) return;
    const entry = topics.entry(taken.message.topic);
    if (!entry || stopping.signal.aborted) return taken.release();
    await attemptTaken(deps, taken, entry, { timeoutMs: entry.timeoutMs, signal: stopping.signal, triesMax: 1 });
  }

  const loop = startLoop({ clock: inBackground(clock), step: async () => look(), failed: () => LOOK_MS });
  const unwatch = below.watch(() => loop.nudge());
  return {
    async close(drainMs) {
      unwatch();
      await loop.stop();
      await within(clock, Promise.allSettled([...running]), drainMs);
      stopping.abort();
      await Promise.allSettled([...running]);
    },
  };
}

export type TryBelow = Omit<TryHow, "attempt">;

/** One attempt of an entry that was taken: tried, decided like any other, and written beside the entry. */
export async function attemptTaken(
  deps: Pick<BelowDeps, "tries" | "random" | "events">,
  taken: TakenBelow,
  entry: TopicEntry,
  how: TryBelow,
): Promise<{ readonly tried: Tried; readonly kind: Settlement["kind"] }> {
  const { message, attempt } = taken;
  const spent = attempt > entry.rules.policy.attemptsMax;
  const tried = spent ? SPENT : await deps.tries.run(entry, message, { ...how, attempt });
  const claim = { lease: "", token: "" };
  const claimed = { id: message.id, claim, attempt, base: 0, handedDown: message.directTry !== undefined, suspicion: 0 } as const;
  const { settlement } = conclude(claimed, outcomeOf(tried), entry.rules, deps.random.next());
  const written =
    settlement.kind === "delivered" ? taken.delivered() : taken.failed(afterTry(settlement, spent ? null : tried.ms));
  // What could not be written costs a repeat with the same key, never the entry.
  await written.catch(() => {});
  announce(deps.events, { ...message, attempt }, settlement, tried.ms);
  return { tried, kind: settlement.kind };
}

/** Its last attempts ended with their processes: the budget is used up, and it is not tried once more. */
const SPENT: Tried = {
  outcome: { kind: "reject", code: "attempts_spent", error: "its attempts ended with the processes that made them" },
  tries: 0,
  ms: 0,
};

/** Our own shutdown is nobody's failure. */
export function outcomeOf({ outcome }: Tried): Outcome {
  return outcome.kind === "unknown" && outcome.code === "aborted" ? { kind: "interrupted" } : outcome;
}

function afterTry(settlement: Settlement, ms: number | null): AfterTry {
  if (settlement.kind === "delivered") return { failed: null, delayMs: 0, dead: false };
  if (settlement.kind === "release") return { failed: null, delayMs: UNCOUNTED_MS, dead: false };
  const { code, error } = settlement;
  const outcome = settlement.outcome as FailedTry["outcome"];
  const failed: FailedTry = { outcome, code, error, ms: ms === null ? null : Math.round(ms) };
  if (settlement.kind === "dead") return { failed, delayMs: 0, dead: true };
  const counted = settlement.counted;
  const delayMs = settlement.kind === "retry" ? settlement.delayMs : 0;
  return { failed: counted ? failed : null, delayMs: counted ? delayMs : Math.max(delayMs, UNCOUNTED_MS), dead: false };
}

const STATUS = { delivered: "delivered", retry: "pending", dead: "dead", hold: "held", release: "pending" } as const;

type Attempted = { readonly id: string; readonly topic: string; readonly attempt: number };

export function announce(events: Events, { id, topic, attempt }: Attempted, settlement: Settlement, ms: number): void {
  if (settlement.kind === "release") return;
  const { code, error } = settlement.kind === "delivered" ? { code: null, error: null } : settlement;
  const { outcome } = settlement;
  events.emit({ type: "attempt", topic, id, attempt, outcome, status: STATUS[settlement.kind], ms, code, error, alert: false });
}
