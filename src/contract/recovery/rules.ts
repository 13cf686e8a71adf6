/**
 * The addresses of rules and of the catalogue of actions. An edit names the version it was made from. What a rule may say is the engine's
 * business (src/recovery/rules); its faults have the shape of all others.
 */
import { z } from "zod";
import { BODY_BYTES } from "../body-bytes.ts";
import { routes } from "../route.ts";
import * as v from "../values.ts";
import { action } from "./candidate-shapes.ts";

const ACTION_TYPES = ["retry", "fallback", "escalate", "notify", "reconfigure", "rollback", "manual", "skip"] as const;
const ACTOR = ["x-actor-type"] as const;
const HEADERS = ["if-match", ...ACTOR] as const;

const rule = z
  .strictObject({
    id: z.string(),
    version: z.int(),
    name: z.string(),
    priority: z.number(),
    enabled: z.boolean(),
    condition: z.record(z.string(), z.unknown()),
    action: z.string(),
    score: z.number(),
  })
  .meta({ id: "Rule" });

const edited = (schema: z.ZodType) => ({ schema, bytesMax: BODY_BYTES.rule, invalid: "invalid_request" }) as const;
const versionOnly = {
  schema: v.object({ version: v.ifVersion() }),
  bytesMax: BODY_BYTES.rule,
  invalid: "invalid_request",
  optional: true,
} as const;
/** Its members are judged by the engine, all at once. */
const document = z.looseObject({ version: v.optional(v.version()), id: v.optional(v.anyText()) }, "must be an object");

export const RULE_ROUTES = routes({
  listRules: {
    summary: "The rules, in the order in which they are asked",
    permission: "read",
    headers: ACTOR,
    query: v.object({}),
    answers: { 200: v.pageOf(rule) },
    errors: ["needs_postgres", "invalid_query"],
  },
  getRule: {
    summary: "One rule",
    permission: "read",
    headers: ACTOR,
    answers: { 200: rule },
    errors: ["needs_postgres", "rule_not_found"],
  },
  putRule: {
    summary: "Make a rule, or replace it",
    permission: "configure",
    headers: HEADERS,
    body: { ...edited(document), schema: document },
    answers: { 200: rule, 201: rule },
    errors: ["needs_postgres", "invalid_rule", "invalid_request", "version_conflict"],
  },
  deleteRule: {
    summary: "Delete a rule; its history stays",
    permission: "configure",
    headers: HEADERS,
    body: versionOnly,
    answers: { 204: null },
    errors: ["needs_postgres", "rule_not_found", "version_conflict", "invalid_request"],
  },
  getRuleHistory: {
    summary: "Every version of a rule, and who made it",
    permission: "read",
    headers: ACTOR,
    answers: {
      200: v.pageOf(z.strictObject({ version: z.int(), actor: z.string(), at: v.instant(), rule: z.unknown() })),
    },
    errors: ["needs_postgres", "rule_not_found"],
  },
  listActions: {
    summary: "The catalogue of actions, with what is known about each",
    permission: "read",
    headers: ACTOR,
    query: v.object({ action_type: v.optional(v.oneOf(ACTION_TYPES)) }),
    answers: { 200: v.pageOf(action) },
    errors: ["needs_postgres", "invalid_query"],
  },
  getAction: {
    summary: "One action",
    permission: "read",
    headers: ACTOR,
    answers: { 200: action },
    errors: ["needs_postgres", "action_not_found"],
  },
  putAction: {
    summary: "Change an action's settings",
    permission: "configure",
    headers: HEADERS,
    body: { ...edited(document), schema: document },
    answers: { 200: action },
    errors: ["needs_postgres", "action_not_found", "invalid_action", "invalid_request", "version_conflict"],
  },
});
