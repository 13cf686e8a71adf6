/**
 * The seed's stream of failures to be evaluated, opened at both ends: an entry becomes a message of `recovery/evaluate`, and what
 * dies of that topic appears on `m10:evaluate:dead-letter`. This file only opens the streams: the recovery engine of a worker
 * evaluates, or another sink that an operator gives the topic; until then messages wait there and nothing is lost.
 */
import { EVALUATE_DEFINITION, RECOVERY_TOPIC } from "../../recovery/topics.ts";
import type { StreamDoors, StreamDoorsOptions } from "../../store/redis/streams/doors.ts";
import { RECOVERY_LENGTH_MAX, RECOVERY_STREAM } from "../../store/redis/streams/seed-names.ts";
import type { ReclaimRules } from "../../store/redis/streams/takeover.ts";
import { type PresetStreamOptions, startPresetStream } from "../preset-stream.ts";

type Setting = "stream" | "group" | "deadStream" | "lengthMax" | keyof ReclaimRules;

/** What may be other than the seed has it (RECOVERY_STREAM names its variables). Beyond `lengthMax` the stream is said to be too long. */
export type RecoveryStreamSettings = { readonly [Name in Setting]?: StreamDoorsOptions[Name] | undefined };

export interface RecoveryStreamOptions extends RecoveryStreamSettings, PresetStreamOptions {}

export function startRecoveryStream(options: RecoveryStreamOptions): StreamDoors {
  const { topics } = options.mg.store;
  return startPresetStream(options, {
    ...RECOVERY_STREAM,
    lengthMax: RECOVERY_LENGTH_MAX,
    topics: [RECOVERY_TOPIC],
    // An entry of a topic that is not declared would be quarantined. Declared as the recovery engine does it, so that either may
    // start first: a declaration over the API, in a file or in code replaces it.
    prepare: async () => (await topics.get(RECOVERY_TOPIC)) ?? topics.put(EVALUATE_DEFINITION, "api"),
    // The fields as they are, in their order; what they mean is the evaluator's business.
    read: ({ fields }) => ({ topic: RECOVERY_TOPIC, payloadText: JSON.stringify(fields) }),
  });
}
