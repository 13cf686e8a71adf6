/**
 * The addresses of candidates: look, change, decide, execute. A change may insist on the version that was read.
 */
import type { z } from "zod";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../store/candidate-state.ts";
import type { ProblemCode } from "../problem-codes.ts";
import { type Body, body, lists, ok, optionalBody, type Permission, route, routes, shows } from "../route.ts";
import * as v from "../values.ts";
import { confirm, redrivePlan } from "./redrives.ts";
import { candidate, candidateDetail } from "./shapes.ts";

/** A change of one candidate, under the version that was read. */
const changes = <S extends z.ZodType>(permission: Permission, summary: string, body: Body<S>, ...errors: ProblemCode[]) =>
  route(permission, summary, ok(candidateDetail), { body, errors: ["wrong_state", "action_refused", ...errors] });

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
  .refine(
    ({ execution_status: status, selected_action: action, owner, note }) =>
      [status, action, owner, note].some((value) => value !== undefined),
    { error: "nothing to change: execution_status, selected_action, owner or note" },
  );
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
    optionalBody("recovery", v.object({ ...v.versioned(), redrive: v.optional(redrive) })),
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
