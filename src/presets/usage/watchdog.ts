/**
 * The orphan watchdog: finds turns whose process is gone and finalises them as aborted, by estimate, so that no reserve
 * leaks and every reserve has its message. One worker does it for all, but two at once do no harm: silence is checked again under
 * the turn's lock, and finalising is a compare-and-set.
 */
import { type Maintenance, type MaintenanceOptions, startMaintenance } from "../../maintenance/maintenance.ts";
import { errorText } from "../../message/errors.ts";
import { checkSetting } from "../../message/validate.ts";
import { systemRandom } from "../../platform/random.ts";
import type { At } from "../../store/store.ts";
import type { TurnRef, UsageStore } from "../../store/usage.ts";

export interface WatchdogOptions {
  /** How often it looks; default 60 s. */
  readonly everyMs?: number | undefined;
  /** How long a turn may be silent; 60 s to 1 h, default 300 s. */
  readonly idleMs?: number | undefined;
}

export interface Watchdog extends Maintenance, AsyncDisposable {}

interface WatchdogDeps extends Pick<MaintenanceOptions, "store" | "events" | "clock" | "owner"> {
  readonly usage: UsageStore;
  /** Finalises one turn if it is still silent; true when it did. */
  readonly abort: (ref: TurnRef, idleMs: number, at: At) => Promise<boolean>;
}

const IDLE_MS = { min: 60_000, usual: 300_000, max: 3_600_000 } as const;
const NAME = "usage-watchdog";
const BATCH = 100;
const ROUNDS_MAX = 100;

export interface Swept {
  readonly finalized: number;
  /** Turns that could not be finalised now; the next scan tries them again. */
  readonly failed: number;
}

function checkIdleMs(idleMs: number = IDLE_MS.usual): number {
  checkSetting("idleMs", idleMs, IDLE_MS.min, IDLE_MS.max, false);
  return idleMs;
}

export interface SweepOptions extends Pick<WatchdogOptions, "idleMs">, At {}

export function createWatchdogs(deps: WatchdogDeps) {
  const { usage, events } = deps;
  const started = new Set<Watchdog>();

  /** One scan. A turn that cannot be finalised holds up no other. */
  async function sweep({ idleMs: given, ...at }: SweepOptions = {}, signal?: AbortSignal): Promise<Swept> {
    const idleMs = checkIdleMs(given);
    let finalized = 0;
    const failed = new Set<string>();
    for (let round = 0; round < ROUNDS_MAX && !signal?.aborted; round++) {
      const found = await usage.orphans({ idleMs, limit: BATCH + failed.size, ...at });
      const fresh = found.filter(({ tenantId, turnId }) => !failed.has(`${tenantId}/${turnId}`));
      for (const ref of fresh) {
        if (signal?.aborted) break;
        const done = await deps.abort(ref, idleMs, at).catch((error: unknown) => {
          const text = `turn ${ref.turnId}: ${errorText(error)}`;
          events.emit({ type: "store_error", during: NAME, error: text, consecutive: 1 });
          return false;
        });
        if (done) finalized++;
        else failed.add(`${ref.tenantId}/${ref.turnId}`);
      }
      if (fresh.length < BATCH) break;
    }
    if (finalized > 0) events.emit({ type: "lifecycle", what: "orphaned_turns_finalized", detail: { count: finalized } });
    return { finalized, failed: failed.size };
  }

  return {
    sweep,
    watch({ idleMs, everyMs = 60_000 }: WatchdogOptions = {}): Watchdog {
      checkIdleMs(idleMs);
      const run = async (signal: AbortSignal): Promise<void> => void (await sweep({ idleMs }, signal));
      const about = "finalises turns whose process is gone";
      const chore = { name: NAME, about, everyMs: Math.max(100, everyMs), where: "leader", firstEach: true, run } as const;
      const { stop } = startMaintenance({ ...deps, random: systemRandom, name: NAME, jobs: [chore] });
      const watchdog: Watchdog = { stop, [Symbol.asyncDispose]: stop };
      started.add(watchdog);
      return watchdog;
    },
    stopAll: () => Promise.all([...started].map((watchdog) => watchdog.stop())),
  };
}
