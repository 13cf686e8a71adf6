/** The addresses of candidates, and of the rules, causes and actions that they come from; the engine judges what a rule says. */
import { z } from "zod";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../recovery/candidates/candidate-state.ts";
import { CLAIM_LEASE_MS } from "../../recovery/candidates/claim.ts";
import { REPORTS_MAX } from "../../recovery/candidates/execution-plan.ts";
import { CAUSES } from "../../recovery/causes/cause.ts";
import type { Body, Permission, ProblemCode } from "../route.ts";
import { body, lists, listsAll, okOrCreated, routes, shows, takes } from "../route.ts";
import * as v from "../values.ts";
import { asked, inOrder, matchedBy } from "./groups.ts";
import { afterRepair, confirm, redrivePlan } from "./redrives.ts";
import { action, candidate, candidateDetail, supposed, texts } from "./shapes.ts";

const changes = <S extends z.ZodType>(permission: Permission, summary: string, body: Body<S>, ...errors: ProblemCode[]) =>
  takes(permission, summary, candidateDetail, body, "wrong_state", "action_refused", ...errors);
const decided = (summary: string) => changes("decide", summary, asked(v.versioned()), "approval_needed");

const update = v
  .object({
    ...v.versioned(),
    ...v.optionals({ execution_status: v.oneOf(EXECUTION_STATUSES), selected_action: v.line() }),
    // Null clears it.
    owner: v.line().nullish(),
    note: v.note().nullish(),
  })
  .refine(({ version: _, reason: __, ...change }) => Object.values(change).some((value) => value !== undefined), {
    error: "nothing to change: execution_status, selected_action, owner or note",
  });
const seen = v.optional(v.text().describe("only what was seen: blast_radius.seen"));
const redrive = v.object({ ...redrivePlan, confirm: confirm(), seen });
const execution = asked({ ...v.versioned(), ...v.optionals({ redrive, after_repair: afterRepair() }) });
const { min, max } = CLAIM_LEASE_MS;
const lease_ms = v.integer(min, max).describe("how long nobody else has it; then its outcome is unknown");
const claim = asked({ ...v.versioned(), ...v.optionals({ lease_ms, execution_id: v.uuid() }) });
const touched = v.fields(v.integer(0, REPORTS_MAX), "healed", "failed");
const outcome = asked({ execution_id: v.uuid(), ...touched, note: v.optional(v.note()) });
const named = asked({ ...v.versioned(), candidate_id: v.numberId(), decision: v.optional(v.oneOf(["approved", "rejected"])) });
const NOT_EXECUTED = ["approval_needed", "over_budget", "confirmation_needed", "nothing_selected", "nobody_delivers"] as const;
const UPDATE = "Choose another action, an owner or a note; end an execution whose outcome is unknown";
const CLAIM = "Carry the action out oneself, for failures that one reported: a lease; again with its execution id: a longer one";
const NAMED = "Approve or reject the candidate that the body names";
const REPORT = "What became of an execution that was claimed; refused after its lease, or when it was replaced";

/** One look takes a few reads for each group. */
export const GROUPS_LOOKED_AT_MAX = 2_000;
const RULES_TRIED_MAX = 100;
const ACTION_TYPES = ["retry", "fallback", "escalate", "notify", "reconfigure", "rollback", "manual", "skip"] as const;

const rule = v.shape("Rule", {
  ...v.texts("id", "name", "action"),
  version: z.int(),
  ...v.fields(z.number(), "priority", "score"),
  enabled: z.boolean(),
  condition: z.record(z.string(), z.unknown()),
});

const signature = v.shape("CauseSignature", {
  id: z.string(),
  version: z.int(),
  enabled: z.boolean(),
  cause: z.enum(CAUSES),
  detail: z.string().optional().describe("which kind of the cause, where the remedy differs"),
  certainty: z.number(),
  says: z.string().describe("what it means when it fits"),
  codes: texts.optional(),
  words: texts.optional().describe("RE2 on the words of the text"),
  status: z.array(z.int()).readonly().optional(),
});

/** Its members are judged by the engine, all at once. */
const document = z.looseObject({ version: v.optional(v.version()), id: v.optional(v.anyText()) }, "must be an object");
const edit = { ...body("rule", document), optional: false };
const trial = v.object({
  rules: v.list(document, RULES_TRIED_MAX, "rules"),
  ...v.optionals({
    days: v.integer(1, 365).describe("groups that failed in the last so many days; 7"),
    limit: v.integer(1, GROUPS_LOOKED_AT_MAX).describe("how many groups are looked at, at most"),
    cursor: v.text().describe("where the look before ended"),
  }),
});
const other = z.strictObject({
  group_id: z.int(),
  ...v.texts("topic", "error_code", "template"),
  ...v.integers("occurrence_count", "open_messages"),
  last_at: v.instant(),
  ...v.fields(supposed.nullable(), "before", "after"),
});
export const whatIf = v.shape("WhatIf", {
  days: z.int(),
  groups: z.int().describe("how many were looked at"),
  ...v.integers("changed", "open_messages"),
  cut_off: z.boolean().describe("there are more groups than were looked at: go on with next_cursor"),
  next_cursor: z.string().nullable(),
  data: z.array(other).describe("those that would have got another suggestion, the latest failure first"),
});

const versionOnly = body("rule", v.object({ version: v.ifVersion() }));
const pastVersion = z.strictObject({ version: z.int(), actor: z.string(), at: v.instant(), rule: z.unknown() });
const WHAT_IF = "Which groups would have got another suggestion by these rules, and how that ended before; nothing is kept";

export const CANDIDATE_ROUTES = routes({
  listCandidates: lists("What is suggested for each group, newest first, the latest of each", candidate, {
    group_id: v.numberId(),
    ...matchedBy,
    decision: v.oneOf(DECISIONS),
    evaluation_status: v.oneOf(EVALUATION_STATUSES),
    execution_status: v.oneOf(EXECUTION_STATUSES),
    action: v.text(),
    ...inOrder,
    all: v.flag().describe("those of earlier rounds, too"),
  }),
  getCandidate: shows("One candidate with its reasons and what an execution would touch", candidateDetail, {
    query: v.object({ include_provenance: v.optional(v.flag().describe("everything that was done to it, too")) }),
  }),
  updateCandidate: changes("operate", UPDATE, body("recovery", update), "action_not_found"),
  // What was suggested stays on record; to delete it is to reject it.
  deleteCandidate: decided("Reject a candidate"),
  approveCandidate: decided("Agree to what is suggested, under one's own name; two people are two tokens"),
  rejectCandidate: decided("Decline what is suggested; it rests for a day, or until a person asks"),
  executeCandidate: {
    ...changes("decide", "Carry the action out, under a fence, on exactly what was seen", execution, ...NOT_EXECUTED),
    // Some actions close messages for good.
    effect: "destroys",
  },
  claimCandidate: changes("decide", CLAIM, claim, "approval_needed"),
  reportOutcome: changes("operate", REPORT, outcome),
  approve: changes("decide", NAMED, named, "candidate_not_found", "approval_needed"),
  listRules: listsAll("The rules, in the order in which they are asked", rule),
  getRule: shows("One rule", rule),
  putRule: takes("configure", "Make a rule, or replace it", okOrCreated(rule), edit, "invalid_rule"),
  whatIf: shows(WHAT_IF, whatIf, { body: body("recovery", trial), errors: ["invalid_rule"] }),
  deleteRule: takes("configure", "Delete a rule; its history stays", null, versionOnly),
  getRuleHistory: shows("Every version of a rule, and who made it", v.pageOf(pastVersion)),
  listCauses: listsAll("The signatures by which causes are found, the most certain first", signature),
  getCause: shows("One signature of a cause", signature),
  putCause: takes("configure", "Make a signature of a cause, or replace it", okOrCreated(signature), edit, "invalid_cause"),
  deleteCause: takes("configure", "Delete a signature; a shipped one is switched off", null, versionOnly),
  listActions: shows("The catalogue of actions, with what is known about each", v.pageOf(action), {
    query: v.object({ action_type: v.optional(v.oneOf(ACTION_TYPES)) }),
  }),
  getAction: shows("One action", action),
  putAction: takes("configure", "Change an action's settings", action, edit, "action_not_found", "invalid_action"),
});
