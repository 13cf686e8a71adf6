/** Carries redrives out: a job of each process, each under a lease, so that a killed process's are continued by another. */
import { each, type Fence, type JobTurn, led } from "../../platform/job.ts";
import { everyPage } from "../pages.ts";
import { hold, leave, partsOf, work } from "./claimed-redrive.ts";
import { announce, redriveLine } from "./redrive.ts";
import type { RedriveDeps } from "./redrives.ts";

export type RedriveRunner = ReturnType<typeof createRunner>;

const TIDY_MS = 600_000;
const TIDY_PAGES_MAX = 20;
const AGAIN_ITEMS = 1_000;

export function createRunner(deps: RedriveDeps) {
  const parts = partsOf(deps);
  const { clock, settings, records } = parts;
  const claimed = new Map<string, ReturnType<typeof hold>>();
  let wake: (() => void) | null = null;
  let claimMs = 0;

  async function claim(): Promise<void> {
    claimMs = clock.wallMs() + settings.pollMs;
    while (claimed.size < settings.heldMax) {
      const found = await records.claim(deps.owner, settings.leaseMs);
      if (!found) return;
      claimed.set(found.redrive.redriveId, hold(parts, found, clock.wallMs()));
    }
  }

  async function step(signal: AbortSignal): Promise<number> {
    const nowMs = clock.wallMs();
    // Also when the wall clock was set back.
    if (nowMs >= claimMs || nowMs < claimMs - settings.pollMs) await claim();
    // Of what was claimed just now, too: a run by hand has no next step.
    const dueBy = clock.wallMs();
    for (const held of [...claimed.values()].filter(({ dueMs }) => dueMs <= dueBy)) {
      if (signal.aborted) return 0;
      if (await work(held, clock.wallMs())) continue;
      claimed.delete(held.id);
      claimMs = 0;
    }
    const nextMs = Math.min(claimMs, ...[...claimed.values()].map(({ dueMs }) => dueMs));
    return Math.max(0, nextMs - clock.wallMs());
  }

  function hear(now: () => void): () => void {
    wake = now;
    return () => {
      wake = null;
    };
  }

  async function release(): Promise<void> {
    const all = [...claimed.values()];
    claimed.clear();
    // A store that is away lets the leases run out instead.
    await Promise.allSettled(all.map((held) => leave(held, null)));
  }

  /** One step by hand holds nothing up: where no loop follows, others may have it at once. */
  async function run(signal: AbortSignal): Promise<number> {
    if (wake === null) claimMs = 0;
    try {
      return await step(signal);
    } finally {
      if (wake === null) await release();
    }
  }

  async function tidy(_: AbortSignal, { fence }: JobTurn): Promise<void> {
    await cancelForgotten(deps, clock.wallMs() - settings.plannedMs, fence);
    // Copies that died and that a person replayed: in the order of their last look, so no page is looked at twice in a row.
    for (let page = 0; page < TIDY_PAGES_MAX; page++) {
      if ((await records.lookAgain(AGAIN_ITEMS, {}, fence)) < AGAIN_ITEMS) return;
    }
  }

  const jobs = [
    each("redrives", "takes the next step of each redrive that is due", settings.pollMs, run, { hear }),
    led("redrives_tidy", "cancels forgotten dry runs, and resolves what a copy delivered after all", TIDY_MS, tidy),
  ];

  return {
    jobs,
    /** After its job has ended: lets others have what was held. */
    release,
    nudge() {
      claimMs = 0;
      wake?.();
    },
  };
}

/** A list that was frozen long ago says little about today. */
async function cancelForgotten({ recovery: { redrives }, events, owner }: RedriveDeps, beforeMs: number, under: Fence | null) {
  const change = { from: ["planned"], status: "cancelled", reason: "nobody resumed this dry run in time" } as const;
  for await (const page of everyPage((at) => redrives.list({ status: "planned", ...at }))) {
    for (const redrive of page.filter(({ createdAt }) => createdAt.getTime() <= beforeMs)) {
      const line = redriveLine("cancelled", redrive, { actor: owner, actorType: "system" }, change.reason);
      const changed = await redrives.change(redrive.redriveId, change, [line], {}, under);
      if (changed.kind === "done") announce(events, changed.redrive);
    }
  }
}
