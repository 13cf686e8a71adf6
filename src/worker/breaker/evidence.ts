/**
 * What one process saw of a receiver since its last sign of life: first failures of different messages, by tenant. Five open the topic's
 * breaker; five of one tenant alone, that tenant's; more where many failed lately although the receiver lived, because there five in a row are
 * chance. A failure that others went through after says nothing about the topic any more.
 */
import { DEFAULTS } from "../../message/limits.ts";

interface Failure {
  readonly tenantId: string | null;
  readonly atMs: number;
  /** Another message went through since. */
  alone: boolean;
}

/** Whose breaker the evidence is enough for; null: nobody's. A topic is meant where no tenant is named. */
export type Verdict = { readonly tenantId: string | null } | null;

export class Evidence {
  /** Message → its first failure, oldest first. */
  readonly #failures = new Map<string, Failure>();
  /** The share of failures lately. */
  #share = 0;
  /** So many are needed, by the share as it was when the receiver last lived. */
  #needed: number = DEFAULTS.breakerFailures;

  lived(tenantId: string | null): void {
    this.#share -= this.#share * WEIGHT;
    this.#needed = neededAt(this.#share);
    for (const [id, failure] of this.#failures) {
      if (failure.tenantId === tenantId) this.#failures.delete(id);
      else failure.alone = true;
    }
  }

  /** The first failure of a message; what it amounts to with those before it. */
  failed(id: string, tenantId: string | null, nowMs: number): Verdict {
    this.#share += (1 - this.#share) * WEIGHT;
    this.#failures.delete(id);
    this.#failures.set(id, { tenantId, atMs: nowMs, alone: false });
    for (const [old, { atMs }] of this.#failures) {
      if (nowMs - atMs <= DEFAULTS.breakerWindowMs && this.#failures.size <= KEPT_MAX) break;
      this.#failures.delete(old);
    }
    const tenants = new Set<string | null>();
    let ofAll = 0;
    let ofTenant = 0;
    for (const failure of this.#failures.values()) {
      if (failure.tenantId === tenantId) ofTenant++;
      if (failure.alone) continue;
      ofAll++;
      tenants.add(failure.tenantId);
    }
    if (ofAll >= this.#needed && (tenantId === null || tenants.size > 1)) return { tenantId: null };
    return tenantId !== null && ofTenant >= this.#needed ? { tenantId } : null;
  }

  /** The topic is held: what led to it is used up. */
  clear(): void {
    this.#failures.clear();
  }
}

/** Enough to see five of each of many tenants; more would only cost time. */
const KEPT_MAX = 200;
/** Of one outcome in the share: about the last thirty count. */
const WEIGHT = 1 / 32;
/** So seldom a row of failures may be chance. */
const CHANCE = 1e-4;
const NEEDED_MAX = 20;

/** How many failures in a row say something about a receiver that refuses this share of messages anyway. */
function neededAt(share: number): number {
  const row = share > 0 ? Math.ceil(Math.log(CHANCE) / Math.log(share)) : 0;
  return Math.min(NEEDED_MAX, Math.max(DEFAULTS.breakerFailures, row));
}
