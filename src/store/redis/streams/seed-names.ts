/**
 * The seeds' streams and groups under their own names: what the audit and recovery presets pass to an inlet or an outlet by
 * default. The seeds' lengths (10,000 and 100,000) cut nothing off here (DA-1, DR-11): beyond them the stream doors warn.
 */
import { MakegoodError } from "../../../message/errors.ts";
import type { StreamEntry } from "./entries.ts";
import type { InletOptions } from "./inlet-options.ts";
import type { ReclaimRules } from "./takeover.ts";

type Names = Pick<InletOptions, "stream" | "group" | "deadStream" | "batchMax" | "sweepMs" | "sweepMax"> & Partial<ReclaimRules>;

/** Beyond this the audit stream is reported as too long. */
export const AUDIT_LENGTH_MAX = 10_000;
/** M10_STREAM_MAX_LEN. */
export const RECOVERY_LENGTH_MAX = 100_000;

/** The audit stream and its group. */
export const AUDIT_STREAM = {
  stream: "audit-dlq",
  group: "audit-retry-workers",
  deadStream: "audit:dead-letter",
  batchMax: 10,
  sweepMs: 30_000,
} as const satisfies Names;

/** A stream per class of record, more than five deliveries end an entry. */
export const AUDIT_CLASS_STREAMS = {
  events: { ...AUDIT_STREAM, stream: "audit:dlq:events", deadStream: "audit:dead-letter:events", reclaimsMax: 5 },
  notifications: {
    ...AUDIT_STREAM,
    stream: "audit:dlq:notifications",
    deadStream: "audit:dead-letter:notifications",
    reclaimsMax: 5,
  },
} as const satisfies Readonly<Record<string, Names>>;

/** M10_STREAM_KEY, M10_CONSUMER_GROUP, M10_DEAD_LETTER_STREAM, M10_CLAIM_IDLE_MS, M10_MAX_RECLAIM_ATTEMPTS, M10_RECLAIM_*. */
export const RECOVERY_STREAM = {
  stream: "m10:evaluate:stream",
  group: "m10:evaluate:group",
  deadStream: "m10:evaluate:dead-letter",
  reclaimIdleMs: 60_000,
  reclaimBaseMs: 60_000,
  reclaimsMax: 3,
  reclaimIdleMsMax: 86_400_000,
  sweepMax: 20,
} as const satisfies Names;

/** A field that must be there and not be empty; the throw makes the entry malformed. */
export function fieldOf({ id, fields }: StreamEntry, name: string): string {
  const value = fields[name];
  if (value !== undefined && value !== "") return value;
  throw new MakegoodError("invalid_message", `entry ${id} has no field ${name}`, { id, field: name });
}
