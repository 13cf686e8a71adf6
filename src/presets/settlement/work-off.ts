/**
 * One pass of replays on a kernel store: a worker for this topic alone, for as long as something is due and may be attempted. Claims,
 * leases, breaker and decisions are the kernel's; what happened is read from its events.
 */
import type { Makegood } from "../../create.ts";
import type { Worker } from "../../delivery/worker.ts";
import type { MessageView } from "../../message/message.ts";
import type { MakegoodEvent } from "../../observe/events.ts";
import { type Clock, sleep } from "../../platform/clock.ts";
import type { Lines } from "./lines.ts";
import { NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { readRequest } from "./request.ts";
import { TOPIC } from "./topic.ts";

const IDLE_LOOK_MS = 20;
/** A pass ends after this, whatever is left: the next one goes on. */
const PASS_MS_MAX = 60_000;

/** A worker for as long as something is due and may be attempted; what it did is read from its events. */
export async function workOff(mg: Makegood, clock: Clock, lines: Lines): Promise<ReplayCounts> {
  const counts = { ...NO_REPLAYS };
  const dead: string[] = [];
  const forget = mg.events.on((event) => count(event, counts, dead));
  const worker = mg.work({ topics: [TOPIC] });
  try {
    const endMs = clock.monotonicMs() + PASS_MS_MAX;
    while (clock.monotonicMs() < endMs && !(await isIdle(mg, worker))) await sleep(clock, IDLE_LOOK_MS);
  } finally {
    await worker.stop();
    forget();
  }
  for (const id of dead) await describeDead(mg, id, lines);
  return counts;
}

function count(event: MakegoodEvent, counts: { -readonly [K in keyof ReplayCounts]: number }, dead: string[]): void {
  // Attempt 0 is a direct try that deliver() made.
  if (event.type !== "attempt" || event.topic !== TOPIC || event.attempt === 0) return;
  counts.replayed++;
  if (event.status === "delivered") counts.succeeded++;
  else if (event.status === "dead") {
    counts.terminal++;
    dead.push(event.id);
  } else counts.failed++;
}

async function isIdle(mg: Makegood, worker: Worker): Promise<boolean> {
  const { running, waiting, unsettled: unwritten } = worker.status();
  if (running + waiting + unwritten > 0) return false;
  const due = (await mg.store.lanes()).some(({ topic: of, dueInMs }) => of === TOPIC && dueInMs <= 0);
  if (!due) return true;
  const record = await mg.store.topics.get(TOPIC);
  if (record === null || record.paused || record.disabledReason !== null) return true;
  // An open breaker holds them; where its probe is due, the worker is about to make it.
  return record.breaker.state === "open" && record.breaker.probeInMs > 0;
}

async function describeDead(mg: Makegood, id: string, lines: Lines): Promise<void> {
  const message: MessageView | null = await mg.store.get(id).catch(() => null);
  if (message === null) return;
  const { request } = readRequest(JSON.parse(message.payload), () => message.key ?? id);
  const reason = `${message.lastCode}: ${message.lastError}`;
  const created_at = message.createdAt.toISOString();
  const entry = { ...request, reason, response_status: null, attempt_count: message.attempts, created_at };
  lines.terminal(entry, message.attempts, mg.store.traits.name);
}
