/** A question about a failure that need not have happened: nothing is written, and nothing is learned from it. */
import { isTopicName } from "../../message/validate.ts";
import type { Clock } from "../../platform/clock.ts";
import type { TopicStore } from "../../store/topics.ts";
import { cleanName, cleanText } from "../failures/clean-text.ts";
import { OUTSIDE_TOPIC, sinkName } from "../failures/incoming.ts";
import type { FailurePlaces } from "../failures/place-failures.ts";
import { mask } from "../fingerprint/mask.ts";
import type { Records } from "../records.ts";
import type { EvaluateAnswer, EvaluateRequest } from "../recovery.ts";
import type { EvaluateFailure } from "./evaluate-failure.ts";

export interface EvaluateRequestDeps {
  readonly recovery: Pick<Records, "groupOf">;
  readonly topics: Pick<TopicStore, "get">;
  readonly places: Pick<FailurePlaces, "look">;
  readonly evaluateFailure: EvaluateFailure;
  readonly clock: Clock;
}

export async function evaluateRequest(
  { recovery, topics, places, evaluateFailure, clock }: EvaluateRequestDeps,
  request: EvaluateRequest,
): Promise<EvaluateAnswer> {
  const startedMs = clock.monotonicMs();
  const errorMessage = cleanText(request.errorMessage ?? "");
  const stackTrace = request.stackTrace === undefined ? null : cleanText(request.stackTrace);
  const topic = cleanName(request.topic ?? "") || OUTSIDE_TOPIC;
  const ours = request.sink === undefined && isTopicName(topic) ? await topics.get(topic) : null;
  const failure = {
    topic,
    sink: ours === null ? mask(cleanName(request.sink ?? "")) : sinkName(ours),
    errorCode: cleanName(request.errorCode) || "unknown",
    errorMessage,
  };
  const { fingerprint, failureMatchId, template } = await places.look({
    ...failure,
    ...(stackTrace === null ? {} : { stackTrace }),
  });
  const supplied = request.failureMatchId?.toLowerCase();
  const known = supplied === undefined ? null : await recovery.groupOf({ failureMatchId: supplied });
  const group = known ?? (await recovery.groupOf({ fingerprint }));
  const occurrenceCount = request.occurrenceCount ?? (group === null ? 1 : group.occurrenceCount + 1);
  const { evaluation } = await evaluateFailure(
    { ...failure, stackTrace, skillId: request.skillId ?? null, occurrenceCount, httpStatus: request.httpStatus },
    group,
  );
  const durationMs = clock.monotonicMs() - startedMs;
  return {
    evaluation,
    fingerprint,
    failureMatchId: supplied ?? failureMatchId,
    template,
    groupId: group?.groupId ?? null,
    durationMs,
  };
}
