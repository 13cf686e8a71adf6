/**
 * Ends executions: those whose redrive has ended, by what became of its messages (never by the answer of a call), and those whose
 * process died before a redrive carried them on, as `unknown`. Looks now and then and when an event says that a redrive moved;
 * two processes that look at once end an execution once.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { Events, MakegoodEvent } from "../../observe/events.ts";
import { backoffMs } from "../../platform/backoff.ts";
import type { Clock } from "../../platform/clock.ts";
import { type Loop, startLoop } from "../../platform/loop.ts";
import type { IngestRules } from "../failures/failure.ts";
import type { Hooks } from "../hooks.ts";
import { SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Redrive } from "../redrive/redrive.ts";
import type { Candidate, ExecutionStatus } from "./candidate.ts";
import type { ConfidenceNow } from "./confidence-now.ts";
import { breakersOf, ending, plannedHold } from "./ending.ts";
import { reopenIfNewer } from "./reopen.ts";

export interface CompletionDeps {
  readonly recovery: Records;
  readonly confidenceNow: ConfidenceNow;
  readonly rules: IngestRules;
  readonly hooks: Hooks;
  readonly events: Events;
  readonly clock: Clock;
}

export interface Completion {
  /** One look at all that executes. Returns how many ended. */
  step(): Promise<number>;
  start(): void;
  stop(): Promise<void>;
}

const PAGE = 100;
const EVERY_MS = 5_000;
const AGAIN = { firstMs: 2_000, maxMs: 30_000 };
/** Longer than a process that lives takes from the start of a redrive to its next write. */
const GRACE_MS = 30_000;
/** Once in so long it looks whether a process was killed between the end of an execution and what follows from it. */
const SWEEP_MS = 60_000;
const RECENT_MS = 10 * SWEEP_MS;

/** What an execution came to, by its redrive; null: it goes on. */
export function endOf({ mode, status, counts }: Pick<Redrive, "mode" | "status" | "counts">): ExecutionStatus | null {
  // What was to be done is done; watching goes on for as long as it takes.
  if (mode === "watch") return "succeeded";
  const { sent, healed, failed, waiting } = counts;
  const touched = sent + healed + failed;
  const ended = status === "done" || status === "stopped" || status === "cancelled";
  // What is resolved is ended; whether it stays so is learned later.
  if (!ended && !(mode === "resolve" && status === "running" && waiting === 0)) return null;
  if (touched === 0) return "skipped";
  if (mode === "resolve") return "succeeded";
  return status === "done" && healed > 0 && healed >= failed ? "succeeded" : "failed";
}

export function createCompletion({ recovery, confidenceNow, rules, hooks, events, clock }: CompletionDeps): Completion {
  let loop: Loop | undefined;
  let sweptMs = clock.monotonicMs();
  let unhear: (() => void) | undefined;

  async function end(candidate: Candidate, status: ExecutionStatus, result: Record<string, unknown>): Promise<boolean> {
    const { candidateId, groupId, executionId, version, executedAt } = candidate;
    if (executionId === null) return false;
    const hold = status === "succeeded" ? plannedHold(candidate) : undefined;
    const durationMs = executedAt && Math.max(0, clock.wallMs() - executedAt.getTime());
    const confidenceAfter = await confidenceNow(candidate);
    const write = ending(candidate, status, SYSTEM, { result, hold, durationMs, confidenceAfter });
    const written = await recovery.write({ candidateId, executionId, version, ...write });
    // Another process ended it, or wrote to it: the next look sees.
    if (written.kind !== "done") return false;
    const group = await recovery.group(groupId);
    if (group) await hooks.tell("on_execution_complete", { candidate: written.candidate, group, result: status });
    return true;
  }

  async function endByRedrive(candidate: Candidate): Promise<boolean> {
    if (candidate.redriveId === null) return false;
    const redrive = await recovery.redrives.get(candidate.redriveId);
    const status = redrive && endOf(redrive);
    if (!redrive || status === null) return false;
    // The process that began to watch ends it at once, unless it was killed.
    if (redrive.mode === "watch" && clock.wallMs() - redrive.createdAt.getTime() < GRACE_MS) return false;
    const { redriveId: id, mode, counts, statusReason } = redrive;
    const breakers = breakersOf(candidate);
    const result = {
      action: candidate.selectedAction,
      mode,
      redrive_id: id,
      redrive_status: redrive.status,
      reason: statusReason,
      counts,
      ...(breakers.length > 0 && { breakers }),
    };
    const ended = await end(candidate, status, result);
    if (ended) await reopenIfNewer(recovery, rules, candidate);
    return ended;
  }

  async function endUnknown(candidate: Candidate): Promise<boolean> {
    if (candidate.redriveId !== null) return false;
    const error = "its process died or stalled while it executed: look what happened, then say succeeded or failed";
    return end(candidate, "unknown", { action: candidate.selectedAction, error });
  }

  async function sweep(): Promise<void> {
    const since = clock.wallMs() - RECENT_MS;
    for (const executionStatus of ["succeeded", "failed", "skipped"] as const) {
      const { data } = await recovery.candidates({ executionStatus, limit: PAGE });
      for (const each of data) if (each.updatedAt.getTime() > since) await reopenIfNewer(recovery, rules, each);
    }
  }

  async function step(): Promise<number> {
    if (clock.monotonicMs() - sweptMs >= SWEEP_MS) {
      sweptMs = clock.monotonicMs();
      await sweep();
    }
    let ended = 0;
    let broken: unknown;
    // An execution that cannot be ended does not stop the others; a store that is away stops them all.
    const tryOne = async (candidate: Candidate, one: (candidate: Candidate) => Promise<boolean>): Promise<void> => {
      try {
        if (await one(candidate)) ended++;
      } catch (error) {
        if (isMakegoodError(error) && error.retryable) throw error;
        broken ??= error;
      }
    };
    for (const candidate of await recovery.expiredExecutions(PAGE)) await tryOne(candidate, endUnknown);
    let cursor: string | undefined;
    do {
      const page = await recovery.candidates({ executionStatus: "executing", current: false, limit: PAGE, cursor });
      for (const candidate of page.data) await tryOne(candidate, endByRedrive);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    if (broken !== undefined) throw broken;
    return ended;
  }

  const heard = (event: MakegoodEvent): void => {
    if (event.type === "redrive" && event.candidateId !== null) loop?.nudge();
  };

  return {
    step,
    start() {
      unhear ??= events.on(heard, { seldom: true });
      loop ??= startLoop({
        clock,
        step: async () => {
          await step();
          return EVERY_MS;
        },
        failed: (error, consecutive) => {
          events.emit({ type: "store_error", during: "recovery_completion", error: errorText(error), consecutive });
          return backoffMs(AGAIN, consecutive);
        },
      });
    },
    async stop() {
      unhear?.();
      unhear = undefined;
      const stopping = loop;
      loop = undefined;
      await stopping?.stop();
    },
  };
}
