/**
 * Carries redrives out: one stoppable loop per process works on those that have work, each under a lease, so that a killed
 * runner's are continued by another and several processes share them. It also cancels dry runs that nobody came back for, and
 * resolves originals whose copies were delivered late.
 */
import { errorText } from "../../message/errors.ts";
import { backoffMs } from "../../platform/backoff.ts";
import { type Loop, startLoop } from "../../platform/loop.ts";
import { announce } from "./announce.ts";
import { type ClaimedRedrive, createWorkOnClaim } from "./claimed-redrive.ts";
import { REDRIVE_SETTINGS, type RedriveDeps } from "./deps.ts";
import { redriveLine } from "./provenance.ts";

export interface RedriveRunner {
  start(): void;
  /** Waits for the step that is under way and lets others have what was held. */
  stop(): Promise<void>;
  /** Something was started or resumed: look now. */
  nudge(): void;
}

const TIDY_MS = 600_000;
const TIDY_PAGES_MAX = 20;
const AGAIN = { firstMs: 1_000, maxMs: 30_000 };

export function createRunner(deps: RedriveDeps): RedriveRunner {
  const { clock, events } = deps;
  const { redrives } = deps.recovery;
  const settings = { ...REDRIVE_SETTINGS, ...deps.settings };
  const workOn = createWorkOnClaim(deps);
  const claimed = new Map<string, ClaimedRedrive>();
  let loop: Loop | null = null;
  let claimMs = 0;
  let tidyMs = 0;

  async function claim(): Promise<void> {
    claimMs = clock.wallMs() + settings.pollMs;
    while (claimed.size < settings.heldMax) {
      const found = await redrives.claim(deps.owner, settings.leaseMs);
      if (!found) return;
      claimed.set(found.redrive.redriveId, workOn(found, clock.wallMs()));
    }
  }

  async function step(signal: AbortSignal): Promise<number> {
    const nowMs = clock.wallMs();
    if (nowMs >= tidyMs || nowMs < tidyMs - TIDY_MS) {
      tidyMs = nowMs + TIDY_MS;
      await cancelForgotten(deps, nowMs - settings.plannedMs);
      await lookAgain(deps);
    }
    // Also when the wall clock was set back.
    if (nowMs >= claimMs || nowMs < claimMs - settings.pollMs) await claim();
    for (const redrive of [...claimed.values()].filter(({ dueMs }) => dueMs <= nowMs)) {
      if (signal.aborted) return 0;
      if (await redrive.work(clock.wallMs())) continue;
      claimed.delete(redrive.id);
      claimMs = 0;
    }
    const nextMs = Math.min(claimMs, ...[...claimed.values()].map(({ dueMs }) => dueMs));
    return Math.max(0, nextMs - clock.wallMs());
  }

  return {
    start() {
      loop ??= startLoop({
        clock,
        step,
        failed: (error, consecutive) => {
          events.emit({ type: "store_error", during: "redrives", error: errorText(error), consecutive });
          return backoffMs(AGAIN, consecutive);
        },
      });
    },
    async stop() {
      const running = loop;
      loop = null;
      await running?.stop();
      const held = [...claimed.values()];
      claimed.clear();
      // A store that is away lets the leases run out instead.
      await Promise.allSettled(held.map((redrive) => redrive.release()));
    },
    nudge() {
      claimMs = 0;
      loop?.nudge();
    },
  };
}

const AGAIN_ITEMS = 1_000;

/** Copies that died and that a person replayed: in the order of their last look, so no page is looked at twice in a row. */
async function lookAgain({ recovery }: RedriveDeps): Promise<void> {
  for (let page = 0; page < TIDY_PAGES_MAX; page++) {
    if ((await recovery.redrives.lookAgain(AGAIN_ITEMS)) < AGAIN_ITEMS) return;
  }
}

/** A list that was frozen long ago says little about today. */
async function cancelForgotten({ recovery, events, owner }: RedriveDeps, beforeMs: number): Promise<void> {
  let cursor: string | undefined;
  for (let page = 0; page < TIDY_PAGES_MAX; page++) {
    const { data, nextCursor } = await recovery.redrives.list({ status: "planned", limit: 100, cursor });
    for (const redrive of data.filter(({ createdAt }) => createdAt.getTime() <= beforeMs)) {
      const reason = "nobody resumed this dry run in time";
      const line = redriveLine("cancelled", redrive, { actor: owner, actorType: "system" }, reason);
      const change = { from: ["planned"], status: "cancelled", reason } as const;
      const changed = await recovery.redrives.change(redrive.redriveId, change, [line]);
      if (changed.kind === "done") announce(events, changed.redrive, null);
    }
    if (nextCursor === null) return;
    cursor = nextCursor;
  }
}
