/**
 * The addresses of groups: look, merge, split, ask for a suggestion; and the record of who did what.
 */
import { z } from "zod";
import { body, created, lists, listsAll, NOTHING, ok, optionalBody, route, routes, shows } from "../route.ts";
import * as v from "../values.ts";
import { candidate, candidateDetail, group, groupRule, occurrence, provenance, stats } from "./shapes.ts";

/** Occurrences may carry two mebibytes each. */
export const OCCURRENCE_PAGE_MAX = 20;
const MERGE_MAX = 100;
const WORDS_MAX = 20;
const WORD_CHARS_MAX = 200;

const isWord = (text: string): boolean =>
  text.trim() !== "" && text.length <= WORD_CHARS_MAX && !/\p{Cc}|\p{Surrogate}/u.test(text);
const word = v.text().refine(isWord, { error: `must be a word of at most ${WORD_CHARS_MAX} characters` });
const noWords = "is missing: what a failure must contain to go to the new group";
const words = v.list(word, WORDS_MAX, `words of at most ${WORD_CHARS_MAX} characters`, noWords);
const from = v.list(v.numberId(), MERGE_MAX, "group ids", "is missing: the ids of the groups that join this one");

const groupDetail = group
  .extend({ why: z.array(z.string()).readonly(), candidate: candidate.nullable(), occurrences: z.array(occurrence) })
  .meta({ id: "GroupDetail" });
const split = group.extend({ moved: z.int() }).meta({ id: "SplitGroup" });

export const GROUP_ROUTES = routes({
  listGroups: lists("Groups of failures of one kind, the latest failure first", group, {
    topic: v.text(),
    error_code: v.text(),
    tenant_id: v.text(),
    open: v.flag().describe("only those with open dead letters"),
    merged: v.flag().describe("those that were merged into others, too"),
  }),
  getGroup: shows("One group, why its failures are together, its candidate and its newest occurrences", groupDetail),
  listOccurrences: lists("The failures of a group, one by one, newest first", occurrence, {
    payload: v.flag().describe("with what was reported"),
    open: v.flag().describe("only messages that are open dead letters"),
    tenant_id: v.text(),
  }),
  mergeGroups: route("operate", "Join other groups to this one, for what comes as well", ok(group), {
    body: body("recovery", v.object({ from, reason: v.reason() })),
  }),
  splitGroup: route("operate", "Take the failures that contain these words out into a group of their own", created(split), {
    body: body("recovery", v.object({ words, reason: v.reason() })),
  }),
  suggestGroup: route("operate", "Evaluate a group afresh", ok(candidateDetail), {
    body: optionalBody("recovery", v.object({})),
    errors: ["version_conflict"],
  }),
  listGroupRules: listsAll("What people decided about groups: merges and splits", groupRule),
  deleteGroupRule: route("operate", "Forget such a decision, for failures to come", NOTHING, {
    body: optionalBody("recovery", v.object({ version: v.ifVersion() })),
  }),
  listProvenance: lists("Who did what, and why, newest first", provenance, {
    group_id: v.numberId(),
    candidate_id: v.numberId(),
    redrive_id: v.uuid(),
  }),
  getStats: shows("How many groups, decisions, executions, and what came of each action", stats, { query: v.object({}) }),
});
