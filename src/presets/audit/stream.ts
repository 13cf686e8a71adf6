/**
 * The seed's stream of audit records, opened at both ends: what others add to `audit-dlq` becomes a message of the audit topics,
 * acknowledged after its commit, and what dies of those topics appears on `audit:dead-letter` (AUD-9, AUD-15, AUD-31). One
 * call for a service that embeds it; `serve` and `work` make the same one when MAKEGOOD_STREAMS names audit.
 */
import type { Makegood } from "../../create.ts";
import { MakegoodError } from "../../message/errors.ts";
import { type RetryConfig, retryDelayMs, retryPolicy } from "../../message/retry-policy.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { RedisPort } from "../../store/redis/port.ts";
import { type StreamDoors, type StreamNotice, startStreamDoors } from "../../store/redis/streams/doors.ts";
import { AUDIT_LENGTH_MAX, AUDIT_STREAM } from "../../store/redis/streams/seed-names.ts";
import { nudgeOnDeath } from "../stream-nudge.ts";
import { AUDIT_NAMESPACE, AUDIT_TYPES, QUARANTINE } from "./registry.ts";
import { type AuditStreamEntry, addedMs, readAuditEntry, type StreamNamespace } from "./stream-entry.ts";

export interface AuditStreamOptions {
  /** It must have the audit topics of `namespace`, and somebody must work on them. */
  readonly mg: Pick<Makegood, "store" | "events" | "enqueueText">;
  readonly redis: RedisPort | string;
  /** Default `audit-retry-workers` (CON-14). */
  readonly group?: string | undefined;
  /** What people call this consumer, such as the pod's name. */
  readonly consumerName?: string | undefined;
  /** Default `audit`: the store behind `mg` writes the records itself. */
  readonly namespace?: StreamNamespace | undefined;
  /** How the topics were made, where that is not the policy `audit`: its first wait stands before the first attempt (AUD-19). */
  readonly retry?: RetryConfig | undefined;
  readonly onNotice?: ((notice: StreamNotice) => void) | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** All topics that an entry may become a message of. */
export function auditStreamTopics(namespace: StreamNamespace = AUDIT_NAMESPACE): string[] {
  return [...AUDIT_TYPES.map(({ type }) => type), QUARANTINE].map((name) => `${namespace}/${name}`);
}

export function startAuditStream(options: AuditStreamOptions): StreamDoors {
  const { mg, redis, consumerName, namespace, onNotice, clock = systemClock, random = systemRandom } = options;
  const policy = retryPolicy(options.retry ?? { policy: "audit" });
  if (!policy) throw new MakegoodError("invalid_config", `there is no retry policy ${JSON.stringify(options.retry?.policy)}`);
  // Whoever added the entry has tried it; how long that is ago counts. A second reading of it is the same message.
  const waitMs = (entry: AuditStreamEntry): number => {
    const ageMs = Math.max(0, clock.wallMs() - addedMs(entry)) || 0;
    return Math.max(0, Math.ceil(retryDelayMs(policy, 1, random.next()) - ageMs));
  };
  const { deadStream: seedDeadStream, ...names } = AUDIT_STREAM;
  const topics = auditStreamTopics(namespace);
  const doors = startStreamDoors({
    ...names,
    group: options.group ?? names.group,
    seedDeadStream,
    lengthMax: AUDIT_LENGTH_MAX,
    redis,
    store: mg.store,
    topics,
    consumerName,
    read(entry) {
      const message = readAuditEntry(names.stream, entry, namespace);
      return message.topic.endsWith(`/${QUARANTINE}`) ? message : { ...message, delayMs: waitMs(entry) };
    },
    accept: (messages, signal) => mg.enqueueText(messages, { signal }),
    onNotice,
    clock,
    random,
  });
  return nudgeOnDeath(doors, mg.events, topics);
}
