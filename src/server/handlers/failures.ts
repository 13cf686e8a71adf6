/** Failures of other services: counted once per idempotency key. Evaluate and suggest keep nothing. */
import { counted, failureEnvelope, failurePayload, NOTHING_SAID } from "../../contract/recovery/groups.ts";
import { FAILURE_PAYLOAD_BYTES } from "../../contract/route.ts";
import { type Cursor, eachMember, takeValue } from "../../message/json-scanner.ts";
import { LIMITS } from "../../message/limits.ts";
import { afterOthers } from "../../platform/after-others.ts";
import { headOf, READ_CHARS_MAX } from "../../recovery/failures/clean-text.ts";
import type { EvaluateRequest, FailureReport } from "../../recovery/recovery.ts";
import { json } from "../http.ts";
import { candidateJson, evaluateJson, groupJson } from "../json/recovery-json.ts";
import { wireOf } from "../json/wire.ts";
import { type Asked, readExact, refusalOf } from "../read-request.ts";
import type { Handler, RecoveryHandlers } from "./handlers.ts";
import { headerKey } from "./messages.ts";

export const FAILURES: RecoveryHandlers<"ingestFailure" | "evaluateFailure" | "suggestFailure"> = {
  async ingestFailure(recovery, asked, actor) {
    const key = headerKey(asked);
    await othersBefore(asked.body);
    const report = readFailure(asked.body, key);
    await othersBefore(asked.body);
    const answer = await recovery.ingest(report, actor);
    const isDuplicate = answer.status === "duplicate";
    const location = `/api/v1/recovery/candidates/${answer.candidateId}`;
    const said = wireOf(counted, { ...answer, isDuplicate, regression: answer.regression || undefined });
    return json(isDuplicate ? 200 : 201, said, { location });
  },
  evaluateFailure: async (recovery, { body }) => json(200, evaluateJson(await recovery.evaluate(askedFor(body)))),
  async suggestFailure(recovery, { body }) {
    const answer = await recovery.evaluate(askedFor(body));
    const { group, candidate = null } = answer.groupId === null ? {} : await recovery.group(answer.groupId);
    const suggested = group && candidate && candidateJson({ candidate, group });
    return json(200, { ...evaluateJson(answer), group: group ? groupJson(group) : null, candidate: suggested ?? null });
  },
};

/** Where both names of the seeds stand, the more exact one counts. */
function askedFor({ errorCode, errorType, errorMessage, raw, ...rest }: Asked<"evaluateFailure">["body"]): EvaluateRequest {
  return { ...rest, errorCode: errorCode ?? errorType ?? "", errorMessage: errorMessage ?? raw };
}

/** Decoding, reading and hashing megabytes take a while each: others go first in between, and so do other long texts. */
const LONG_CHARS = 262_144;
let othersFirst = Promise.resolve();

async function othersBefore(text: string): Promise<void> {
  if (text.length <= LONG_CHARS) return;
  othersFirst = othersFirst.then(() => new Promise<void>(afterOthers));
  await othersFirst;
}

export function counting(handler: Handler<"ingestFailure">): Handler<"ingestFailure"> {
  return async (request, kernel, health) => {
    const { mg, clock } = kernel;
    const startMs = clock.monotonicMs();
    const told = { status: "error" as "accepted" | "duplicate" | "error", queued: 0 };
    try {
      const reply = await handler(request, kernel, health);
      told.status = reply.status === 200 ? "duplicate" : "accepted";
      told.queued = reply.body.includes('"evaluation_queued":true') ? 1 : 0;
      return reply;
    } finally {
      const detection = told.status === "duplicate" ? "idempotency_key" : null;
      mg.events.emit({ type: "recovery_ingest", source: "api", ...told, count: 1, ms: clock.monotonicMs() - startMs, detection });
    }
  };
}

/** `headerKey`: what the Idempotency-Key header said, where the body has no key. */
export function readFailure(body: string, headerKey: string | null): FailureReport {
  const { value, text } = readExact(failureEnvelope, body, "failure_payload", "invalid_request", takePayload);
  const { failureMatchId, idempotencyKey = headerKey, enqueueEvaluation = true } = value;
  const { version = value.failurePayload.version, redriveTopic = value.failurePayload.redriveTopic } = value;
  const { topic = null, sink = null, skillId = null, tenantId = null, stackTrace = null, ...said } = value.failurePayload;
  const { errorType = "", errorCode = errorType, raw = "", errorMessage = raw } = said;
  if (Buffer.byteLength(text) > FAILURE_PAYLOAD_BYTES)
    throw refusalOf("invalid_request", "failure_payload", `may have at most ${FAILURE_PAYLOAD_BYTES} bytes`);
  if (errorCode === "" && errorMessage === "" && stackTrace === null)
    throw refusalOf("invalid_request", "failure_payload.error_type", NOTHING_SAID);
  return {
    ...{ failureMatchId: failureMatchId?.toLowerCase() ?? null, idempotencyKey, enqueueEvaluation, source: "api" },
    ...{ failurePayload: text, errorCode, errorMessage, stackTrace, topic, sink, skillId, tenantId, version, redriveTopic },
  };
}

const READ = new Set(Object.keys(failurePayload.shape));

/** Looks at each character once: what is not read is not decoded, and long texts no further than they count. */
function takePayload(cursor: Cursor): { text: string; value: unknown } {
  const start = cursor.at;
  const members = new Map<string, unknown>();
  const isObject = eachMember(cursor, (name) => {
    const source = takeValue(cursor, LIMITS.payloadDepthMax - 1);
    // All that is read are texts: what another value is does not matter.
    if (READ.has(name)) members.set(name, source[0] === '"' ? headOf(source, READ_CHARS_MAX) : source === "null" ? null : false);
  });
  if (!isObject) takeValue(cursor);
  const text = cursor.text.slice(start, cursor.at).trimStart();
  return { text, value: isObject ? Object.fromEntries(members) : text === "null" ? null : false };
}
