/**
 * A failure as another service reports it (REC-22). The source text of `failure_payload` is cut out as it is, because it is what the
 * ledger compares and what is kept; a few members of it are read, the others are nobody's business here.
 */
import { LIMITS } from "../../../message/limits.ts";
import { READ_CHARS_MAX } from "../../../recovery/ingest/clean-text.ts";
import type { EvaluateRequest, FailureReport } from "../../../recovery/recovery.ts";
import { BODY_BYTES } from "../../body.ts";
import { keyFault } from "../../contract/contract-message.ts";
import { type FieldFault, type Fields, readFields } from "../../contract/fields.ts";
import { type Cursor, cursorOn, eachMember, expectEnd, takeValue } from "../../contract/payload-scanner.ts";
import { nameOf } from "./body.ts";
import { headOf } from "./text-head.ts";

export type FailureRead =
  | { readonly ok: true; readonly report: FailureReport }
  | { readonly ok: false; readonly faults: readonly FieldFault[] };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const ENVELOPE = new Set(["failure_match_id", "failure_payload", "idempotency_key", "enqueue_evaluation"]);
const OCCURRENCES_MAX = 1_000_000_000;

/** `headerKey`: what the Idempotency-Key header said, where the body has no key. */
export function readFailure(text: string, headerKey: string | null): FailureRead {
  const faults: FieldFault[] = [];
  const fault = (field: string, detail: string): void => void faults.push({ field, detail });
  const members = new Map<string, unknown>();
  let payload: Payload | null = null;
  const cursor = cursorOn(text, "invalid_request");
  const isObject = eachMember(cursor, (name) => {
    if (members.has(name)) fault(name.slice(0, 100), "is given twice");
    members.set(name, null);
    if (name === "failure_payload") {
      payload = takePayload(cursor);
      return;
    }
    const value = takeValue(cursor);
    if (ENVELOPE.has(name)) members.set(name, JSON.parse(value));
    else fault(name.slice(0, 100), "unknown field");
  });
  if (!isObject) takeValue(cursor);
  expectEnd(cursor);
  if (!isObject) return { ok: false, faults: [{ field: ".", detail: "must be an object" }] };
  const envelope = {
    failureMatchId: matchIdOf(members.get("failure_match_id"), fault),
    idempotencyKey: keyOf(members.get("idempotency_key"), fault) ?? headerKey,
    enqueueEvaluation: members.get("enqueue_evaluation") ?? true,
  };
  if (typeof envelope.enqueueEvaluation !== "boolean") fault("enqueue_evaluation", "must be true or false");
  const given = payload as Payload | null;
  const failure = failureIn(given, faults);
  if (faults.length > 0 || failure === null || given === null) return { ok: false, faults };
  const enqueueEvaluation = envelope.enqueueEvaluation === true;
  return { ok: true, report: { ...envelope, ...failure, enqueueEvaluation, source: "api", payload: given.source } };
}

interface Payload {
  readonly source: string;
  /** The members that are read, long texts no further than they count; null: it is no object. */
  readonly members: ReadonlyMap<string, unknown> | null;
}

const READ = new Set("error_code error_type error_message raw stack_trace topic sink skill_id tenant_id".split(" "));

/** Looks at each character once: what is not read is not decoded. */
function takePayload(cursor: Cursor): Payload {
  const start = cursor.at;
  const members = new Map<string, unknown>();
  const isObject = eachMember(cursor, (name) => {
    const source = takeValue(cursor, LIMITS.payloadDepthMax - 1);
    if (READ.has(name)) members.set(name, readValue(source));
  });
  if (!isObject) takeValue(cursor);
  return { source: cursor.text.slice(start, cursor.at).trimStart(), members: isObject ? members : null };
}

/** All that is read are texts: what another value is does not matter. */
function readValue(source: string): unknown {
  if (source[0] === '"') return headOf(source, READ_CHARS_MAX);
  return source === "null" ? null : false;
}

type Failure = Pick<FailureReport, "topic" | "sink" | "code" | "text" | "stack" | "skill" | "tenantId">;

function failureIn(payload: Payload | null, faults: FieldFault[]): Failure | null {
  if (payload === null) {
    faults.push({ field: "failure_payload", detail: "is missing: an object with error_type and raw" });
    return null;
  }
  if (Buffer.byteLength(payload.source) > BODY_BYTES.failurePayload) {
    faults.push({ field: "failure_payload", detail: `may have at most ${BODY_BYTES.failurePayload} bytes` });
    return null;
  }
  const fields = readFields(payload.members && Object.fromEntries(payload.members), "failure_payload", faults);
  if (fields === undefined) return null;
  const { code, message, stack } = errorIn(fields);
  return {
    code: code ?? "",
    text: message ?? "",
    stack: stack ?? null,
    topic: nameOf(fields, "topic") ?? null,
    sink: nameOf(fields, "sink") ?? null,
    skill: nameOf(fields, "skill_id") ?? null,
    tenantId: nameOf(fields, "tenant_id") ?? null,
  };
}

/** POST /evaluate and /suggest: the same members, at the top. */
export function readEvaluate(fields: Fields): EvaluateRequest {
  const { code, message, stack } = errorIn(fields);
  return {
    code: code ?? "",
    message,
    stack,
    topic: nameOf(fields, "topic"),
    sink: nameOf(fields, "sink"),
    skill: nameOf(fields, "skill_id"),
    occurrences: fields.integer("occurrence_count", 1, OCCURRENCES_MAX),
  };
}

/** The seeds have two names for each; where both stand, the more exact one counts. */
function errorIn(fields: Fields): { code: string | undefined; message: string | undefined; stack: string | undefined } {
  const [errorCode, errorType] = [loose(fields, "error_code"), loose(fields, "error_type")];
  const [raw, errorMessage] = [loose(fields, "raw"), loose(fields, "error_message")];
  const stack = loose(fields, "stack_trace");
  const code = errorCode ?? errorType;
  const message = errorMessage ?? raw;
  const given = ["error_code", "error_type", "error_message", "raw", "stack_trace"].some((name) => fields.has(name));
  if (!given) fields.fault("error_type", "is missing: error_type or error_code, and what was said in raw or error_message");
  return { code, message, stack };
}

/** Any text, empty included: who reports a failure can rarely choose its words. */
function loose(fields: Fields, name: string): string | undefined {
  const value = fields.raw(name);
  if (value === undefined || typeof value === "string") return value === "" ? undefined : value;
  fields.fault(name, "must be a string");
  return undefined;
}

function matchIdOf(value: unknown, fault: (field: string, detail: string) => void): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && UUID.test(value)) return value.toLowerCase();
  fault("failure_match_id", "must be a UUID; absent: it is made from the fingerprint");
  return null;
}

function keyOf(value: unknown, fault: (field: string, detail: string) => void): string | null {
  if (value === undefined || value === null) return null;
  const wrong = keyFault(value);
  if (wrong === null) return value as string;
  fault("idempotency_key", wrong.detail.replace("`key` ", ""));
  return null;
}
