/**
 * The topics seam: definitions, pause, disabled sinks and breaker state, shared by all workers of one store so that they
 * agree. Small and separate from the path of a message; every store has it.
 */
import type { BreakerState, TopicDefinition, TopicRecord, TopicSource } from "../message/topic.ts";
import type { At } from "./store.ts";

export type TopicDelete = "deleted" | "not_found" | "in_use" | "read_only";

export interface TopicStore {
  /**
   * Replaces the whole definition; pause and breaker stay, a disabled sink is enabled again. Idempotent: an equal definition
   * changes nothing, except that somebody who puts it over the API wants the sink enabled (a process that starts does not). With source `api` a topic that the file or code declared is left alone and `read_only` comes back.
   */
  put(definition: TopicDefinition, source: TopicSource): Promise<TopicRecord | "read_only">;
  get(name: string, at?: At): Promise<TopicRecord | null>;
  list(at?: At): Promise<TopicRecord[]>;
  /** Refused while any of its messages is pending, processing or an open dead letter. */
  delete(name: string, source: TopicSource): Promise<TopicDelete>;
  /** Null when there is no such topic. Resuming also enables a disabled sink. */
  pause(name: string, paused: boolean): Promise<TopicRecord | null>;
  disable(name: string, reason: string): Promise<void>;

  /** Opens the breaker (or opens it again after a failed probe) for `cooldownMs`. */
  trip(name: string, cooldownMs: number, reason: string, at?: At): Promise<BreakerState>;
  /**
   * Asks for the right to probe an open breaker whose cool-down has passed: true for exactly one owner until `leaseMs` is over.
   */
  probe(name: string, owner: string, leaseMs: number, at?: At): Promise<boolean>;
  /** Closes the breaker: a probe was delivered. */
  reset(name: string): Promise<void>;
}
