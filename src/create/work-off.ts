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
import type { WorkedOff, Worker, WorkOffOptions, WorkOptions } from "../worker/worker.ts";

export interface WorkOffParts {
  readonly store: Store;
  readonly ladder: Pick<Ladder, "status" | "drain">;
  readonly opened: () => boolean;
  readonly events: Events;
  readonly clock: Clock;
  readonly work: (options: WorkOptions) => Worker;
}

const LOOK_MS = 10;
const TIMEOUT_MS = 60_000;
/** What waits below is looked at every second. */
const BELOW_MS = 1_300;
const STORE_WAIT_MS = 1_500;

type Counts = { -readonly [K in keyof WorkedOff]: WorkedOff[K] };

/** Never rejects: what was done before something failed was done all the same. */
export async function workOff(parts: WorkOffParts, { timeoutMs = TIMEOUT_MS, ...how }: WorkOffOptions): Promise<WorkedOff> {
  const { events, ladder, clock } = parts;
  const { topics = ["*"] } = how;
  const chosen = (name: string): boolean => topics.some((pattern) => topicMatches(pattern, name));
  const counts: Counts = { attempts: 0, delivered: 0, dead: 0, error: null };
  const forget = events.on((event) => {
    // Attempt 0 is a direct try that deliver() made.
    if (event.type !== "attempt" || event.attempt === 0 || !chosen(event.topic)) return;
    counts.attempts++;
    if (event.status === "delivered") counts.delivered++;
    if (event.status === "dead") counts.dead++;
  });
  try {
    if (parts.opened() && waitingBelow(ladder) > 0) await within(clock, ladder.drain(), STORE_WAIT_MS).catch(() => null);
    if (ladder.status().primary === "down") await fromBelow(parts, counts);
    else await fromStore(parts, how, chosen, timeoutMs);
  } catch (error) {
    counts.error = error;
  } finally {
    forget();
  }
  return counts;
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

type Chosen = (topic: string) => boolean;

async function fromStore(parts: WorkOffParts, how: WorkOptions, chosen: Chosen, timeoutMs: number): Promise<void> {
  const { store, clock, work } = parts;
  // Another worker is busy with something, or died with it: a worker takes that back.
  const isLeased = async () => (await store.counts()).some(({ topic, status }) => status === "processing" && chosen(topic));
  if ((await isIdle(parts, chosen)) && !(await isLeased())) return;
  const worker = work(how);
  const isBusy = (): boolean => {
    const { running, waiting, unsettled } = worker.status();
    return running + waiting + unsettled > 0;
  };
  try {
    const endMs = clock.monotonicMs() + timeoutMs;
    while (clock.monotonicMs() < endMs && (isBusy() || !(await isIdle(parts, chosen)))) await sleep(clock, LOOK_MS);
  } finally {
    await worker.stop();
  }
}

/** Whether nothing of these topics is due, or only what is held. */
async function isIdle({ store, clock }: WorkOffParts, chosen: Chosen): Promise<boolean> {
  const lanes = await within(clock, store.lanes(), STORE_WAIT_MS);
  if (lanes === null) throw new MakegoodError("store_unavailable", `the store did not answer within ${STORE_WAIT_MS} ms`);
  for (const name of new Set(lanes.filter(({ dueInMs, topic }) => dueInMs <= 0 && chosen(topic)).map(({ topic }) => topic))) {
    const record = await store.topics.get(name);
    // Where a breaker's probe is due, the worker is about to make it.
    const held = record?.breaker.state === "open" && record.breaker.probeInMs > 0;
    if (record && !record.paused && record.disabledReason === null && !held) return false;
  }
  return true;
}
