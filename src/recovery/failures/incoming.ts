/** Failures as something to ingest: reported by others, dead here, or failing here often. Those of a message share one ledger key. */
import { MakegoodError } from "../../message/errors.ts";
import type { MessageView } from "../../message/message.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { checkFields, isTopicName, payloadHash } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Failure } from "../fingerprint/fingerprint.ts";
import { mask } from "../fingerprint/mask.ts";
import type { FailureReport } from "../recovery.ts";
import { isRecoveryTopic } from "../topics.ts";
import { cleanName, cleanText, keptPayload, keptText, PAYLOAD_CHARS_MAX } from "./clean-text.ts";
import type { DeadFailure, NewOccurrence } from "./failure.ts";
import type { OwnLoopOptions } from "./own-loop.ts";

/** Ready to be placed; its ledger key may depend on where it belongs. */
export interface Incoming extends Omit<NewOccurrence, "group" | "requestKey"> {
  readonly failure: Failure;
  readonly requestKey: (fingerprint: string) => string | null;
}

/** The topic of failures that name none. */
export const OUTSIDE_TOPIC = "outside";

function incomingOf(report: FailureReport): Incoming {
  const { idempotencyKey, tenantId, source, version, failurePayload } = report;
  checkFields({ key: idempotencyKey, tenantId });
  const failureMatchId = report.failureMatchId?.toLowerCase() ?? null;
  if (failureMatchId !== null && !isUuid(failureMatchId)) throw refused("failure_match_id", "must be a UUID");
  const errorMessage = cleanText(report.errorMessage);
  const stackTrace = report.stackTrace === null ? null : cleanText(report.stackTrace);
  return {
    failure: {
      topic: cleanName(report.topic ?? "") || OUTSIDE_TOPIC,
      // Which host of many it was is not what failed.
      sink: mask(cleanName(report.sink ?? "")),
      errorCode: cleanName(report.errorCode) || "unknown",
      errorMessage,
      ...(stackTrace === null ? {} : { stackTrace }),
    },
    ...{ source, failureMatchId, tenantId, version, message: null, evaluate: report.enqueueEvaluation },
    requestKey: () => (idempotencyKey === null ? null : `report:${idempotencyKey}`),
    payloadHash: payloadHash(failurePayload),
    skillId: report.skillId === null ? null : cleanName(report.skillId),
    errorMessage: keptText(errorMessage),
    stackTrace: stackTrace === null ? null : keptText(stackTrace),
    failurePayload: asJson(keptPayload(failurePayload)),
    redriveTopic: redriveTopicOf(report),
  };
}

/** It must be whole to be sent again, and the engine's own topics take nothing from outside. */
function redriveTopicOf({ redriveTopic, failurePayload }: FailureReport): string | null {
  if (!redriveTopic) return null;
  const whole = failurePayload.length <= PAYLOAD_CHARS_MAX;
  if (whole && isTopicName(redriveTopic) && !isRecoveryTopic(redriveTopic)) return redriveTopic;
  const long = `needs a failure_payload of at most ${PAYLOAD_CHARS_MAX} characters`;
  throw refused("redrive_topic", whole ? "must be a topic of yours" : long);
}

const refused = (field: string, detail: string) =>
  new MakegoodError("invalid_request", `${field} ${detail}.`, { errors: [{ field, detail }] });

/** It is shown, and read from the tables, as JSON: what a program reports as plain text is kept as a JSON text. */
function asJson(payload: string): string {
  try {
    JSON.parse(payload);
    return payload;
  } catch {
    return JSON.stringify(payload);
  }
}

/** Idempotent by its key: the hash of the exact payload tells a repeat from another failure under the same key. */
export async function ingestReport({ prepare, intake }: Pick<OwnLoopOptions, "prepare" | "intake">, report: FailureReport) {
  const incoming = incomingOf(report);
  await prepare();
  const { kind, first: _, ...answer } = await intake.take(incoming);
  if (kind !== "conflict") return { ...answer, status: kind };
  const { idempotencyKey } = report;
  const { candidateId } = answer;
  throw new MakegoodError(
    "key_conflict",
    `The key ${idempotencyKey} was used for another failure payload (candidate ${candidateId}): use a new key for a new failure.`,
    { idempotencyKey, candidateId },
  );
}

/** The receiver of a topic, without what varies: its kind and, where it has a URL, the host; masked, as in a report. */
export function sinkName(record: Pick<TopicRecord, "sink"> | null): string {
  if (record === null) return "unknown";
  const { kind, url } = record.sink;
  if (url === undefined) return kind;
  try {
    return mask(cleanName(`${kind} ${new URL(url).host}`));
  } catch {
    return kind;
  }
}

/** `version`: of the program that ingests it, which is the one that failed wherever all processes run the same. */
export function incomingOfDead(dead: DeadFailure, sink: string, version: string | null): Incoming {
  const text = cleanText(dead.error ?? "");
  const { id, generation, attempts, topic, tenantId } = dead;
  return {
    failure: { topic, sink, errorCode: cleanName(dead.code ?? "") || "unknown", errorMessage: text },
    requestKey: (fingerprint) => `message:${id}:${generation}:${fingerprint}`,
    payloadHash: payloadHash(`${id}:${generation}`),
    message: { id, generation, attempts },
    errorMessage: keptText(text),
    ...{ source: "message", tenantId, version, evaluate: true },
    ...{ failureMatchId: null, skillId: null, stackTrace: null, failurePayload: null },
  };
}

/** A message that failed often, as if it had died; null when it did since, or was delivered: then it is no business of ours. */
export function failingOf(message: MessageView | null): DeadFailure | null {
  if (message === null || message.status === "delivered" || message.status === "dead") return null;
  const { id, generation, attempts, topic, tenantId, lastCode, lastError } = message;
  return { id, generation, attempts, topic, tenantId, code: lastCode, error: lastError };
}
