/**
 * The addresses of candidates: look, change, decide, execute. A change may insist on the version that was read.
 */
import type { z } from "zod";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../store/candidate-state.ts";
import { BODY_BYTES } from "../body-bytes.ts";
import { routes } from "../route.ts";
import * as v from "../values.ts";
import { candidate, candidateDetail } from "./candidate-shapes.ts";
import { confirm, redrivePlan } from "./redrive-plan.ts";

const OWNER_BYTES_MAX = 255;
const HEADERS = ["if-match", "x-actor-type"] as const;
const ACTOR = ["x-actor-type"] as const;
const GONE = ["needs_postgres", "candidate_not_found"] as const;
const REFUSED = [...GONE, "invalid_request", "version_conflict", "wrong_state"] as const;

const versioned = { version: v.ifVersion(), reason: v.why() };
const body = <S extends z.ZodType>(schema: S) => ({ schema, bytesMax: BODY_BYTES.recovery, invalid: "invalid_request" }) as const;
const decision = { ...body(v.object(versioned)), optional: true } as const;

const decided = (summary: string) =>
  ({
    summary,
    permission: "decide",
    headers: HEADERS,
    body: decision,
    answers: { 200: candidateDetail },
    errors: [...REFUSED, "action_refused", "approval_needed"],
  }) as const;

export const CANDIDATE_ROUTES = routes({
  listCandidates: {
    summary: "What is suggested for each group, newest first, the latest of each",
    permission: "read",
    headers: ACTOR,
    query: v.object({
      ...v.page(),
      group_id: v.optional(v.numberId()),
      decision: v.optional(v.oneOf(DECISIONS)),
      evaluation_status: v.optional(v.oneOf(EVALUATION_STATUSES)),
      execution_status: v.optional(v.oneOf(EXECUTION_STATUSES)),
      action: v.optional(v.text()),
      all: v.optional(v.flag()).describe("those of earlier rounds, too"),
    }),
    answers: { 200: v.pageOf(candidate) },
    errors: ["needs_postgres", "invalid_query"],
  },
  getCandidate: {
    summary: "One candidate with its reasons and what an execution would touch",
    permission: "read",
    headers: ACTOR,
    query: v.object({ include_provenance: v.optional(v.flag()).describe("everything that was done to it, too") }),
    answers: { 200: candidateDetail },
    errors: [...GONE, "invalid_query"],
  },
  updateCandidate: {
    summary: "Choose another action, an owner or a note; end an execution whose outcome is unknown",
    permission: "operate",
    headers: HEADERS,
    body: body(
      v
        .object({
          ...versioned,
          execution_status: v.optional(v.oneOf(EXECUTION_STATUSES)),
          selected_action: v.optional(v.line()),
          // Null clears it.
          owner: v.line(OWNER_BYTES_MAX).nullish(),
          note: v.note().nullish(),
        })
        .check((context) => {
          const { execution_status: status, selected_action: action, owner, note } = context.value;
          if ([status, action, owner, note].some((value) => value !== undefined)) return;
          const message = "nothing to change: execution_status, selected_action, owner or note";
          context.issues.push({ code: "custom", message, input: context.value });
        }),
    ),
    answers: { 200: candidateDetail },
    errors: [...REFUSED, "action_not_found", "action_refused"],
  },
  // What was suggested stays on record; to delete it is to reject it.
  deleteCandidate: decided("Reject a candidate"),
  approveCandidate: decided("Agree to what is suggested, under one's own name; two people are two tokens"),
  rejectCandidate: decided("Decline what is suggested; it rests for a day, or until a person asks"),
  executeCandidate: {
    summary: "Carry the action out, under a fence, on exactly what was seen",
    permission: "decide",
    headers: HEADERS,
    body: {
      ...body(
        v.object({
          ...versioned,
          redrive: v.optional(
            v.object({
              ...redrivePlan,
              confirm: confirm(),
              seen: v.optional(v.text()).describe("only what was seen: blast_radius.seen"),
            }),
          ),
        }),
      ),
      optional: true,
    },
    answers: { 200: candidateDetail },
    errors: [
      ...REFUSED,
      "approval_needed",
      "action_refused",
      "over_budget",
      "confirmation_needed",
      "nothing_selected",
      "nobody_delivers",
    ],
  },
  approve: {
    summary: "Approve or reject the candidate that the body names",
    permission: "decide",
    headers: HEADERS,
    body: body(v.object({ ...versioned, candidate_id: v.numberId(), decision: v.optional(v.oneOf(["approved", "rejected"])) })),
    answers: { 200: candidateDetail },
    errors: [...REFUSED, "action_refused", "approval_needed"],
  },
});
