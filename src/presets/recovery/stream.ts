/**
 * The seed's stream of failures to be evaluated, opened at both ends (REC-30, REC-31, REC-40): an entry becomes a message of
 * `recovery/evaluate`, and what dies of that topic appears on `m10:evaluate:dead-letter`. Only the doors: the recovery engine of a worker
 * evaluates, or whoever gives the topic another sink; until somebody does, messages wait there and nothing is lost.
 */
import type { Makegood } from "../../create.ts";
import { EVALUATE_DEFINITION, RECOVERY_TOPIC } from "../../recovery/topics.ts";
import type { StreamDoors } from "../../store/redis/streams/doors.ts";
import type { StreamEntry } from "../../store/redis/streams/entries.ts";
import { RECOVERY_LENGTH_MAX, RECOVERY_STREAM } from "../../store/redis/streams/seed-names.ts";
import { type PresetStreamOptions, startPresetStream } from "../preset-stream.ts";

/** The seed's variable of each stands beside it. */
export interface RecoveryStreamSettings {
  /** M10_STREAM_KEY */
  readonly stream?: string | undefined;
  /** M10_CONSUMER_GROUP */
  readonly group?: string | undefined;
  /** M10_DEAD_LETTER_STREAM */
  readonly deadStream?: string | undefined;
  /** M10_STREAM_MAX_LEN: beyond it the stream is said to be too long. Nothing is cut off. */
  readonly lengthMax?: number | undefined;
  /** M10_CLAIM_IDLE_MS */
  readonly reclaimIdleMs?: number | undefined;
  /** M10_MAX_RECLAIM_ATTEMPTS */
  readonly reclaimsMax?: number | undefined;
  /** M10_RECLAIM_BASE_BACKOFF_MS */
  readonly reclaimBaseMs?: number | undefined;
  /** M10_RECLAIM_MAX_BACKOFF_MS */
  readonly reclaimIdleMsMax?: number | undefined;
}

export interface RecoveryStreamOptions extends RecoveryStreamSettings, PresetStreamOptions {}

export function startRecoveryStream(options: RecoveryStreamOptions): StreamDoors {
  const { deadStream: seedDeadStream, ...defaults } = RECOVERY_STREAM;
  return startPresetStream(options, {
    stream: options.stream ?? defaults.stream,
    group: options.group ?? defaults.group,
    deadStream: options.deadStream,
    seedDeadStream,
    lengthMax: options.lengthMax ?? RECOVERY_LENGTH_MAX,
    reclaimIdleMs: options.reclaimIdleMs ?? defaults.reclaimIdleMs,
    reclaimBaseMs: options.reclaimBaseMs ?? defaults.reclaimBaseMs,
    reclaimsMax: options.reclaimsMax ?? defaults.reclaimsMax,
    reclaimIdleMsMax: options.reclaimIdleMsMax ?? defaults.reclaimIdleMsMax,
    sweepMax: defaults.sweepMax,
    topics: [RECOVERY_TOPIC],
    prepare: () => declareMissing(options.mg.store),
    read: readRecoveryEntry,
  });
}

/** The fields as they are, in their order, as one JSON object; what they mean is the evaluator's business. */
export function readRecoveryEntry({ fields }: StreamEntry): { topic: string; payloadText: string } {
  return { topic: RECOVERY_TOPIC, payloadText: JSON.stringify(fields) };
}

/**
 * An entry of a topic that nobody declared would be quarantined. Declared as the recovery engine does it, whichever of the two starts
 * first: whoever evaluates, over the API, in a file or in code, may replace it.
 */
async function declareMissing(store: Makegood["store"]): Promise<void> {
  if ((await store.topics.get(RECOVERY_TOPIC)) === null) await store.topics.put(EVALUATE_DEFINITION, "api");
}
