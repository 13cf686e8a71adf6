/**
 * A failure as another service reports it. The source text of `failure_payload` is cut out as it is, because it is what the ledger compares
 * and what is kept; a few members of it are read, the others are nobody's business here.
 */
import { FAILURE_PAYLOAD_BYTES } from "../../contract/bodies.ts";
import { failureEnvelope, failurePayload, NOTHING_SAID } from "../../contract/recovery/failures.ts";
import { type Cursor, eachMember, takeValue } from "../../message/json-scanner.ts";
import { LIMITS } from "../../message/limits.ts";
import { READ_CHARS_MAX } from "../../recovery/ingest/clean-text.ts";
import { headOf } from "../../recovery/ingest/text-head.ts";
import type { FailureReport } from "../../recovery/recovery.ts";
import { readExact } from "../read-exact.ts";
import { refusalOf } from "../read-request.ts";

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
