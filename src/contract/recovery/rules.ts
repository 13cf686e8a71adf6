/**
 * The addresses of rules and of the catalogue of actions. An edit names the version it was made from. What a rule may say is the engine's
 * business (src/recovery/rules); its faults have the shape of all others.
 */
import { z } from "zod";
import { body, listsAll, NOTHING, ok, okOrCreated, optionalBody, route, routes, shows } from "../route.ts";
import * as v from "../values.ts";
import { action } from "./shapes.ts";

const ACTION_TYPES = ["retry", "fallback", "escalate", "notify", "reconfigure", "rollback", "manual", "skip"] as const;

const rule = v.shape("Rule", {
  ...v.texts("id", "name", "action"),
  version: z.int(),
  ...v.fields(z.number(), "priority", "score"),
  enabled: z.boolean(),
  condition: z.record(z.string(), z.unknown()),
});

/** Its members are judged by the engine, all at once. */
const document = z.looseObject({ version: v.optional(v.version()), id: v.optional(v.anyText()) }, "must be an object");
const edit = body("rule", document);
const versionOnly = optionalBody("rule", v.object({ version: v.ifVersion() }));
const pastVersion = z.strictObject({ version: z.int(), actor: z.string(), at: v.instant(), rule: z.unknown() });

export const RULE_ROUTES = routes({
  listRules: listsAll("The rules, in the order in which they are asked", rule),
  getRule: shows("One rule", rule),
  putRule: route("configure", "Make a rule, or replace it", okOrCreated(rule), { body: edit, errors: ["invalid_rule"] }),
  deleteRule: route("configure", "Delete a rule; its history stays", NOTHING, { body: versionOnly }),
  getRuleHistory: shows("Every version of a rule, and who made it", v.pageOf(pastVersion)),
  listActions: shows("The catalogue of actions, with what is known about each", v.pageOf(action), {
    query: v.object({ action_type: v.optional(v.oneOf(ACTION_TYPES)) }),
  }),
  getAction: shows("One action", action),
  putAction: route("configure", "Change an action's settings", ok(action), {
    body: edit,
    errors: ["action_not_found", "invalid_action"],
  }),
});
