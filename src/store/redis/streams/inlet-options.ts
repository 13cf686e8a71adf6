/**
 * What an inlet takes and what it reports: options, notices, and the limits both have. An entry becomes a message by the caller's
 * `read`; its key is made of stream and entry id unless `read` gives one, so that a repeat is the same message.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import { type MessageFields, payloadHash } from "../../../message/validate.ts";
import type { Clock } from "../../../platform/clock.ts";
import type { Random } from "../../../platform/random.ts";
import type { RedisPort } from "../port.ts";
import { hashTag, type StreamEntry, siblingKey } from "./entries.ts";
import { checkReclaim, type ReclaimRules } from "./takeover.ts";

/** As `enqueueText` of the front door takes it. */
export interface InletMessage extends MessageFields {
  readonly topic: string;
  readonly payloadText: string;
}

export interface Malformed {
  readonly stream: string;
  readonly group: string;
  readonly entry: StreamEntry;
  /** `malformed`, `reclaims_exhausted`, or the code with which it was refused. */
  readonly code: string;
  readonly reason: string;
  readonly deliveries: number;
}

/** What happened, for logs and metrics. */
export type InletNotice =
  | { readonly what: "started" | "stopped"; readonly consumer: string }
  | { readonly what: "accepted"; readonly ids: readonly string[] }
  | {
      readonly what: "accept_failed" | "settle_failed" | "quarantine_failed" | "show_failed";
      readonly ids: readonly string[];
      readonly error: string;
    }
  | { readonly what: "quarantined"; readonly id: string; readonly code: string; readonly reason: string }
  | { readonly what: "reclaimed"; readonly ids: readonly string[]; readonly deferred: number }
  /** Removed from the stream by another client before it was processed. */
  | { readonly what: "lost"; readonly ids: readonly string[] }
  /** The others of the group were looked at; `removed`: how many of them had died. */
  | { readonly what: "consumers_checked"; readonly checked: number; readonly removed: number; readonly ms: number }
  | { readonly what: "consumers_removed"; readonly consumers: readonly string[] }
  | { readonly what: "read_failed"; readonly error: string; readonly consecutive: number };

export interface InletOptions extends Partial<ReclaimRules> {
  readonly redis: RedisPort;
  readonly stream: string;
  readonly group: string;
  /** Unique among all that read the group. Absent: made of host, process and chance. */
  readonly consumer?: string | undefined;
  /** What an entry means. A throw is an answer: the entry is malformed. */
  readonly read: (entry: StreamEntry) => Omit<InletMessage, "key"> & { readonly key?: string | undefined };
  /**
   * Commits the messages; resolves only when they are durable. A MakegoodError that is not retryable condemns: the entry at
   * fault is found and quarantined. Any other failure is an outage: everything waits and no entry is charged for it.
   */
  readonly accept: (messages: readonly InletMessage[], signal: AbortSignal) => Promise<unknown>;
  /** Where the malformed and the exhausted go. Absent: to `deadStream`, in one script with their end. */
  readonly onMalformed?: ((malformed: Malformed) => Promise<unknown>) | undefined;
  /** Hears of each entry that went to `deadStream`, as it is there; what it throws changes nothing. */
  readonly onQuarantined?: ((deadStream: string, entry: StreamEntry) => Promise<unknown>) | undefined;
  /** Default `{stream}:dead-letter`. On a cluster it must share the stream's hash tag. */
  readonly deadStream?: string | undefined;
  /** Entries held at once; default 10. */
  readonly batchMax?: number | undefined;
  /** The longest wait of one read; default 2,000. */
  readonly blockMs?: number | undefined;
  /** How often died consumers are looked for; default 30,000, or `reclaimIdleMs` where that is less. */
  readonly sweepMs?: number | undefined;
  /** Entries taken over in one sweep; default 20. */
  readonly sweepMax?: number | undefined;
  /** A consumer that was silent this long and holds nothing is removed; default 10 minutes. */
  readonly silentMs?: number | undefined;
  /** How long one `accept` may take; default a third of `reclaimIdleMs`, at most 30,000. */
  readonly acceptTimeoutMs?: number | undefined;
  readonly onNotice?: ((notice: InletNotice) => void) | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

export interface InletSettings {
  readonly batchMax: number;
  readonly blockMs: number;
  readonly sweepMs: number;
  readonly sweepMax: number;
  readonly silentMs: number;
  readonly acceptTimeoutMs: number;
  readonly deadStream: string;
  readonly reclaim: ReclaimRules;
}

/** What inletSettings has to know of Redis, which need not be there yet. */
export type UnconnectedInlet = Omit<InletOptions, "redis"> & { readonly redis: Pick<RedisPort, "cluster"> };

export function inletSettings(options: UnconnectedInlet): InletSettings {
  const { stream, group, redis } = options;
  const problems: string[] = [];
  const wholeNumber = (name: keyof UnconnectedInlet, fallback: number, min: number, max: number): number => {
    const value = (options[name] as number | undefined) ?? fallback;
    if (!(Number.isInteger(value) && value >= min && value <= max))
      problems.push(`${name} must be a whole number from ${min} to ${max}`);
    return value;
  };
  if (stream === "" || group === "") problems.push("stream and group must have names");
  const deadStream = options.deadStream ?? siblingKey(stream, "dead-letter");
  if (deadStream === stream) problems.push("deadStream must not be the stream itself");
  if (redis.cluster && hashTag(deadStream) !== hashTag(stream))
    problems.push(`on a cluster deadStream must share the hash tag of ${stream}, such as ${siblingKey(stream, "dead-letter")}`);
  const reclaim = checkReclaim(options);
  const settings: InletSettings = {
    batchMax: wholeNumber("batchMax", 10, 1, LIMITS.batchMessagesMax),
    // Never 0, which would wait for ever (DA-11).
    blockMs: wholeNumber("blockMs", 2_000, 1, 60_000),
    sweepMs: wholeNumber("sweepMs", Math.max(10, Math.min(30_000, Math.floor(reclaim.reclaimIdleMs))), 10, 86_400_000),
    sweepMax: wholeNumber("sweepMax", 20, 1, 1_000),
    silentMs: wholeNumber("silentMs", 600_000, 1, 30 * 86_400_000),
    // With the time between two touches it is shorter than what other consumers wait before they take over an entry held here.
    acceptTimeoutMs: options.acceptTimeoutMs ?? Math.max(1, Math.min(30_000, Math.floor(reclaim.reclaimIdleMs / 3))),
    deadStream,
    reclaim,
  };
  if (!(settings.acceptTimeoutMs < reclaim.reclaimIdleMs)) problems.push("acceptTimeoutMs must be shorter than reclaimIdleMs");
  if (problems.length > 0) throw new MakegoodError("invalid_config", problems.join("; "), { problems });
  return settings;
}

/** The same for the same entry, on every consumer. */
export function entryKey(stream: string, id: string): string {
  const key = `${stream}:${id}`;
  // A name that could not travel as a header or is too long stands as its hash.
  return /^[\x20-\x7e]{1,255}$/.test(key) ? key : `${payloadHash(stream)}:${id}`;
}
