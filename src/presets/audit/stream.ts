/**
 * The seed's stream of audit records, opened at both ends: what others add to `audit-dlq` becomes a message of the audit topics,
 * acknowledged after its commit, and what dies of those topics appears on `audit:dead-letter` (AUD-9, AUD-15, AUD-31). One
 * call for a service that embeds it; `serve` and `work` make the same one when MAKEGOOD_STREAMS names audit. A record without an envelope gets one
 * made of the entry, so that a second reading is the same event; what cannot be read is quarantined and never thrown away (DA-13).
 */
import { MakegoodError } from "../../message/errors.ts";
import { type RetryConfig, retryDelayMs, retryPolicy } from "../../message/retry-policy.ts";
import { systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import type { StreamDoors } from "../../store/redis/streams/doors.ts";
import { AUDIT_LENGTH_MAX, AUDIT_STREAM } from "../../store/redis/streams/seed-names.ts";
import { type PresetStreamOptions, startPresetStream } from "../preset-stream.ts";
import { NOT_REGISTERED, quarantineMessage } from "./quarantine.ts";
import { faultText } from "./record.ts";
import { type AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, AUDIT_TYPES, auditKind, QUARANTINE } from "./registry.ts";
import { readEither } from "./seed-record.ts";

export interface AuditStreamOptions extends PresetStreamOptions {
  /** Default `audit-retry-workers` (CON-14). */
  readonly group?: string | undefined;
  /** Default `audit`: the store behind `mg` writes the records itself. */
  readonly namespace?: StreamNamespace | undefined;
  /** How the topics were made, where that is not the policy `audit`: its first wait stands before the first attempt (AUD-19). */
  readonly retry?: RetryConfig | undefined;
}

/** All topics that an entry may become a message of. */
export function auditStreamTopics(namespace: StreamNamespace = AUDIT_NAMESPACE): string[] {
  return [...AUDIT_TYPES.map(({ type }) => type), QUARANTINE].map((name) => `${namespace}/${name}`);
}

export function startAuditStream(options: AuditStreamOptions): StreamDoors {
  const { namespace, clock = systemClock, random = systemRandom } = options;
  const policy = retryPolicy(options.retry ?? { policy: "audit" });
  if (!policy) throw new MakegoodError("invalid_config", `there is no retry policy ${JSON.stringify(options.retry?.policy)}`);
  // Whoever added the entry has tried it; how long that is ago counts. A second reading of it is the same message.
  const waitMs = (entry: AuditStreamEntry): number => {
    const ageMs = Math.max(0, clock.wallMs() - addedMs(entry)) || 0;
    return Math.max(0, Math.ceil(retryDelayMs(policy, 1, random.next()) - ageMs));
  };
  const { deadStream: seedDeadStream, ...names } = AUDIT_STREAM;
  return startPresetStream(options, {
    ...names,
    group: options.group ?? names.group,
    seedDeadStream,
    lengthMax: AUDIT_LENGTH_MAX,
    topics: auditStreamTopics(namespace),
    read(entry) {
      const message = readAuditEntry(names.stream, entry, namespace);
      return message.topic.endsWith(`/${QUARANTINE}`) ? message : { ...message, delayMs: waitMs(entry) };
    },
  });
}

/** `audit`: the reader's own store writes the records. `audit-write`: they are sent to the service. */
export type StreamNamespace = typeof AUDIT_NAMESPACE | typeof AUDIT_CLIENT_NAMESPACE;

export interface AuditStreamEntry {
  /** `milliseconds-sequence`. */
  readonly id: string;
  readonly fields: Readonly<Record<string, string | undefined>>;
}

export interface AuditStreamMessage {
  readonly topic: string;
  readonly payloadText: string;
  /** Absent: the inlet makes one of stream and entry id. */
  readonly key?: string | undefined;
}

export function readAuditEntry(
  stream: string,
  entry: AuditStreamEntry,
  namespace: StreamNamespace = AUDIT_NAMESPACE,
): AuditStreamMessage {
  const { audit_type = "", audit_data = "" } = entry.fields;
  const kind = auditKind(audit_type);
  const quarantined = (type: string, reason: string): AuditStreamMessage => {
    const { key, ...message } = quarantineMessage(namespace, type, reason, audit_data);
    // Each entry is a dead letter of its own, under its own key; only what is kept as it came has its type in the key.
    return message.payloadText === audit_data ? { ...message, key } : message;
  };
  if (kind === null) return quarantined(audit_type, NOT_REGISTERED);
  const read = readEither(kind, audit_data, {
    eventId: `${stream}/${entry.id}`,
    newId: () => `${stream}/${entry.id}`,
    actor: stream,
    occurredMs: addedMs(entry),
  });
  if (!read.ok) return quarantined(kind.type, faultText(read.faults));
  return { topic: `${namespace}/${kind.type}`, payloadText: read.record.payload, key: read.record.eventId };
}

/** The entry's own id has milliseconds and is Redis's time; the seed's field has seconds (DA-23). NaN: neither says. */
export function addedMs({ id, fields }: AuditStreamEntry): number {
  const ms = Number(id.split("-")[0]);
  return Number.isSafeInteger(ms) && ms > 0 ? ms : Number(fields.created_at) * 1_000;
}
