/**
 * The addresses of topics: declare, show, steer. The same definition stands in the config file, under the topic's name.
 */
import { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { RATE_MAX, RATE_MIN } from "../message/rate.ts";
import { RETRY_POLICIES } from "../message/retry-policy.ts";
import { TOPIC_LIMITS } from "../message/validate-topic.ts";
import { BODY_BYTES } from "./body-bytes.ts";
import { hold } from "./messages.ts";
import { routes } from "./route.ts";
import * as v from "./values.ts";

/** Shown instead of a header's value that looks like a credential, and refused where a value is meant. */
export const REDACTED = "[redacted]";

const ORDERINGS = ["none", "key", "strict"] as const;
/** What a GET adds; allowed in a PUT and ignored, so that what was read can be sent back. */
const shownOnly = z.unknown().optional();

/** Which settings a kind takes and what they may be is the sink room's to say: checkSink has the last word. */
export const sink = v
  .object(
    {
      kind: v.optional(v.text()),
      url: v.optional(v.text()),
      timeout_ms: v.optional(v.integer(1, LIMITS.leaseMsMax)),
      headers: v.optional(
        z.record(
          z.string(),
          z
            .string("must be a string")
            .refine((value) => value !== REDACTED, "is the mark for a value that is not shown: send the value itself"),
          "must be an object",
        ),
      ),
      secrets: v.optional(v.list(v.text(), null, "strings")),
      on_unknown: v.optional(v.text()),
      status_map: v.optional(z.record(z.string(), z.unknown(), "must be an object")),
      secrets_set: shownOnly,
    },
    { missing: "is missing: an object with at least a kind" },
  )
  .meta({ id: "SinkDefinition" });

const delayMs = () => v.integer(1, LIMITS.delayMsMax);

export const retry = v
  .object({
    policy: v.optional(v.oneOf([...RETRY_POLICIES.keys()])),
    attempts_max: v.optional(v.integer(1, LIMITS.attemptsMax)),
    base_ms: v.optional(delayMs()),
    max_ms: v.optional(delayMs()),
    // Also true and false, as other systems spell it.
    jitter: v.optional(z.union([v.oneOf(["equal", "none"]), z.boolean()], "must be one of equal, none")),
    table_ms: v.optional(v.list(v.integer(0, LIMITS.delayMsMax), 100, `integers from 0 to ${LIMITS.delayMsMax}`)),
  })
  .meta({ id: "RetryDefinition" });

const { concurrencyMax, schemaVersionMax } = TOPIC_LIMITS;

export const topicDefinition = v
  .object({
    sink,
    fallback: v.optional(sink),
    compensation: v.optional(sink),
    retry: v.optional(retry),
    schema_version: v.optional(v.integer(0, schemaVersionMax)),
    lease_ms: v.optional(v.integer(LIMITS.leaseMsMin, LIMITS.leaseMsMax)),
    concurrency: v.optional(v.integer(1, concurrencyMax)),
    tenant_concurrency: v.optional(v.integer(1, concurrencyMax)),
    concurrency_total: v.optional(v.integer(1, concurrencyMax)),
    rate_per_second: v.optional(v.number(RATE_MIN, RATE_MAX)),
    tenant_rate_per_second: v.optional(v.number(RATE_MIN, RATE_MAX)),
    ordering: v.optional(v.oneOf(ORDERINGS)),
    paused: v.optional(v.flag()),
    name: shownOnly,
    source: shownOnly,
    revision: shownOnly,
    disabled_reason: shownOnly,
    breaker: shownOnly,
    held: shownOnly,
    not_served_by: shownOnly,
  })
  .meta({ id: "TopicDefinition" });

const shownSink = z
  .strictObject({
    kind: z.string(),
    url: z.string().nullable(),
    timeout_ms: z.number(),
    headers: z.record(z.string(), z.string()),
    secrets_set: z.int().describe("how many secrets are set; they themselves are write-only"),
    on_unknown: z.enum(["retry", "hold"]),
    status_map: z.record(z.string(), z.string()).nullable(),
  })
  .meta({ id: "Sink" });

export const topic = z
  .strictObject({
    name: z.string(),
    sink: shownSink,
    fallback: shownSink.nullable().describe("where recovery may bring its dead letters instead"),
    compensation: shownSink.nullable().describe("what undoes the effect of its dead letters"),
    retry: z.strictObject({
      policy: z.string(),
      attempts_max: z.int(),
      base_ms: z.number(),
      max_ms: z.number(),
      jitter: z.enum(["equal", "none"]),
      table_ms: z.array(z.number()).readonly().nullable(),
    }),
    schema_version: z.int().nullable(),
    lease_ms: z.int(),
    concurrency: z.int().nullable(),
    tenant_concurrency: z.int().nullable(),
    rate_per_second: z.number().nullable().describe("over all workers"),
    tenant_rate_per_second: z.number().nullable(),
    concurrency_total: z.int().nullable(),
    ordering: z.enum(ORDERINGS),
    paused: z.boolean(),
    source: z.enum(["api", "file", "code"]),
    revision: z.int(),
    disabled_reason: z.string().nullable(),
    breaker: z.strictObject({
      state: z.enum(["closed", "open", "half_open"]),
      probe_in_ms: z.number(),
      trips: z.int(),
      reason: z.string().nullable(),
      tenants: z.array(z.strictObject({ tenant_id: z.string(), reason: z.string() })).describe("tenants that are held alone"),
    }),
    held: hold.nullable().describe("why nothing of it is attempted now; null: it is being delivered"),
    not_served_by: z
      .array(hold.extend({ owner: z.string() }))
      .describe("workers that would serve it and cannot, while others may: the first few"),
  })
  .meta({ id: "Topic" });

const GONE = ["topic_not_found", "topic_read_only"] as const;

export const TOPIC_ROUTES = routes({
  listTopics: {
    summary: "Every topic and the state it is in",
    permission: "read",
    query: v.object({}),
    answers: { 200: v.pageOf(topic) },
    errors: ["invalid_query"],
  },
  getTopic: { summary: "One topic", permission: "read", answers: { 200: topic }, errors: ["topic_not_found"] },
  putTopic: {
    summary: "Declare a topic, or replace it as a whole",
    permission: "configure",
    body: { schema: topicDefinition, bytesMax: BODY_BYTES.topic, invalid: "invalid_topic" },
    answers: { 200: topic, 201: topic },
    errors: ["invalid_topic", "topic_read_only"],
  },
  deleteTopic: {
    summary: "Forget a topic that has no unsettled message",
    permission: "configure",
    answers: { 204: null },
    errors: [...GONE, "topic_in_use"],
  },
  pauseTopic: {
    summary: "Stop attempts; messages are still accepted",
    permission: "operate",
    answers: { 200: topic },
    errors: ["topic_not_found"],
  },
  resumeTopic: {
    summary: "Attempt again, also after a disabled sink",
    permission: "operate",
    answers: { 200: topic },
    errors: ["topic_not_found"],
  },
});
