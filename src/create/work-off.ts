/**
 * Work until nothing is left that may be attempted now: one worker for as long as something is due that no pause, disabled sink or breaker holds.
 * While the store is away what waits below it is attempted by workers of its own, and this waits for them. What was attempted is read from
 * the events.
 */
import { MakegoodError } from "../message/errors.ts";
import { topicMatches } from "../message/validate.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, sleep, within } from "../platform/clock.ts";
import type { Ladder } from "../store/fallback.ts";
import type { Store } from "../store/store.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import type { WorkedOff, Worker, WorkOffOptions, WorkOptions } from "../worker/worker.ts";

export interface WorkOffParts {
  readonly store: Store;
  readonly topics: TopicTable;
  readonly ladder: Pick<Ladder, "status" | "drain">;
  readonly opened: () => boolean;
  readonly events: Events;
  readonly clock: Clock;
  readonly work: (options: WorkOptions) => Worker;
}

export const LOOK_MS = 10;
const TIMEOUT_MS = 60_000;
/** What waits below is looked at every second. */
const BELOW_MS = 1_300;
const STORE_WAIT_MS = 1_500;

export type Counts = { -readonly [K in keyof WorkedOff]: WorkedOff[K] };

/** Never rejects: what was done before something failed was done all the same. */
export async function workOff(parts: WorkOffParts, { timeoutMs = TIMEOUT_MS, ...how }: WorkOffOptions): Promise<WorkedOff> {
  const { ladder } = parts;
  const chosen = chosenBy(how);
  const { counts, forget } = countAttempts(parts, chosen);
  try {
    await moveUp(parts);
    if (ladder.status().primary === "down") await fromBelow(parts, counts);
    else await fromStore(parts, how, chosen, timeoutMs);
  } catch (error) {
    counts.error = error;
  } finally {
    forget();
  }
  return counts;
}

export function chosenBy({ topics = ["*"] }: WorkOptions): Chosen {
  return (name) => topics.some((pattern) => topicMatches(pattern, name));
}

export function countAttempts({ events }: WorkOffParts, chosen: Chosen): { counts: Counts; forget: () => void } {
  const counts: Counts = { attempts: 0, delivered: 0, dead: 0, error: null };
  const forget = events.on((event) => {
    // Attempt 0 is a direct try that deliver() made.
    if (event.type !== "attempt" || event.attempt === 0 || !chosen(event.topic)) return;
    counts.attempts++;
    if (event.status === "delivered") counts.delivered++;
    if (event.status === "dead") counts.dead++;
  });
  return { counts, forget };
}

export async function moveUp({ ladder, opened, clock }: WorkOffParts): Promise<void> {
  if (opened() && waitingBelow(ladder) > 0) await within(clock, ladder.drain(), STORE_WAIT_MS).catch(() => null);
}

function waitingBelow(ladder: WorkOffParts["ladder"]): number {
  const { journal, memory } = ladder.status().waiting;
  return journal + memory;
}

async function fromBelow({ ladder, clock }: WorkOffParts, counts: WorkedOff): Promise<void> {
  let [seen, untilMs] = [-1, 0];
  while (waitingBelow(ladder) > 0) {
    if (counts.attempts !== seen) [seen, untilMs] = [counts.attempts, clock.monotonicMs() + BELOW_MS];
    if (clock.monotonicMs() > untilMs) return;
    await sleep(clock, LOOK_MS);
  }
}

export type Chosen = (topic: string) => boolean;

async function fromStore(parts: WorkOffParts, how: WorkOptions, chosen: Chosen, timeoutMs: number): Promise<void> {
  const { clock, work } = parts;
  if (await hasNothing(parts, chosen)) return;
  const worker = work(how);
  try {
    await untilIdle(parts, worker, chosen, clock.monotonicMs() + timeoutMs);
  } finally {
    await worker.stop();
  }
}

/** Nothing is due, and nobody else is busy with something or died with it, which a worker would take back. */
export async function hasNothing(parts: WorkOffParts, chosen: Chosen): Promise<boolean> {
  if ((await nextDueInMs(parts, chosen)) === 0) return false;
  return !(await parts.store.counts()).some(({ topic, status }) => status === "processing" && chosen(topic));
}

export async function untilIdle(parts: WorkOffParts, worker: Worker, chosen: Chosen, endMs: number): Promise<void> {
  const { clock } = parts;
  const isBusy = (): boolean => {
    const { running, waiting, unsettled } = worker.status();
    return running + waiting + unsettled > 0;
  };
  while (clock.monotonicMs() < endMs && (isBusy() || (await nextDueInMs(parts, chosen)) === 0)) await sleep(clock, LOOK_MS);
}

/** In how long something of these topics may be attempted here; null: nothing waits, or only what is held or not served here. */
export async function nextDueInMs({ store, topics, clock }: WorkOffParts, chosen: Chosen): Promise<number | null> {
  const lanes = await within(clock, store.lanes(), STORE_WAIT_MS);
  if (lanes === null) throw new MakegoodError("store_unavailable", `the store did not answer within ${STORE_WAIT_MS} ms`);
  const byTopic = new Map<string, number>();
  for (const { topic, dueInMs } of lanes) if (chosen(topic)) byTopic.set(topic, Math.min(byTopic.get(topic) ?? dueInMs, dueInMs));
  let next: number | null = null;
  for (const [name, dueInMs] of [...byTopic].sort(([, a], [, b]) => a - b)) {
    if (next !== null && dueInMs >= next) break;
    const entry = topics.entry(name);
    if (entry && topics.sink(entry) === null) continue;
    const record = await store.topics.get(name);
    if (!record || record.paused || record.disabledReason !== null) continue;
    // Where a breaker's probe is due, the worker is about to make it.
    const probeInMs = record.breaker.state === "open" ? record.breaker.probeInMs : 0;
    const inMs = Math.max(0, dueInMs, probeInMs);
    if (next === null || inMs < next) next = inMs;
  }
  return next;
}
