/**
 * The addresses where failures of other services come in, and where one asks what would help: ingest counts a failure once per key,
 * evaluate and suggest keep nothing.
 */
import { z } from "zod";
import { LIMITS } from "../../message/limits.ts";
import { BODY_BYTES } from "../body-bytes.ts";
import { routes } from "../route.ts";
import * as v from "../values.ts";
import { candidate, evaluation } from "./candidate-shapes.ts";
import { group } from "./group-shapes.ts";

const OCCURRENCES_MAX = 1_000_000_000;

/** Any text, the empty one too: who reports a failure can rarely choose its words. The seeds have two names for code and message. */
const loose = () => v.optional(v.anyText().transform((value) => (value === "" ? undefined : value)));
const said = {
  error_code: loose(),
  error_type: loose(),
  error_message: loose(),
  raw: loose(),
  stack_trace: loose(),
};

const GIVEN = Object.keys(said);
export const NOTHING_SAID = "is missing: error_type or error_code, and what was said in raw or error_message";

const failure = v
  .object({
    ...said,
    topic: v.optional(v.line()),
    sink: v.optional(v.line()),
    skill_id: v.optional(v.line()),
    occurrence_count: v.optional(v.integer(1, OCCURRENCES_MAX)),
  })
  .check((context) => {
    const given = context.value as Readonly<Record<string, unknown>>;
    if (GIVEN.some((name) => given[name] !== undefined)) return;
    context.issues.push({ code: "custom", message: NOTHING_SAID, path: ["error_type"], input: given });
  })
  .meta({ id: "Failure" });

/** What of a reported failure is read; the rest is kept as it came. */
export const failurePayload = z.looseObject({
  ...said,
  topic: v.optional(v.line()),
  sink: v.optional(v.line()),
  skill_id: v.optional(v.line()),
  tenant_id: v.optional(v.line()),
});

export const failureEnvelope = v
  .object({
    failure_match_id: v.optional(
      v.anyText().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, {
        error: "must be a UUID; absent: it is made from the fingerprint",
      }),
    ),
    failure_payload: failurePayload,
    idempotency_key: v.optional(v.keyText(LIMITS.keyBytesMax)),
    enqueue_evaluation: v.optional(v.flag()),
  })
  .meta({ id: "FailureReport" });

export const counted = z
  .strictObject({
    candidate_id: z.int(),
    group_id: z.int(),
    failure_match_id: z.string(),
    status: z.string(),
    is_duplicate: z.boolean(),
    occurrence_count: z.int(),
    evaluation_queued: z.boolean(),
  })
  .meta({ id: "Counted" });

const evaluated = evaluation.extend({
  fingerprint: z.string(),
  failure_match_id: z.string(),
  template: z.string(),
  group_id: z.int().nullable(),
  duration_ms: z.number(),
});

const asked = { schema: failure, bytesMax: BODY_BYTES.failure, invalid: "invalid_request" } as const;

export const FAILURE_ROUTES = routes({
  ingestFailure: {
    summary: "Count a failure of another service, once per idempotency key",
    permission: "accept",
    headers: ["idempotency-key", "x-actor-type"],
    body: { schema: failureEnvelope, bytesMax: BODY_BYTES.failure, invalid: "invalid_request", exact: true },
    answers: { 200: counted, 201: counted },
    errors: ["invalid_request", "key_conflict", "needs_postgres"],
  },
  evaluateFailure: {
    summary: "What the rules say about such a failure; nothing is kept",
    permission: "read",
    headers: ["x-actor-type"],
    body: asked,
    answers: { 200: evaluated.meta({ id: "Evaluated" }) },
    errors: ["invalid_request", "needs_postgres"],
  },
  suggestFailure: {
    summary: "The same, with what is known of the group that it would join",
    permission: "read",
    headers: ["x-actor-type"],
    body: asked,
    answers: { 200: evaluated.extend({ group: group.nullable(), candidate: candidate.nullable() }).meta({ id: "Suggested" }) },
    errors: ["invalid_request", "needs_postgres"],
  },
});
