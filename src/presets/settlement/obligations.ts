/**
 * Where obligations are kept until they are settled: what the client needs of a store, whichever kind it was given. One
 * implementation stands on the seeds' port, the other on a kernel store and deliver(); both share one transport and one decision.
 */
import type { DLQStore, PersistenceCheck } from "../../store/redis/dlq-port/dlq-store.ts";
import type { Store } from "../../store/store.ts";
import type { Waiting } from "./admission.ts";
import type { FinalizeResult, ReplayCounts } from "./outcome.ts";
import type { Obligation } from "./request.ts";

export interface Obligations {
  /** The engine's name: redis, memory, postgres. */
  readonly kind: string;
  /** Tries it, and keeps it where that fails. */
  finalize(obligation: Obligation): Promise<FinalizeResult>;
  /** One pass over what is due. */
  replay(): Promise<ReplayCounts>;
  /** Kept and not settled, dead letters not counted. */
  size(): Promise<number>;
  oldestAgeMs(): Promise<number | null>;
  /** The same with what each tenant owes, where at most `limit` wait and the store can tell. */
  waiting(limit: number): Promise<Waiting>;
  /** Whether an obligation that is kept now would survive this process. */
  durable(): boolean;
  /** Rejects with what keeps it from being used. */
  opened(): Promise<void>;
  persistence(): Promise<Pick<PersistenceCheck, "state" | "reason">>;
  close(): Promise<void>;
}

export function isKernelStore(given: DLQStore | Store): given is Store {
  return "traits" in given && "enqueue" in given;
}
