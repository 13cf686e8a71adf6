/**
 * The orphan watchdog (DO-14, EV-34): finds turns whose process is gone and finalises them as aborted, by estimate, so that no reserve
 * leaks and every reserve has its message. One worker does it for all, but two at once do no harm: silence is judged again under
 * the turn's lock, and finalising is a compare-and-set.
 */
import { startMaintenance } from "../../maintenance/maintenance.ts";
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import type { At, Store } from "../../store/store.ts";
import type { TurnRef, UsageStore } from "../../store/usage.ts";

export interface WatchdogOptions {
  /** How often it looks; default 60 s. */
  readonly everyMs?: number | undefined;
  /** How long a turn may be silent; 60 s to 1 h, default 300 s. */
  readonly idleMs?: number | undefined;
}

export interface Watchdog extends AsyncDisposable {
  stop(): Promise<void>;
}

export interface WatchdogDeps {
  readonly store: Store;
  readonly usage: UsageStore;
  readonly events: Events;
  readonly clock: Clock;
  readonly owner: string;
  /** Finalises one turn if it is still silent; true when it did. */
  readonly abort: (ref: TurnRef, idleMs: number, at: At) => Promise<boolean>;
}

export const IDLE_MS = { min: 60_000, usual: 300_000, max: 3_600_000 } as const;
const NAME = "usage-watchdog";
const BATCH = 100;
const ROUNDS_MAX = 100;

export interface Swept {
  readonly finalized: number;
  /** Turns that could not be finalised now; the next scan tries them again. */
  readonly failed: number;
}

export function checkIdleMs(idleMs: number): number {
  if (idleMs >= IDLE_MS.min && idleMs <= IDLE_MS.max) return idleMs;
  throw new MakegoodError("invalid_config", `idleMs must be from ${IDLE_MS.min} to ${IDLE_MS.max}, not ${idleMs}`);
}

/** One scan. A turn that cannot be finalised holds up no other. */
export async function sweep(deps: WatchdogDeps, idleMs: number, at: At = {}, signal?: AbortSignal): Promise<Swept> {
  let finalized = 0;
  const failed = new Set<string>();
  for (let round = 0; round < ROUNDS_MAX && !signal?.aborted; round++) {
    const found = await deps.usage.orphans({ idleMs, limit: BATCH + failed.size, ...at });
    const fresh = found.filter(({ tenantId, turnId }) => !failed.has(`${tenantId}/${turnId}`));
    for (const ref of fresh) {
      if (signal?.aborted) break;
      const done = await deps.abort(ref, idleMs, at).catch((error: unknown) => {
        const text = `turn ${ref.turnId}: ${errorText(error)}`;
        deps.events.emit({ type: "store_error", during: NAME, error: text, consecutive: 1 });
        return false;
      });
      if (done) finalized++;
      else failed.add(`${ref.tenantId}/${ref.turnId}`);
    }
    if (fresh.length < BATCH) break;
  }
  if (finalized > 0) deps.events.emit({ type: "lifecycle", what: "orphaned_turns_finalized", detail: { count: finalized } });
  return { finalized, failed: failed.size };
}

export function startWatchdog(deps: WatchdogDeps, options: WatchdogOptions = {}): Watchdog {
  const idleMs = checkIdleMs(options.idleMs ?? IDLE_MS.usual);
  const everyMs = Math.max(100, options.everyMs ?? 60_000);
  const run = async (signal: AbortSignal): Promise<void> => void (await sweep(deps, idleMs, {}, signal));
  const chore = { name: NAME, everyMs, where: "leader", firstEach: true, run } as const;
  const { stop } = startMaintenance({ ...deps, random: systemRandom, name: NAME, jobs: [chore] });
  return { stop, [Symbol.asyncDispose]: stop };
}
