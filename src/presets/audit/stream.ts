/**
 * The seed's stream of audit records, opened at both ends: what others add to `audit-dlq` becomes a message of the audit topics,
 * acknowledged after its commit, and what dies of those topics appears on `audit:dead-letter`. One call for a service that embeds
 * it; `serve` and `work` make the same one when MAKEGOOD_STREAMS names audit. A record without an envelope gets one made of the
 * entry, so that a second reading is the same event; what cannot be read is quarantined and never thrown away.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type RetryConfig, retryDelayMs, retryPolicy } from "../../message/retry-policy.ts";
import { systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import type { StreamDoors } from "../../store/redis/streams/doors.ts";
import type { StreamEntry } from "../../store/redis/streams/entries.ts";
import { AUDIT_LENGTH_MAX, AUDIT_STREAM } from "../../store/redis/streams/seed-names.ts";
import { type PresetStreamOptions, startPresetStream } from "../preset-stream.ts";
import { messageOf } from "./draft.ts";
import { type AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, auditTopicNames, QUARANTINE } from "./registry.ts";

export interface AuditStreamOptions extends PresetStreamOptions {
  /** Default `audit-retry-workers`. */
  readonly group?: string | undefined;
  /** Default `audit`: the store behind `mg` writes the records itself. */
  readonly namespace?: StreamNamespace | undefined;
  /** How the topics were made, where that is not the policy `audit`: its first wait stands before the first attempt. */
  readonly retry?: RetryConfig | undefined;
}

export function startAuditStream(options: AuditStreamOptions): StreamDoors {
  const { namespace = AUDIT_NAMESPACE, clock = systemClock, random = systemRandom } = options;
  const policy = retryPolicy(options.retry ?? { policy: "audit" });
  if (!policy) throw new MakegoodError("invalid_config", `there is no retry policy ${JSON.stringify(options.retry?.policy)}`);
  // The process that added the entry has tried it; how long ago that is counts. A second reading of it is the same message.
  const waitMs = (entry: StreamEntry): number => {
    const ageMs = Math.max(0, clock.wallMs() - addedMs(entry)) || 0;
    return Math.max(0, Math.ceil(retryDelayMs(policy, 1, random.next()) - ageMs));
  };
  return startPresetStream(options, {
    ...AUDIT_STREAM,
    lengthMax: AUDIT_LENGTH_MAX,
    topics: auditTopicNames(namespace),
    read(entry) {
      const message = readAuditEntry(AUDIT_STREAM.stream, entry, namespace);
      return message.topic.endsWith(`/${QUARANTINE}`) ? message : { ...message, delayMs: waitMs(entry) };
    },
  });
}

/** `audit`: the reader's own store writes the records. `audit-write`: they are sent to the service. */
export type StreamNamespace = typeof AUDIT_NAMESPACE | typeof AUDIT_CLIENT_NAMESPACE;

export type AuditStreamMessage = ReturnType<typeof readAuditEntry>;

export function readAuditEntry(stream: string, entry: StreamEntry, namespace: StreamNamespace = AUDIT_NAMESPACE) {
  const { audit_type = "", audit_data = "" } = entry.fields;
  const eventId = `${stream}/${entry.id}`;
  const source = { eventId, newId: () => eventId, actor: stream, occurredMs: addedMs(entry) };
  const { faults, key, ...message } = messageOf(namespace, audit_type, audit_data, source);
  // Each quarantined entry is a dead letter of its own, under its own key; only what is kept as it came has its type in the key.
  return faults.length === 0 || message.payloadText === audit_data ? { ...message, key } : message;
}

/** The entry's own id has milliseconds and is Redis's time; the seed's field has seconds. NaN: neither says. */
function addedMs({ id, fields }: StreamEntry): number {
  const ms = Number(id.split("-")[0]);
  return Number.isSafeInteger(ms) && ms > 0 ? ms : Number(fields.created_at) * 1_000;
}
