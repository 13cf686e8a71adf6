/**
 * A failure that another service reports as something to ingest. Idempotent by its key: the hash of the exact payload tells a
 * repeat from another failure under the same key.
 */
import { MakegoodError } from "../../message/errors.ts";
import { checkFields, isTopicName, payloadHash } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import { mask } from "../fingerprint/mask.ts";
import type { FailureReport, IngestAnswer } from "../recovery.ts";
import { isRecoveryTopic } from "../topics.ts";
import { cleanName, cleanText, keptPayload, keptText, PAYLOAD_CHARS_MAX } from "./clean-text.ts";
import type { Ingested } from "./failure.ts";
import type { Incoming, Intake } from "./intake.ts";

/** The topic of failures that name none. */
export const OUTSIDE_TOPIC = "outside";

export function incomingOf(report: FailureReport): Incoming {
  const { failureMatchId, idempotencyKey, tenantId } = report;
  checkFields({ key: idempotencyKey, tenantId });
  const matchId = failureMatchId?.toLowerCase() ?? null;
  if (matchId !== null && !isUuid(matchId)) {
    const detail = "must be a UUID";
    throw new MakegoodError("invalid_request", `failure_match_id ${detail}.`, {
      errors: [{ field: "failure_match_id", detail }],
    });
  }
  const text = cleanText(report.errorMessage);
  const stack = report.stackTrace === null ? null : cleanText(report.stackTrace);
  const failure = {
    topic: cleanName(report.topic ?? "") || OUTSIDE_TOPIC,
    // Which host of many it was is not what failed.
    sink: mask(cleanName(report.sink ?? "")),
    errorCode: cleanName(report.errorCode) || "unknown",
    errorMessage: text,
    ...(stack === null ? {} : { stackTrace: stack }),
  };
  const key = idempotencyKey === null ? null : `report:${idempotencyKey}`;
  return {
    failure,
    requestKey: () => key,
    payloadHash: payloadHash(report.failurePayload),
    source: report.source,
    failureMatchId: matchId,
    message: null,
    tenantId,
    skillId: report.skillId === null ? null : cleanName(report.skillId),
    errorMessage: keptText(text),
    stackTrace: stack === null ? null : keptText(stack),
    failurePayload: asJson(keptPayload(report.failurePayload)),
    version: report.version ?? null,
    redriveTopic: redriveTopicOf(report),
    evaluate: report.enqueueEvaluation,
  };
}

/** It must be whole to be sent again, and the engine's own topics take nothing from outside. */
function redriveTopicOf({ redriveTopic, failurePayload }: FailureReport): string | null {
  if (!redriveTopic) return null;
  const whole = failurePayload.length <= PAYLOAD_CHARS_MAX;
  if (whole && isTopicName(redriveTopic) && !isRecoveryTopic(redriveTopic)) return redriveTopic;
  const detail = whole ? "must be a topic of yours" : `needs a failure_payload of at most ${PAYLOAD_CHARS_MAX} characters`;
  throw new MakegoodError("invalid_request", `redrive_topic ${detail}.`, { errors: [{ field: "redrive_topic", detail }] });
}

/** It is shown, and read from the tables, as JSON: what a program reports as plain text is kept as a JSON text. */
function asJson(payload: string): string {
  try {
    JSON.parse(payload);
    return payload;
  } catch {
    return JSON.stringify(payload);
  }
}

export interface IngestReportDeps {
  readonly prepare: () => Promise<void>;
  readonly intake: Pick<Intake, "take">;
}

export async function ingestReport({ prepare, intake }: IngestReportDeps, report: FailureReport): Promise<IngestAnswer> {
  const incoming = incomingOf(report);
  await prepare();
  const [ingested] = await intake.take([incoming]);
  if (ingested === undefined) throw new MakegoodError("invariant_violated", "An ingest of one failure gave no answer.", {});
  return answerOf(report, ingested);
}

function answerOf(report: FailureReport, ingested: Ingested): IngestAnswer {
  const { kind, groupId, candidateId, failureMatchId, occurrenceCount, evaluationQueued, regression } = ingested;
  if (kind === "conflict") {
    throw new MakegoodError(
      "key_conflict",
      `The key ${report.idempotencyKey} was used for another failure payload (candidate ${candidateId}): use a new key for a new failure.`,
      { idempotencyKey: report.idempotencyKey, candidateId },
    );
  }
  return { candidateId, groupId, failureMatchId, status: kind, occurrenceCount, evaluationQueued, regression };
}
