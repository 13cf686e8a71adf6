/**
 * The addresses where failures of other services come in, and where one asks what would help: ingest counts a failure once per key,
 * evaluate and suggest keep nothing.
 */
import { z } from "zod";
import { LIMITS } from "../../message/limits.ts";
import { body, exactBody, okOrCreated, route, routes, shows } from "../route.ts";
import * as v from "../values.ts";
import { candidate, evaluation, group } from "./shapes.ts";

const OCCURRENCES_MAX = 1_000_000_000;

/** Any text, the empty one too: who reports a failure can rarely choose its words. The seeds have two names for code and message. */
const loose = v.anyText().transform((value) => (value === "" ? undefined : value));
const said = v.optionals({ error_code: loose, error_type: loose, error_message: loose, raw: loose, stack_trace: loose });
const where = { topic: v.line(), sink: v.line(), skill_id: v.line() };

const GIVEN = Object.keys(said) as (keyof typeof said)[];
export const NOTHING_SAID = "is missing: error_type or error_code, and what was said in raw or error_message";

const failure = v
  .object({ ...said, ...v.optionals({ ...where, occurrence_count: v.integer(1, OCCURRENCES_MAX) }) })
  .refine((given) => GIVEN.some((name) => given[name] !== undefined), { error: NOTHING_SAID, path: ["error_type"] })
  .meta({ id: "Failure" });

/** What of a reported failure is read; the rest is kept as it came. */
export const failurePayload = z.looseObject({ ...said, ...v.optionals({ ...where, tenant_id: v.line() }) });

const matchId = v.anyText().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, {
  error: "must be a UUID; absent: it is made from the fingerprint",
});
const { keyBytesMax } = LIMITS;

export const failureEnvelope = v
  .object({
    failure_payload: failurePayload,
    ...v.optionals({ failure_match_id: matchId, idempotency_key: v.keyText(keyBytesMax), enqueue_evaluation: v.flag() }),
  })
  .meta({ id: "FailureReport" });

export const counted = v.shape("Counted", {
  ...v.integers("candidate_id", "group_id", "occurrence_count"),
  ...v.texts("failure_match_id", "status"),
  ...v.fields(z.boolean(), "is_duplicate", "evaluation_queued"),
});

const evaluated = evaluation.extend({
  ...v.texts("fingerprint", "failure_match_id", "template"),
  group_id: z.int().nullable(),
  duration_ms: z.number(),
});

const suggested = evaluated.extend({ group: group.nullable(), candidate: candidate.nullable() }).meta({ id: "Suggested" });
const asked = { body: body("failure", failure) };

export const FAILURE_ROUTES = routes({
  ingestFailure: route("accept", "Count a failure of another service, once per idempotency key", okOrCreated(counted), {
    headers: ["idempotency-key"],
    body: exactBody("failure", failureEnvelope),
    errors: ["key_conflict"],
  }),
  evaluateFailure: shows("What the rules say about such a failure; nothing is kept", evaluated.meta({ id: "Evaluated" }), asked),
  suggestFailure: shows("The same, with what is known of the group that it would join", suggested, asked),
});
