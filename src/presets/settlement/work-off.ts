/**
 * One pass of replays: a worker for this topic alone, for as long as something is due and may be attempted. Claims, leases, breaker and decisions
 * are the kernel's; what happened is read from its events. While the store is away the kernel attempts what waits below by itself, and the
 * pass waits for that.
 */
import type { Makegood } from "../../create.ts";
import type { Worker } from "../../delivery/worker.ts";
import type { MakegoodEvent } from "../../observe/events.ts";
import { type Clock, sleep, within } from "../../platform/clock.ts";
import { NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { TOPIC } from "./topic.ts";

const LOOK_MS = 10;
/** A pass ends after this, whatever is left: the next one goes on. */
const PASS_MS_MAX = 60_000;
/** What waits below is looked at every second. */
const BELOW_MS = 1_300;
const STORE_WAIT_MS = 1_500;

/** Never rejects: what was done before something failed was done all the same (DF-21). */
export async function workOff(mg: Makegood, clock: Clock, failed: (error: unknown) => void): Promise<ReplayCounts> {
  const counts = { ...NO_REPLAYS };
  const forget = mg.events.on((event) => count(event, counts));
  try {
    if (mg.opened() && waitingBelow(mg) > 0) await within(clock, mg.ladder.drain(), STORE_WAIT_MS).catch(() => null);
    if (mg.ladder.status().primary === "down") await fromBelow(mg, clock, counts);
    else await fromStore(mg, clock);
  } catch (error) {
    failed(error);
  } finally {
    forget();
  }
  return counts;
}

const waitingBelow = (mg: Makegood): number => {
  const { journal, memory } = mg.ladder.status().waiting;
  return journal + memory;
};

async function fromBelow(mg: Makegood, clock: Clock, counts: ReplayCounts): Promise<void> {
  let [seen, untilMs] = [-1, 0];
  while (waitingBelow(mg) > 0) {
    if (counts.replayed !== seen) [seen, untilMs] = [counts.replayed, clock.monotonicMs() + BELOW_MS];
    if (clock.monotonicMs() > untilMs) return;
    await sleep(clock, LOOK_MS);
  }
}

async function fromStore(mg: Makegood, clock: Clock): Promise<void> {
  if (await isIdle(mg, clock, null)) return;
  const worker = mg.work({ topics: [TOPIC] });
  try {
    const endMs = clock.monotonicMs() + PASS_MS_MAX;
    while (clock.monotonicMs() < endMs && !(await isIdle(mg, clock, worker))) await sleep(clock, LOOK_MS);
  } finally {
    await worker.stop();
  }
}

function count(event: MakegoodEvent, counts: { -readonly [K in keyof ReplayCounts]: number }): void {
  // Attempt 0 is a direct try that deliver() made.
  if (event.type !== "attempt" || event.topic !== TOPIC || event.attempt === 0) return;
  counts.replayed++;
  if (event.status === "delivered") counts.succeeded++;
  else if (event.status === "dead") counts.terminal++;
  else counts.failed++;
}

async function isIdle(mg: Makegood, clock: Clock, worker: Worker | null): Promise<boolean> {
  const { running = 0, waiting = 0, unsettled = 0 } = worker?.status() ?? {};
  if (running + waiting + unsettled > 0) return false;
  const lanes = await within(clock, mg.store.lanes(), STORE_WAIT_MS);
  if (lanes === null) throw new Error(`the store did not answer within ${STORE_WAIT_MS} ms`);
  if (!lanes.some(({ topic, dueInMs }) => topic === TOPIC && dueInMs <= 0)) return worker !== null || !(await isLeased(mg));
  const record = await mg.store.topics.get(TOPIC);
  if (record === null || record.paused || record.disabledReason !== null) return true;
  // An open breaker holds them; where its probe is due, the worker is about to make it.
  return record.breaker.state === "open" && record.breaker.probeInMs > 0;
}

/** Somebody is busy with something, or died with it: a worker takes that back. */
async function isLeased(mg: Makegood): Promise<boolean> {
  return (await mg.store.counts()).some(({ topic, status }) => topic === TOPIC && status === "processing");
}
