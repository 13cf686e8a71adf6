/** The addresses of topics. The same definition stands in the config file, under the topic's name. */
import { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { RATE_MAX, RATE_MIN } from "../message/rate.ts";
import { RETRY_POLICIES } from "../message/retry-policy.ts";
import { TOPIC_LIMITS } from "../message/validate-topic.ts";
import { hold } from "./messages.ts";
import { body, listsAll, okOrCreated, route, routes, shows, takes } from "./route.ts";
import * as v from "./values.ts";

/** Shown instead of a header's value that looks like a credential, and refused where a value is meant. */
export const REDACTED = "[redacted]";

const ORDERINGS = ["none", "key", "strict"] as const;
/** What a GET adds; allowed in a PUT and ignored, so that what was read can be sent back. */
const shownOnly = z.unknown().optional();
const shownHeader = "is the mark for a value that is not shown: send the value itself";
const header = z.string("must be a string").refine((value) => value !== REDACTED, shownHeader);
const strings = "must be a list of strings";

/** Which settings a kind takes and what they may be is the sink room's to say: checkSink has the last word. */
export const sink = v
  .object(
    {
      ...v.optionals({
        kind: v.text(),
        url: v.text(),
        timeout_ms: v.integer(1, LIMITS.leaseMsMax),
        headers: z.record(z.string(), header, "must be an object"),
        secrets: z.array(v.text(), strings).min(1, strings),
        on_unknown: v.text(),
        status_map: z.record(z.string(), z.unknown(), "must be an object"),
      }),
      secrets_set: shownOnly,
    },
    "is missing: an object with at least a kind",
  )
  .meta({ id: "SinkDefinition" });

export const retry = v
  .object(
    v.optionals({
      policy: v.oneOf([...RETRY_POLICIES.keys()]),
      attempts_max: v.integer(1, LIMITS.attemptsMax),
      ...v.fields(v.integer(1, LIMITS.delayMsMax), "base_ms", "max_ms"),
      // Also true and false, as other systems spell it.
      jitter: z
        .union([v.oneOf(["equal", "none"]), z.boolean()], "must be one of equal, none")
        .transform((jitter) => (typeof jitter === "string" ? jitter : jitter ? "equal" : "none")),
      table_ms: v.list(v.integer(0, LIMITS.delayMsMax), TOPIC_LIMITS.tableMax, `integers from 0 to ${LIMITS.delayMsMax}`),
    }),
  )
  .meta({ id: "RetryDefinition" });

export const topicDefinition = v
  .object({
    sink,
    ...v.optionals({
      fallback: sink,
      compensation: sink,
      retry,
      schema_version: v.integer(0, TOPIC_LIMITS.schemaVersionMax),
      lease_ms: v.integer(LIMITS.leaseMsMin, LIMITS.leaseMsMax),
      ...v.fields(v.integer(1, TOPIC_LIMITS.concurrencyMax), "concurrency", "tenant_concurrency", "concurrency_total"),
      ...v.fields(v.number(RATE_MIN, RATE_MAX), "rate_per_second", "tenant_rate_per_second"),
      ordering: v.oneOf(ORDERINGS),
      money_field: v.text(),
      paused: v.flag(),
    }),
    ...v.fields(shownOnly, "name", "source", "revision", "disabled_reason", "breaker", "held", "not_served_by"),
  })
  .meta({ id: "TopicDefinition" });

export const shownRetry = z.strictObject({
  policy: z.string(),
  attempts_max: z.int(),
  ...v.fields(z.number(), "base_ms", "max_ms"),
  jitter: z.enum(["equal", "none"]),
  table_ms: z.array(z.number()).readonly().nullable(),
});

export const shownSink = v.shape("Sink", {
  kind: z.string(),
  url: z.string().nullable(),
  timeout_ms: z.number(),
  headers: z.record(z.string(), z.string()),
  secrets_set: z.int().describe("how many secrets are set; they themselves are write-only"),
  on_unknown: z.enum(["retry", "hold"]),
  status_map: z.record(z.string(), z.string()).nullable(),
});

export const topic = v.shape("Topic", {
  name: z.string(),
  sink: shownSink,
  fallback: shownSink.nullable().describe("where recovery may bring its dead letters instead"),
  compensation: shownSink.nullable().describe("what undoes the effect of its dead letters"),
  retry: shownRetry,
  lease_ms: z.int(),
  ...v.integersOrNull("schema_version", "concurrency", "tenant_concurrency", "concurrency_total"),
  ...v.fields(z.number().nullable(), "rate_per_second", "tenant_rate_per_second"),
  ordering: z.enum(ORDERINGS),
  money_field: z.string().nullable().describe("which amount of the payload conservation sums"),
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
  not_served_by: z.array(hold.extend({ owner: z.string() })).describe("workers that would serve it and cannot: the first few"),
});

const DECLARE = "Declare a topic, or replace it as a whole";
const FORGET = "Forget a topic that has no unsettled message";

export const TOPIC_ROUTES = routes({
  listTopics: listsAll("Every topic and the state it is in", topic),
  getTopic: shows("One topic", topic),
  putTopic: takes("configure", DECLARE, okOrCreated(topic), body("topic", topicDefinition), "topic_read_only"),
  deleteTopic: route("configure", FORGET, null, { errors: ["topic_read_only", "topic_in_use"] }),
  pauseTopic: route("operate", "Stop attempts; messages are still accepted", topic),
  resumeTopic: route("operate", "Attempt again, also after a disabled sink", topic),
});
