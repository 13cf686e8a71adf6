/** One process's work on one redrive. Every write is under the claim's token; a claim that was lost is dropped in silence. */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { backoffMs } from "../../platform/backoff.ts";
import { carrierFor, createCarrierTopics, downTopics } from "../carrier.ts";
import type { RedriveRecords } from "../records.ts";
import { announce, redriveLine } from "./announce.ts";
import { REDRIVE_SETTINGS, type RedriveDeps } from "./deps.ts";
import { nextStep, type StepState, stateOf } from "./next-step.ts";
import { type Redrive, sends } from "./redrive.ts";
import type { Room } from "./redrive-sql.ts";
import { planOf } from "./request.ts";

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
type Parts = ReturnType<typeof partsOf>;

const partsOf = (deps: RedriveDeps) => ({
  ...deps,
  settings: { ...REDRIVE_SETTINGS, ...deps.settings },
  carrierTopic: createCarrierTopics(deps.store.topics),
  origin: deps.recovery.redrives.origin,
});

export function createWorkOnClaim(deps: RedriveDeps) {
  const parts = partsOf(deps);
  return (claim: Claim, nowMs: number) => new ClaimedRedrive(parts, claim, nowMs);
}

class ClaimedRedrive {
  readonly id: string;
  /** Wall clock: when there is something to do again. */
  dueMs: number;
  readonly #deps: Parts;
  readonly #store: RedriveRecords;
  readonly #token: string;
  readonly #plan: ReturnType<typeof planOf>;
  readonly #untilMs: number;
  #redrive: Redrive;
  #state: StepState;
  #keptMs: number;
  #announcedMs: number;
  #announced: Pick<Redrive, "status" | "counts">;
  #failures = 0;
  #lookMs = 0;
  /** Topics whose receivers are down, and when that was asked. */
  #down: readonly string[] = [];
  #downMs = Number.NEGATIVE_INFINITY;
  #room: Room | null = null;
  /** The last look ended some and had no room for all: there is more to be seen at once. */
  #more: boolean = false;
  /** Something was asked for and not answered: what was counted here may be old. */
  #stale: boolean = false;

  constructor(deps: Parts, { redrive, token }: Claim, nowMs: number) {
    this.id = redrive.redriveId;
    this.dueMs = nowMs;
    this.#deps = deps;
    this.#store = deps.recovery.redrives;
    this.#token = token;
    this.#plan = planOf(redrive.plan);
    this.#untilMs = nowMs + deps.settings.workMs;
    this.#redrive = redrive;
    const startedMs = (redrive.startedAt ?? redrive.createdAt).getTime();
    this.#state = stateOf(redrive.state, nowMs, startedMs, startedMs + this.#plan.delayMs);
    this.#keptMs = nowMs;
    this.#announcedMs = nowMs;
    this.#announced = redrive;
  }

  /** False: this process has it no more. */
  async work(nowMs: number): Promise<boolean> {
    try {
      const goesOn = await this.#step(nowMs);
      this.#failures = 0;
      return goesOn && nowMs >= this.#untilMs ? this.release() : goesOn;
    } catch (error) {
      return this.#failed(error, nowMs);
    }
  }

  /** Lets others have it. Harmless when it was lost. */
  release(): Promise<false> {
    return this.#leave(null);
  }

  async #step(nowMs: number): Promise<boolean> {
    if (this.#stale && !(await this.#readAgain())) return false;
    // A runner of the version before does not count by group.
    if (this.#room === null && !(await this.#store.recount(this.id, this.#token))) return false;
    await this.#askReceivers(nowMs);
    if (!(await this.#look(nowMs))) return false;
    this.dueMs = nowMs;
    if (this.#redrive.status !== "running") return this.#more || this.#rest(nowMs);
    const room = await this.#store.room(this.id, this.#bounds);
    this.#room = room;
    const { step, state } = nextStep(this.#plan, this.#redrive.counts, room, this.#state, nowMs);
    if (step.kind === "stop" || step.kind === "done") {
      this.#state = state;
      return this.#end(step.kind === "stop" ? "stopped" : "done", step.reason, nowMs);
    }
    // Before anything is sent the lease must hold for the time that takes.
    const { leaseMs } = this.#deps.settings;
    if (nowMs - this.#keptMs >= leaseMs / 3) {
      if (!(await this.#keep({ leaseMs }))) return false;
      this.#keptMs = nowMs;
    }
    if (step.kind === "wait") {
      this.#state = state;
      if (!this.#more && step.ms >= REST_MS.min) return this.#leave(step.ms);
      if (!this.#more) this.dueMs = nowMs + step.ms;
    } else if (!(await this.#send(step.n, state))) return false;
    if (nowMs - this.#announcedMs >= ANNOUNCE_MS) this.#announce(nowMs);
    return true;
  }

  /** What may be sent of each group. Without a canary nobody wants it to be held back. */
  get #bounds() {
    const { canary } = this.#plan;
    return { canary, down: canary === 0 ? [] : this.#down };
  }

  async #askReceivers(nowMs: number): Promise<void> {
    if (!sends(this.#redrive.mode) || (nowMs >= this.#downMs && nowMs < this.#downMs + DOWN_MS)) return;
    this.#downMs = nowMs;
    this.#down = downTopics(await this.#deps.store.topics.list(), this.#redrive);
  }

  async #look(nowMs: number): Promise<boolean> {
    const { mode, counts: before, action } = this.#redrive;
    this.#more = false;
    const judges = before.sent > 0 || (this.#room?.inconclusive ?? 0) + (this.#room?.undecided ?? 0) > 0;
    if (!judges || nowMs < this.#lookMs) return true;
    // What a person resolved is not tried out: nothing is learned from it.
    const quietMs = mode === "watch" ? WATCH_MS_MAX : action === null ? 0 : this.#deps.settings.quietMs;
    const counts = await this.#store.look(this.id, this.#token, { limit: LOOK_ITEMS, quietMs, down: this.#down });
    if (!counts) return false;
    this.#redrive = { ...this.#redrive, counts };
    const ramps = this.#state.rampMs !== null && counts.waiting > 0;
    this.#lookMs = nowMs + (ramps ? LOOK_MS.sending : LOOK_MS.canary);
    this.#more = before.sent > LOOK_ITEMS && counts.sent < before.sent;
    if (this.#more) this.#lookMs = nowMs;
    return true;
  }

  async #send(n: number, state: StepState): Promise<boolean> {
    const { mode } = this.#redrive;
    const next = await this.#store.next(this.id, n, mode === "new_key" || mode === "copy", this.#bounds);
    const items = await Promise.all(
      next.map(async ({ item, message }) => {
        return { n: item.n, carrier: message ? await carrierFor(mode, this.#plan.carrier, message, this.#deps) : undefined };
      }),
    );
    // Before the call: if its answer is lost, the messages may have been sent all the same.
    this.#state = state;
    const result = await this.#store.send(this.id, this.#token, items);
    if (result.kind === "lost") return false;
    if (result.kind !== "done") return this.#readAgain();
    const { waiting, sent, skipped, ...counts } = this.#redrive.counts;
    const left = Math.max(0, waiting - result.sent - result.skipped);
    const now = { ...counts, waiting: left, sent: sent + result.sent, skipped: skipped + result.skipped };
    this.#redrive = { ...this.#redrive, counts: now };
    return true;
  }

  /** A person changed it meanwhile, or an answer did not come: go by what it is now. */
  async #readAgain(): Promise<boolean> {
    const redrive = await this.#store.get(this.id);
    if (redrive) this.#redrive = redrive;
    this.#stale = false;
    return redrive !== null;
  }

  async #end(status: "stopped" | "done", reason: string | null, nowMs: number): Promise<boolean> {
    if (!(await this.#keep({ leaseMs: this.#deps.settings.leaseMs }))) return false;
    const by = { actor: this.#deps.owner, actorType: "system" } as const;
    const line = redriveLine(status, this.#redrive, by, reason, this.#redrive.counts);
    const changed = await this.#store.change(this.id, { from: ["running"], status, reason }, [line]);
    this.#redrive = changed.redrive;
    if (changed.kind !== "done") return true;
    this.#announce(nowMs);
    return this.#rest(nowMs);
  }

  async #rest(nowMs: number): Promise<boolean> {
    const { status, counts } = this.#redrive;
    const ended = status === "done" || status === "cancelled";
    const agoMs = nowMs - this.#state.lastSentMs;
    const restMs = Math.min(ended ? REST_MS.ended : REST_MS.resumable, Math.max(REST_MS.min, agoMs / 10));
    return this.#leave(counts.sent === 0 ? null : Math.round(restMs));
  }

  /** `leaseMs`: the lease runs on for so long, so that no other process looks at it too soon; null: it is free at once. */
  async #leave(leaseMs: number | null): Promise<false> {
    this.#announce();
    await this.#keep(leaseMs === null ? { release: true } : { leaseMs });
    return false;
  }

  #keep(how: { leaseMs: number } | { release: true }): Promise<boolean> {
    return this.#store.keep(this.id, this.#token, { state: JSON.stringify(this.#state), ...how });
  }

  #announce(nowMs = this.#announcedMs): void {
    const { counts, status } = this.#redrive;
    if (status === this.#announced.status && counts === this.#announced.counts) return;
    announce(this.#deps.events, this.#redrive, this.#announced.counts);
    this.#announced = { status, counts };
    this.#announcedMs = nowMs;
  }

  /** An error that a retry cannot mend stops the redrive with its reason; others are tried again, with growing waits. */
  async #failed(error: unknown, nowMs: number): Promise<boolean> {
    this.#failures++;
    this.#stale = true;
    const text = `redrive ${this.id}: ${errorText(error)}`;
    this.#deps.events.emit({ type: "store_error", during: "redrive", error: text, consecutive: this.#failures });
    this.dueMs = nowMs + backoffMs(AGAIN, this.#failures);
    if (!isMakegoodError(error) || error.retryable || error.code === "closed") return true;
    return this.#end("stopped", errorText(error), nowMs).catch(() => true);
  }
}
