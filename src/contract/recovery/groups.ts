/**
 * The addresses of groups: look, merge, split, ask for a suggestion; and the record of who did what.
 */
import { z } from "zod";
import { BODY_BYTES } from "../body-bytes.ts";
import { routes } from "../route.ts";
import * as v from "../values.ts";
import { candidate, candidateDetail } from "./candidate-shapes.ts";
import { group, groupRule, occurrence, provenance, stats } from "./group-shapes.ts";

/** Occurrences may carry two mebibytes each. */
export const OCCURRENCE_PAGE_MAX = 20;
const MERGE_MAX = 100;
const WORDS_MAX = 20;
const WORD_CHARS_MAX = 200;

const word = v
  .text()
  .refine((value) => value.trim() !== "" && value.length <= WORD_CHARS_MAX && !/\p{Cc}|\p{Surrogate}/u.test(value), {
    error: `must be a word of at most ${WORD_CHARS_MAX} characters`,
  });

const body = <S extends z.ZodType>(schema: S) => ({ schema, bytesMax: BODY_BYTES.recovery, invalid: "invalid_request" }) as const;
const ACTOR = ["x-actor-type"] as const;
const COMMON = ["needs_postgres"] as const;
const REFUSED = [...COMMON, "group_not_found", "invalid_request"] as const;

export const GROUP_ROUTES = routes({
  listGroups: {
    summary: "Groups of failures of one kind, the latest failure first",
    permission: "read",
    headers: ACTOR,
    query: v.object({
      ...v.page(),
      topic: v.optional(v.text()),
      error_code: v.optional(v.text()),
      tenant_id: v.optional(v.text()),
      open: v.optional(v.flag()).describe("only those with open dead letters"),
      merged: v.optional(v.flag()).describe("those that were merged into others, too"),
    }),
    answers: { 200: v.pageOf(group) },
    errors: [...COMMON, "invalid_query"],
  },
  getGroup: {
    summary: "One group, why its failures are together, its candidate and its newest occurrences",
    permission: "read",
    headers: ACTOR,
    answers: {
      200: group
        .extend({ why: z.array(z.string()).readonly(), candidate: candidate.nullable(), occurrences: z.array(occurrence) })
        .meta({ id: "GroupDetail" }),
    },
    errors: [...COMMON, "group_not_found"],
  },
  listOccurrences: {
    summary: "The failures of a group, one by one, newest first",
    permission: "read",
    headers: ACTOR,
    query: v.object({
      ...v.page(),
      payload: v.optional(v.flag()).describe("with what was reported"),
      open: v.optional(v.flag()).describe("only messages that are open dead letters"),
      tenant_id: v.optional(v.text()),
    }),
    answers: { 200: v.pageOf(occurrence) },
    errors: [...COMMON, "group_not_found", "invalid_query"],
  },
  mergeGroups: {
    summary: "Join other groups to this one, for what comes as well",
    permission: "operate",
    headers: ACTOR,
    body: body(
      v.object({
        from: v.list(v.numberId(), MERGE_MAX, "group ids", {
          missing: "is missing: the ids of the groups that join this one",
        }),
        reason: v.reason(),
      }),
    ),
    answers: { 200: group },
    errors: REFUSED,
  },
  splitGroup: {
    summary: "Take the failures that contain these words out into a group of their own",
    permission: "operate",
    headers: ACTOR,
    body: body(
      v.object({
        words: v.list(word, WORDS_MAX, `words of at most ${WORD_CHARS_MAX} characters`, {
          missing: "is missing: what a failure must contain to go to the new group",
        }),
        reason: v.reason(),
      }),
    ),
    answers: { 201: group.extend({ moved: z.int() }).meta({ id: "SplitGroup" }) },
    errors: REFUSED,
  },
  suggestGroup: {
    summary: "Evaluate a group afresh",
    permission: "operate",
    headers: ACTOR,
    body: { ...body(v.object({})), optional: true },
    answers: { 200: candidateDetail },
    errors: REFUSED,
  },
  listGroupRules: {
    summary: "What people decided about groups: merges and splits",
    permission: "read",
    headers: ACTOR,
    query: v.object({}),
    answers: { 200: v.pageOf(groupRule) },
    errors: [...COMMON, "invalid_query"],
  },
  deleteGroupRule: {
    summary: "Forget such a decision, for failures to come",
    permission: "operate",
    headers: ["if-match", ...ACTOR],
    body: { ...body(v.object({ version: v.ifVersion() })), optional: true },
    answers: { 204: null },
    errors: [...COMMON, "rule_not_found", "version_conflict", "invalid_request"],
  },
  listProvenance: {
    summary: "Who did what, and why, newest first",
    permission: "read",
    headers: ACTOR,
    query: v.object({
      ...v.page(),
      group_id: v.optional(v.numberId()),
      candidate_id: v.optional(v.numberId()),
      redrive_id: v.optional(v.uuid()),
    }),
    answers: { 200: v.pageOf(provenance) },
    errors: [...COMMON, "invalid_query"],
  },
  getStats: {
    summary: "How many groups, decisions, executions, and what came of each action",
    permission: "read",
    headers: ACTOR,
    query: v.object({}),
    answers: { 200: stats },
    errors: [...COMMON, "invalid_query"],
  },
});
