/**
 * A failure as another service reports it. The source text of `failure_payload` is cut out as it is, because it is what the ledger compares
 * and what is kept; a few members of it are read, the others are nobody's business here.
 */
import { BODY_BYTES } from "../../contract/body-bytes.ts";
import { failureEnvelope, NOTHING_SAID } from "../../contract/recovery/failures.ts";
import { LIMITS } from "../../message/limits.ts";
import { READ_CHARS_MAX } from "../../recovery/ingest/clean-text.ts";
import type { FailureReport } from "../../recovery/recovery.ts";
import { type Cursor, eachMember, takeValue } from "../payload-scanner.ts";
import { Refusal } from "../problem.ts";
import { readExact } from "../read-exact.ts";
import { refusal } from "../read-request.ts";
import { headOf } from "./text-head.ts";

/** `headerKey`: what the Idempotency-Key header said, where the body has no key. */
export function readFailure(body: string, headerKey: string | null): FailureReport {
  const { value, text } = readExact(failureEnvelope, body, "failure_payload", "invalid_request", takePayload);
  const { failure_payload: payload } = value;
  if (Buffer.byteLength(text) > BODY_BYTES.failurePayload) {
    throw refuse("failure_payload", `may have at most ${BODY_BYTES.failurePayload} bytes`);
  }
  const { error_code, error_type, error_message, raw, stack_trace } = payload;
  if ([error_code, error_type, error_message, raw, stack_trace].every((given) => given === undefined)) {
    throw refuse("failure_payload.error_type", NOTHING_SAID);
  }
  return {
    failureMatchId: value.failure_match_id?.toLowerCase() ?? null,
    idempotencyKey: value.idempotency_key ?? headerKey,
    enqueueEvaluation: value.enqueue_evaluation ?? true,
    source: "api",
    failurePayload: text,
    errorCode: error_code ?? error_type ?? "",
    errorMessage: error_message ?? raw ?? "",
    stackTrace: stack_trace ?? null,
    topic: payload.topic ?? null,
    sink: payload.sink ?? null,
    skillId: payload.skill_id ?? null,
    tenantId: payload.tenant_id ?? null,
  };
}

const refuse = (field: string, detail: string): Refusal =>
  new Refusal(refusal("invalid_request", { named: [{ field, detail }], more: 0 }));

const READ = new Set("error_code error_type error_message raw stack_trace topic sink skill_id tenant_id".split(" "));

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
