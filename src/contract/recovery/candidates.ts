/**
 * The addresses of candidates: look, change, decide, execute; and of the rules and the catalogue of actions that they come from. A change may insist on
 * the version that was read. What a rule may say is the engine's business (src/recovery/rules); its faults have the shape of all others.
 */
import { z } from "zod";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../recovery/candidates/candidate-state.ts";
import type { ProblemCode } from "../problem-codes.ts";
import { type Body, body, lists, listsAll, okOrCreated, optionalBody, type Permission, route, routes, shows } from "../route.ts";
import * as v from "../values.ts";
import { afterRepair, confirm, redrivePlan } from "./redrives.ts";
import { action, candidate, candidateDetail } from "./shapes.ts";

/** A change of one candidate, under the version that was read. */
const changes = <S extends z.ZodType>(permission: Permission, summary: string, body: Body<S>, ...errors: ProblemCode[]) =>
  route(permission, summary, candidateDetail, { body, errors: ["wrong_state", "action_refused", ...errors] });

const decision = optionalBody("recovery", v.object(v.versioned()));
const decided = (summary: string) => changes("decide", summary, decision, "approval_needed");

const update = v
  .object({
    ...v.versioned(),
    execution_status: v.optional(v.oneOf(EXECUTION_STATUSES)),
    selected_action: v.optional(v.line()),
    // Null clears it.
    owner: v.line().nullish(),
    note: v.note().nullish(),
  })
  .refine(({ version: _, reason: __, ...change }) => Object.values(change).some((value) => value !== undefined), {
    error: "nothing to change: execution_status, selected_action, owner or note",
  });
const seen = v.optional(v.text().describe("only what was seen: blast_radius.seen"));
const redrive = v.object({ ...redrivePlan, confirm: confirm(), seen });
const named = v.object({ ...v.versioned(), candidate_id: v.numberId(), decision: v.optional(v.oneOf(["approved", "rejected"])) });
const NOT_EXECUTED = ["approval_needed", "over_budget", "confirmation_needed", "nothing_selected", "nobody_delivers"] as const;

export const CANDIDATE_ROUTES = routes({
  listCandidates: lists("What is suggested for each group, newest first, the latest of each", candidate, {
    group_id: v.numberId(),
    decision: v.oneOf(DECISIONS),
    evaluation_status: v.oneOf(EVALUATION_STATUSES),
    execution_status: v.oneOf(EXECUTION_STATUSES),
    action: v.text(),
    all: v.flag().describe("those of earlier rounds, too"),
  }),
  getCandidate: shows("One candidate with its reasons and what an execution would touch", candidateDetail, {
    query: v.object({ include_provenance: v.optional(v.flag().describe("everything that was done to it, too")) }),
  }),
  updateCandidate: changes(
    "operate",
    "Choose another action, an owner or a note; end an execution whose outcome is unknown",
    body("recovery", update),
    "action_not_found",
  ),
  // What was suggested stays on record; to delete it is to reject it.
  deleteCandidate: decided("Reject a candidate"),
  approveCandidate: decided("Agree to what is suggested, under one's own name; two people are two tokens"),
  rejectCandidate: decided("Decline what is suggested; it rests for a day, or until a person asks"),
  executeCandidate: changes(
    "decide",
    "Carry the action out, under a fence, on exactly what was seen",
    optionalBody(
      "recovery",
      v.object({ ...v.versioned(), redrive: v.optional(redrive), after_repair: v.optional(afterRepair()) }),
    ),
    ...NOT_EXECUTED,
  ),
  approve: changes(
    "decide",
    "Approve or reject the candidate that the body names",
    body("recovery", named),
    "candidate_not_found",
    "approval_needed",
  ),
});

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
  deleteRule: route("configure", "Delete a rule; its history stays", null, { body: versionOnly }),
  getRuleHistory: shows("Every version of a rule, and who made it", v.pageOf(pastVersion)),
  listActions: shows("The catalogue of actions, with what is known about each", v.pageOf(action), {
    query: v.object({ action_type: v.optional(v.oneOf(ACTION_TYPES)) }),
  }),
  getAction: shows("One action", action),
  putAction: route("configure", "Change an action's settings", action, {
    body: edit,
    errors: ["action_not_found", "invalid_action"],
  }),
});
