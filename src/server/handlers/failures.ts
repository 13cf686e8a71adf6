/**
 * POST ingest, evaluate and suggest. Ingest counts a failure once per idempotency key: 201 it was counted, 200 this key was counted
 * before, 422 this key belongs to another payload. Evaluate and suggest keep nothing.
 */

import { counted, type FAILURE_ROUTES, failureEnvelope, failurePayload, NOTHING_SAID } from "../../contract/recovery/failures.ts";
import { FAILURE_PAYLOAD_BYTES } from "../../contract/route.ts";
import { type Cursor, eachMember, takeValue } from "../../message/json-scanner.ts";
import { LIMITS } from "../../message/limits.ts";
import { afterOthers } from "../../platform/after-others.ts";
import { READ_CHARS_MAX } from "../../recovery/ingest/clean-text.ts";
import { headOf } from "../../recovery/ingest/text-head.ts";
import type { EvaluateRequest, FailureReport } from "../../recovery/recovery.ts";
import { json } from "../http.ts";
import { candidateJson, evaluateJson, groupJson } from "../json/recovery-json.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { readExact } from "../read-exact.ts";
import { type Asked, refusalOf } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";
import { headerKey } from "./messages.ts";
import { recoveryHandlers } from "./recovery-request.ts";

export function failureHandlers(kernel: Kernel): Handlers<keyof typeof FAILURE_ROUTES> {
  const handlers = recoveryHandlers<keyof typeof FAILURE_ROUTES>(kernel, {
    async ingestFailure(recovery, asked, actor) {
      const key = headerKey(asked);
      await othersBefore(asked.body);
      const report = readFailure(asked.body, key);
      await othersBefore(asked.body);
      const answer = await recovery.ingest(report, actor);
      const isDuplicate = answer.status === "duplicate";
      const location = `/api/v1/recovery/candidates/${answer.candidateId}`;
      return json(isDuplicate ? 200 : 201, wireOf(counted, answer, { is_duplicate: isDuplicate }), { location });
    },
    evaluateFailure: async (recovery, { body }) => json(200, evaluateJson(await recovery.evaluate(askedFor(body)))),
    async suggestFailure(recovery, { body }) {
      const answer = await recovery.evaluate(askedFor(body));
      const known = answer.groupId === null ? null : await recovery.group(answer.groupId);
      const group = known && groupJson(known.group);
      const candidate = known?.candidate ? candidateJson(known.candidate, known.group) : null;
      return json(200, { ...evaluateJson(answer), group, candidate });
    },
  });
  return { ...handlers, ingestFailure: told(kernel, handlers.ingestFailure) };
}

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

/** Each request is counted, by what came of it. */
function told({ mg, clock }: Kernel, handler: Handler<"ingestFailure">): Handler<"ingestFailure"> {
  return async (request) => {
    const startMs = clock.monotonicMs();
    const tell = (status: "accepted" | "duplicate" | "error", queued: number): void => {
      const detection = status === "duplicate" ? "idempotency_key" : null;
      const ms = clock.monotonicMs() - startMs;
      mg.events.emit({ type: "recovery_ingest", source: "api", status, count: 1, queued, ms, detection });
    };
    try {
      const reply = await handler(request);
      if (reply.status >= 400) tell("error", 0);
      else tell(reply.status === 200 ? "duplicate" : "accepted", reply.body.includes('"evaluation_queued":true') ? 1 : 0);
      return reply;
    } catch (error) {
      tell("error", 0);
      throw error;
    }
  };
}

/** `headerKey`: what the Idempotency-Key header said, where the body has no key. */
export function readFailure(body: string, headerKey: string | null): FailureReport {
  const { value, text } = readExact(failureEnvelope, body, "failure_payload", "invalid_request", takePayload);
  const { errorCode, errorType, errorMessage, raw, stackTrace, topic, sink, skillId, tenantId } = value.failurePayload;
  if (Buffer.byteLength(text) > FAILURE_PAYLOAD_BYTES)
    throw refusalOf("invalid_request", "failure_payload", `may have at most ${FAILURE_PAYLOAD_BYTES} bytes`);
  if ([errorCode, errorType, errorMessage, raw, stackTrace].every((given) => given === undefined))
    throw refusalOf("invalid_request", "failure_payload.error_type", NOTHING_SAID);
  return {
    failureMatchId: value.failureMatchId?.toLowerCase() ?? null,
    idempotencyKey: value.idempotencyKey ?? headerKey,
    enqueueEvaluation: value.enqueueEvaluation ?? true,
    source: "api",
    failurePayload: text,
    errorCode: errorCode ?? errorType ?? "",
    errorMessage: errorMessage ?? raw ?? "",
    stackTrace: stackTrace ?? null,
    topic: topic ?? null,
    sink: sink ?? null,
    skillId: skillId ?? null,
    tenantId: tenantId ?? null,
  };
}

const READ = new Set(Object.keys(failurePayload.shape));

/** Looks at each character once: what is not read is not decoded, and long texts no further than they count. */
function takePayload(cursor: Cursor): { text: string; value: unknown } {
  const start = cursor.at;
  const members = new Map<string, unknown>();
  const isObject = eachMember(cursor, (name) => {
    const source = takeValue(cursor, LIMITS.payloadDepthMax - 1);
    if (READ.has(name)) members.set(name, readValue(source));
  });
  if (!isObject) takeValue(cursor);
  const text = cursor.text.slice(start, cursor.at).trimStart();
  return { text, value: isObject ? Object.fromEntries(members) : text === "null" ? null : false };
}

/** All that is read are texts: what another value is does not matter. */
function readValue(source: string): unknown {
  if (source[0] === '"') return headOf(source, READ_CHARS_MAX);
  return source === "null" ? null : false;
}
