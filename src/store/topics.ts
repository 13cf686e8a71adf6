/**
 * The topics seam: definitions, pause, disabled sinks, breaker state and who serves them, shared by all workers of one store
 * so that they agree. Small and separate from the path of a message; every store has it.
 */
import type { BreakerState, TopicDefinition, TopicRecord, TopicSource } from "../message/topic.ts";
import type { WorkerNote } from "../message/worker-note.ts";
import type { At } from "./store.ts";

/** Whose breaker: a tenant's that is held alone, or (null or absent) the topic's. */
export interface BreakerOf extends At {
  readonly tenantId?: string | null | undefined;
}

export interface StartsWanted {
  readonly topic: string;
  /** The share of one tenant (null: of those without one) within the topic's; absent: the topic's own. */
  readonly tenantId?: string | null | undefined;
  readonly perSecond: number;
  /** Below 0: so many were allotted and not used. */
  readonly amount: number;
}

export interface StartsAllotted {
  readonly granted: number;
  /** Milliseconds until there is one more; 0: there is now. */
  readonly nextInMs: number;
}

export interface SlotsWanted {
  readonly topic: string;
  /** The topic's own limit, over all owners. */
  readonly total: number;
  readonly wants: number;
}

export type TopicDelete = "deleted" | "not_found" | "in_use" | "read_only";

export interface TopicStore {
  /**
   * Replaces the whole definition; pause and breaker stay, a disabled sink is enabled again. Idempotent: an equal definition
   * changes nothing, except that a person who puts it over the API wants the sink enabled (a process that starts does not). With source `api` a topic that the file or code declared is left alone and `read_only` comes back.
   */
  put(definition: TopicDefinition, source: TopicSource): Promise<TopicRecord | "read_only">;
  get(name: string, at?: At): Promise<TopicRecord | null>;
  list(at?: At): Promise<TopicRecord[]>;
  /** Refused while any of its messages is pending, processing or an open dead letter. */
  delete(name: string, source: TopicSource): Promise<TopicDelete>;
  /** Null when there is no such topic. Resuming also enables a disabled sink. */
  pause(name: string, paused: boolean): Promise<TopicRecord | null>;
  disable(name: string, reason: string): Promise<void>;

  /**
   * Opens the breaker for `cooldownMs`; one that is open and may not be probed yet stays as it is. Of a tenant: holds that one alone, unless
   * the topic is held already, or too many tenants are: then it opens the topic's. The topic's takes the tenants' place. `byHand`: a person
   * wants the receiver left alone for so long: also one that is open or probed gets this reason, and no probe before that.
   */
  trip(
    name: string,
    cooldownMs: number,
    reason: string,
    of?: BreakerOf & { readonly byHand?: boolean | undefined },
  ): Promise<BreakerState>;
  /**
   * Asks to try one message of what is held once the cool-down has passed: true for exactly one owner until `leaseMs` is over, over the
   * topic and all its tenants. `restMs`: for one that failed before; the next of those after this time.
   */
  probe(
    name: string,
    owner: string,
    leaseMs: number,
    of?: BreakerOf & { readonly restMs?: number | undefined },
  ): Promise<boolean>;
  /** Closes the breaker: the receiver lives. Of a tenant: lets that one go; of the topic: all. */
  reset(name: string, of?: Pick<BreakerOf, "tenantId">): Promise<void>;

  /**
   * Replaces what this worker says of itself and keeps it for `ttlMs`; 0: it is gone. No hint is given. Of more than
   * LIMITS.workersMax the newest are kept.
   */
  announce(note: WorkerNote, ttlMs: number, at?: At): Promise<void>;
  /** What the workers said of themselves that is not past its time; of those that hold a lease or wait for hints and never said anything, `silent()`. */
  workers(at?: At): Promise<WorkerNote[]>;

  /**
   * Starts of attempts, so that all workers together keep to a topic's rate: as many as there are now, in the order given, each bucket named
   * at most once in a call. A bucket holds `burstOf(perSecond)` at most and begins full.
   */
  allot(wanted: readonly StartsWanted[], at?: At): Promise<StartsAllotted[]>;
  /**
   * How many attempts of each topic this owner may have at once from now on and for `ttlMs`, replacing what it had: never more than `total`
   * over all owners whose time is not over. In the order given.
   */
  occupy(owner: string, wanted: readonly SlotsWanted[], ttlMs: number, at?: At): Promise<number[]>;
}
