/**
 * What the environment says of the recovery engine: REC-18's variables, and those of the seed's evaluation queue (REC-31, REC-40), which is
 * the topic `recovery/evaluate` here. Every mistake is reported with the others of the configuration.
 */
import { LIMITS } from "../../message/limits.ts";
import type { Log } from "../../observe/log.ts";
import type { RecoveryOptions } from "../../recovery/settings.ts";
import { recoveryOf } from "../../store/recovery.ts";
import type { Store } from "../../store/store.ts";
import type { Settings } from "./settings.ts";
import type { Variables } from "./stream-config.ts";

/** False: there is no engine in this process. */
export function recoveryOptions(settings: Settings, given: Variables): RecoveryOptions | false {
  if (settings.recovery === "off") return false;
  const leaseMs = given.M10_CLAIM_IDLE_MS ?? undefined;
  const attemptsMax = given.M10_MAX_RECLAIM_ATTEMPTS ?? undefined;
  const baseMs = given.M10_RECLAIM_BASE_BACKOFF_MS ?? undefined;
  const maxMs = given.M10_RECLAIM_MAX_BACKOFF_MS ?? undefined;
  const retries = [attemptsMax, baseMs, maxMs].some((value) => value !== undefined);
  const retry = { policy: "recovery-reclaim", attemptsMax: attemptsMax && Math.max(1, attemptsMax), baseMs, maxMs };
  const evaluate = {
    // An idle time below a second is the stream's; a lease is never that short.
    ...(leaseMs === undefined ? {} : { leaseMs: Math.min(Math.max(leaseMs, LIMITS.leaseMsMin), LIMITS.leaseMsMax) }),
    ...(retries ? { retry } : {}),
  };
  return {
    ruleDebug: settings.recovery_rule_debug,
    evaluatorEnabled: settings.recovery_evaluator_enabled,
    autoExecute: settings.recovery_auto_execute,
    minConfidence: settings.recovery_min_confidence,
    ...(Object.keys(evaluate).length > 0 ? { evaluate } : {}),
  };
}

/** Whether this process has the engine, in words for the start. */
export function recoveryWords({ recovery_options: options }: RecoveryConfig, store: Store): string {
  if (options === false) return "off (MAKEGOOD_RECOVERY)";
  if (recoveryOf(store) === null) return `off: the store ${store.traits.name} keeps no such records`;
  return options.autoExecute ? "on; safe actions run by themselves (RECOVERY_AUTO_EXECUTE)" : "on; nothing runs without a person";
}

export interface RecoveryConfig {
  readonly recovery_options: RecoveryOptions | false;
}

/** Said once, at start. */
export function sayRecovery(config: RecoveryConfig, store: Store, log: Log): void {
  const { recovery_options: options } = config;
  if (options !== false && recoveryOf(store) !== null) {
    log.info("recovery is on", { auto_execute: options.autoExecute, min_confidence: options.minConfidence });
    if (!options.evaluatorEnabled)
      log.warn("nothing is evaluated (RECOVERY_EVALUATOR_ENABLED): failures are grouped, evaluations wait");
    return;
  }
  log.warn("/api/v1/recovery and /api/v1/redrives answer 501 needs_postgres: recovery is off", {
    recovery: recoveryWords(config, store),
  });
}
