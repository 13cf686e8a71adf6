/**
 * The seeds' two streams, opened at both ends: an entry becomes a message of a Makegood, acknowledged after its commit, and what dies of it
 * appears on the seed's stream of dead letters. One call for a service that embeds it; `serve` and `work` make the same one when
 * MAKEGOOD_STREAMS names it. What cannot be read is quarantined and never thrown away.
 */
import type { Makegood } from "../create.ts";
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { type RetryConfig, retryDelayMs, retryPolicy } from "../message/retry-policy.ts";
import type { Level } from "../observe/level-sources.ts";
import { CONSUMERS_SEEN } from "../observe/upkeep-metrics.ts";
import { systemClock } from "../platform/clock.ts";
import { createIds } from "../platform/ids.ts";
import { systemRandom } from "../platform/random.ts";
import { EVALUATE_DEFINITION, RECOVERY_TOPIC } from "../recovery/topics.ts";
import { archiveEntry, toDeadEntry } from "../store/redis/streams/dead-stream.ts";
import { type StreamDoors, type StreamDoorsOptions, startStreamDoors } from "../store/redis/streams/doors.ts";
import type { StreamEntry } from "../store/redis/streams/entries.ts";
import { AUDIT_LENGTH_MAX, AUDIT_STREAM, RECOVERY_LENGTH_MAX, RECOVERY_STREAM } from "../store/redis/streams/seed-names.ts";
import type { ReclaimRules } from "../store/redis/streams/takeover.ts";
import { messageOf } from "./audit/draft.ts";
import { type AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, auditTopicNames, QUARANTINE } from "./audit/registry.ts";

type Shared = "redis" | "consumerName" | "onNotice" | "clock" | "random";

interface PresetStreamOptions extends Pick<StreamDoorsOptions, Shared> {
  /** It must have the topics of the stream, and a process must work on them. */
  readonly mg: Pick<Makegood, "store" | "events" | "enqueueText" | "levels">;
}

type Seeds = Omit<StreamDoorsOptions, Shared | "store" | "accept" | "seedDeadStream" | "onQuarantined">;

/** `seeds`: as the seed has it, where the options say nothing else. */
function startPresetStream({ mg, redis, ...options }: PresetStreamOptions, { deadStream: seedDeadStream, ...seeds }: Seeds) {
  const given: Partial<Seeds> = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const accept: StreamDoorsOptions["accept"] = (messages, signal) => mg.enqueueText(messages, { signal });
  const ids = createIds(options.clock);
  // What the store refuses is seen in the store as well (DA-15); what is missed here `makegood streams archive` brings.
  const onQuarantined: StreamDoorsOptions["onQuarantined"] = (stream, entry) =>
    archiveEntry({ store: mg.store, stream, ids }, toDeadEntry(entry));
  const onNotice: StreamDoorsOptions["onNotice"] = (notice) => {
    options.onNotice?.(notice);
    if (notice.what !== "consumers_checked") return;
    const { ms, checked, removed } = notice;
    mg.events.emit({ type: "job", name: CONSUMERS_SEEN, result: "done", ms, counts: { checked, removed }, error: null });
  };
  const doors = startStreamDoors({ ...seeds, seedDeadStream, onQuarantined, ...given, onNotice, redis, store: mg.store, accept });
  // A hint, so that it is published at once; what it misses the outlet's next pass finds.
  const silence = mg.events.on((event) => {
    if (event.type === "attempt" && event.status === "dead" && seeds.topics.includes(event.topic)) doors.nudge();
  });
  const unmeasured = mg.levels.add({ name: `stream ${doors.stream}`, read: () => streamLevels(doors, seeds.topics) });
  const stop: StreamDoors["stop"] = (how) => {
    silence();
    unmeasured();
    return doors.stop(how);
  };
  return { ...doors, stop, [Symbol.asyncDispose]: () => stop() };
}

/** Redis away is no number: the source has not answered. */
async function streamLevels(doors: StreamDoors, topics: readonly string[]): Promise<Level[]> {
  const depth = await doors.depth();
  if (depth === null) throw new MakegoodError("store_unavailable", `the Redis of stream ${doors.stream} was not reached yet`);
  const { length, waiting, pending, consumers } = depth;
  const labels = [doors.stream];
  const all: Level[] = [
    { name: "makegood_stream_length", value: length, labels },
    { name: "makegood_stream_waiting", value: waiting, labels },
    { name: "makegood_stream_pending", value: pending, labels },
    { name: "makegood_stream_consumers", value: consumers, labels },
  ];
  if (!topics.includes(RECOVERY_TOPIC)) return all;
  const seeds: Level[] = [
    { name: "recovery_stream_length", value: length },
    { name: "recovery_stream_pending", value: pending },
    { name: "recovery_stream_consumers", value: consumers },
  ];
  return [...all, ...seeds];
}

type Setting = "stream" | "group" | "deadStream" | "lengthMax" | keyof ReclaimRules;

/** What may be other than the seed has it (RECOVERY_STREAM names its variables). Beyond `lengthMax` the stream is said to be too long. */
export type RecoveryStreamSettings = { readonly [Name in Setting]?: StreamDoorsOptions[Name] | undefined };

export interface RecoveryStreamOptions extends RecoveryStreamSettings, PresetStreamOptions {}

/**
 * Failures to be evaluated, as messages of `recovery/evaluate`. The recovery engine of a worker evaluates, or another sink that an operator
 * gives the topic; until then messages wait there and nothing is lost.
 */
export function startRecoveryStream(options: RecoveryStreamOptions): StreamDoors {
  const { topics } = options.mg.store;
  return startPresetStream(options, {
    ...RECOVERY_STREAM,
    lengthMax: RECOVERY_LENGTH_MAX,
    topics: [RECOVERY_TOPIC],
    // An entry of a topic that is not declared would be quarantined. Declared as the recovery engine does it, so that either may
    // start first: a declaration over the API, in a file or in code replaces it.
    prepare: async () => (await topics.get(RECOVERY_TOPIC)) ?? topics.put(EVALUATE_DEFINITION, "api"),
    read: readRecoveryEntry,
  });
}

/** The fields as they are, in their order; what they mean is the evaluator's business. */
export function readRecoveryEntry({ fields }: StreamEntry) {
  return { topic: RECOVERY_TOPIC, payloadText: JSON.stringify(fields), priority: priorityOf(fields) };
}

/** CON-24: the seed's priority is the message's own, within the kernel's bounds; what is no whole number is none. */
function priorityOf({ priority = "" }: StreamEntry["fields"]): number {
  if (!/^-?\d{1,9}$/.test(priority)) return 0;
  return Math.min(LIMITS.priorityMax, Math.max(LIMITS.priorityMin, Number(priority)));
}

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
type StreamNamespace = typeof AUDIT_NAMESPACE | typeof AUDIT_CLIENT_NAMESPACE;

export type AuditStreamMessage = ReturnType<typeof readAuditEntry>;

/** A record without an envelope gets one made of the entry, so that a second reading is the same event. */
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
