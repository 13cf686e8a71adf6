/** One process's work on one redrive. Every write is under the claim's token; a claim that was lost is dropped in silence. */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { backoffMs } from "../../platform/backoff.ts";
import { carrierFor, createCarrierTopics, downTopics } from "../carrier.ts";
import type { RedriveRecords } from "../records.ts";
import { nextStep, type StepState, stateOf } from "./next-step.ts";
import { announce, type Redrive, redriveLine, sends } from "./redrive.ts";
import type { Room } from "./redrive-sql.ts";
import type { RedriveDeps } from "./redrives.ts";
import { planOf } from "./request.ts";

export const REDRIVE_SETTINGS = {
  /** How long a runner that was killed keeps its redrive from the others. */
  leaseMs: 10_000,
  /** How often a runner with room looks for work without a nudge. */
  pollMs: 1_000,
  /** How long one process keeps a redrive before others may have it. */
  workMs: 5_000,
  /** How many redrives one process works on at a time. */
  heldMax: 8,
  /** A resolved message that nobody replayed for so long stays resolved. */
  quietMs: 300_000,
  /** A dry run that nobody resumed is cancelled after so long. */
  plannedMs: 24 * 3_600_000,
};
export type RedriveSettings = Readonly<typeof REDRIVE_SETTINGS>;

const LOOK_ITEMS = 1_000;
/** Slower while it sends: a look reads a thousand messages, and little changes in a hundred milliseconds. */
const LOOK_MS = { canary: 100, sending: 500 } as const;
/** A message that is only watched is given up after so long without news, and nothing is learned from it. */
const WATCH_MS_MAX = 30 * 24 * 3_600_000;
const ANNOUNCE_MS = 1_000;
const DOWN_MS = 1_000;
const AGAIN = { firstMs: 1_000, maxMs: 30_000 };
/** How long one that does not run is left alone between two looks; resuming it takes as long at most. */
const REST_MS = { min: 2_000, resumable: 10_000, ended: 600_000 } as const;

type Claim = NonNullable<Awaited<ReturnType<RedriveRecords["claim"]>>>;

/** What a process needs for all its redrives. */
export const partsOf = (deps: RedriveDeps) => ({
  ...deps,
  records: deps.recovery.redrives,
  settings: { ...REDRIVE_SETTINGS, ...deps.settings },
  carrierTopic: createCarrierTopics(deps.store.topics),
  origin: deps.recovery.redrives.origin,
});

type Held = ReturnType<typeof hold>;

/** What a process knows of a redrive that it claimed. Times are of the wall clock. */
export function hold(parts: ReturnType<typeof partsOf>, { redrive, token }: Claim, nowMs: number) {
  const plan = planOf(redrive.plan);
  const startedMs = (redrive.startedAt ?? redrive.createdAt).getTime();
  return {
    ...{ parts, id: redrive.redriveId, token, plan, redrive },
    state: stateOf(redrive.state, nowMs, startedMs, startedMs + plan.delayMs),
    /** When there is something to do again, and when others may have it. */
    dueMs: nowMs,
    untilMs: nowMs + parts.settings.workMs,
    ...{ keptMs: nowMs, lookMs: 0, announcedMs: nowMs, failures: 0 },
    announced: null as Pick<Redrive, "status" | "counts"> | null,
    /** Topics whose receivers are down, and when that was asked. */
    down: [] as readonly string[],
    downMs: Number.NEGATIVE_INFINITY,
    /** Null: what is known here may be old, as something was asked for and not answered, or a person changed it. */
    room: null as Room | null,
    /** The last look ended some and had no room for all: there is more to be seen at once. */
    more: false,
  };
}

/** False: this process has it no more. */
export async function work(held: Held, nowMs: number): Promise<boolean> {
  try {
    const goesOn = await step(held, nowMs);
    held.failures = 0;
    return goesOn && nowMs >= held.untilMs ? leave(held, null) : goesOn;
  } catch (error) {
    return failed(held, error, nowMs);
  }
}

async function step(held: Held, nowMs: number): Promise<boolean> {
  const { id, plan, parts } = held;
  if (held.room === null) {
    const redrive = await parts.records.recount(id, held.token);
    if (!redrive) return false;
    held.redrive = redrive;
    held.announced ??= redrive;
  }
  await askReceivers(held, nowMs);
  if (!(await look(held, nowMs))) return false;
  held.dueMs = nowMs;
  if (held.redrive.status !== "running") return held.more || rest(held, nowMs);
  held.room = await parts.records.room(id, boundsOf(held));
  const { step: next, state } = nextStep(plan, held.redrive.counts, held.room, held.state, nowMs);
  if (next.kind === "stop" || next.kind === "done") {
    held.state = state;
    return end(held, next.kind === "stop" ? "stopped" : "done", next.reason, nowMs);
  }
  // Before anything is sent the lease must hold for the time that takes.
  const { leaseMs } = parts.settings;
  if (nowMs - held.keptMs >= leaseMs / 3) {
    if (!(await keep(held, leaseMs))) return false;
    held.keptMs = nowMs;
  }
  if (next.kind === "wait") {
    held.state = state;
    if (!held.more && next.ms >= REST_MS.min) return leave(held, next.ms);
    if (!held.more) held.dueMs = nowMs + next.ms;
  } else if (!(await send(held, next.n, state))) return false;
  if (nowMs - held.announcedMs >= ANNOUNCE_MS) tell(held, nowMs);
  return true;
}

/** What may be sent of each group. Without a canary nobody wants it to be held back. */
const boundsOf = ({ plan: { canary }, down }: Held) => ({ canary, down: canary === 0 ? [] : down });

async function askReceivers(held: Held, nowMs: number): Promise<void> {
  if (!sends(held.redrive.mode) || (nowMs >= held.downMs && nowMs < held.downMs + DOWN_MS)) return;
  held.downMs = nowMs;
  held.down = downTopics(await held.parts.store.topics.list(), held.redrive);
}

async function look(held: Held, nowMs: number): Promise<boolean> {
  const { redrive, room, down, parts } = held;
  const { mode, counts: before, action } = redrive;
  held.more = false;
  const judges = before.sent > 0 || (room?.inconclusive ?? 0) + (room?.undecided ?? 0) > 0;
  if (!judges || nowMs < held.lookMs) return true;
  // What a person resolved is not tried out: nothing is learned from it.
  const quietMs = mode === "watch" ? WATCH_MS_MAX : action === null ? 0 : parts.settings.quietMs;
  const counts = await parts.records.look(held.id, held.token, { limit: LOOK_ITEMS, quietMs, down });
  if (!counts) return false;
  held.redrive = { ...redrive, counts };
  held.more = before.sent > LOOK_ITEMS && counts.sent < before.sent;
  const ramps = held.state.rampMs !== null && counts.waiting > 0;
  held.lookMs = held.more ? nowMs : nowMs + (ramps ? LOOK_MS.sending : LOOK_MS.canary);
  return true;
}

async function send(held: Held, n: number, state: StepState): Promise<boolean> {
  const { id, token, plan, parts } = held;
  const { mode, counts } = held.redrive;
  const next = await parts.records.next(id, n, mode === "new_key" || mode === "copy", boundsOf(held));
  const items = await Promise.all(
    next.map(async ({ item, message }) => {
      return { n: item.n, carrier: message ? await carrierFor(mode, plan.carrier, message, parts) : undefined };
    }),
  );
  // Before the call: if its answer is lost, the messages may have been sent all the same.
  held.state = state;
  const result = await parts.records.send(id, token, items);
  if (result.kind === "not_running") held.room = null;
  if (result.kind !== "done") return result.kind === "not_running";
  const { sent, skipped } = result;
  const waiting = Math.max(0, counts.waiting - sent - skipped);
  held.redrive = { ...held.redrive, counts: { ...counts, waiting, sent: counts.sent + sent, skipped: counts.skipped + skipped } };
  return true;
}

async function end(held: Held, status: "stopped" | "done", reason: string | null, nowMs: number): Promise<boolean> {
  const { owner, records, settings } = held.parts;
  if (!(await keep(held, settings.leaseMs))) return false;
  const line = redriveLine(status, held.redrive, { actor: owner, actorType: "system" }, reason, held.redrive.counts);
  const changed = await records.change(held.id, { from: ["running"], status, reason }, [line]);
  held.redrive = changed.redrive;
  if (changed.kind !== "done") return true;
  tell(held, nowMs);
  return rest(held, nowMs);
}

function rest(held: Held, nowMs: number): Promise<false> {
  const { status, counts } = held.redrive;
  const ended = status === "done" || status === "cancelled";
  const agoMs = nowMs - held.state.lastSentMs;
  const restMs = Math.min(ended ? REST_MS.ended : REST_MS.resumable, Math.max(REST_MS.min, agoMs / 10));
  return leave(held, counts.sent === 0 ? null : Math.round(restMs));
}

/**
 * `leaseMs`: the lease runs on for so long, so that no other process looks at it too soon; null: others may have it at once. Harmless
 * when it was lost.
 */
export async function leave(held: Held, leaseMs: number | null): Promise<false> {
  tell(held);
  await keep(held, leaseMs);
  return false;
}

function keep({ parts, id, token, state }: Held, leaseMs: number | null): Promise<boolean> {
  const how = leaseMs === null ? { release: true } : { leaseMs };
  return parts.records.keep(id, token, { state: JSON.stringify(state), ...how });
}

function tell(held: Held, nowMs = held.announcedMs): void {
  const { redrive, announced } = held;
  if (!announced || (redrive.status === announced.status && redrive.counts === announced.counts)) return;
  announce(held.parts.events, redrive, announced.counts);
  held.announced = redrive;
  held.announcedMs = nowMs;
}

/** An error that a retry cannot mend stops the redrive with its reason; others are tried again, with growing waits. */
async function failed(held: Held, error: unknown, nowMs: number): Promise<boolean> {
  held.failures++;
  held.room = null;
  const text = `redrive ${held.id}: ${errorText(error)}`;
  held.parts.events.emit({ type: "store_error", during: "redrive", error: text, consecutive: held.failures });
  held.dueMs = nowMs + backoffMs(AGAIN, held.failures);
  if (!isMakegoodError(error) || error.retryable || error.code === "closed") return true;
  return end(held, "stopped", errorText(error), nowMs).catch(() => true);
}
