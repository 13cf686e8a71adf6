/** The addresses where failures come in and where one asks what would help; and those of groups, and of who did what. */
import { z } from "zod";
import { LIMITS } from "../../message/limits.ts";
import { body, created, exactBody, lists, listsAll, okOrCreated, route, routes, shows, takes } from "../route.ts";
import * as v from "../values.ts";
import { candidate, candidateDetail, evaluation, group, groupRule, occurrence, provenance, stats, texts } from "./shapes.ts";

/** The empty one too: who reports a failure can rarely choose its words. The seeds have two names for code and message. */
const loose = v.anyText().transform((value) => (value === "" ? undefined : value));
const said = v.optionals({ error_code: loose, error_type: loose, error_message: loose, raw: loose, stack_trace: loose });
const where = { topic: v.line(), sink: v.line(), skill_id: v.line() };

const GIVEN = Object.keys(said) as (keyof typeof said)[];
export const NOTHING_SAID = "is missing: error_type or error_code, and what was said in raw or error_message";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const matchId = v.anyText().regex(UUID, { error: "must be a UUID; absent: it is made from the fingerprint" });
const error = "must be the number of a group, or a failure_match_id";
/** How a group is named: its number, or a failure_match_id of its own or one that was supplied. */
export const groupName = () => z.union([v.numberId(), v.anyText().regex(UUID, { error })], { error });
export const matchedBy = { failure_match_id: matchId.describe("a group's own, or one that was supplied with a failure") };

const seen = { http_status: v.integer(100, 599), occurrence_count: v.integer(1, 1_000_000_000) };
const failure = v
  .object({ ...said, ...v.optionals({ ...where, ...matchedBy, ...seen }) })
  .refine((given) => GIVEN.some((name) => given[name] !== undefined), { error: NOTHING_SAID, path: ["error_type"] })
  .meta({ id: "Failure" });

const outside = {
  version: v.line().describe("of the program that failed, such as 1.4.2"),
  redrive_topic: v.topicName().describe("a topic of ours through which the failure payload can be sent again"),
};

/** What of a reported failure is read; the rest is kept as it came. A `version` that is no text may be of something else. */
export const failurePayload = z.looseObject({
  ...said,
  ...v.optionals({ ...where, tenant_id: v.line(), redrive_topic: outside.redrive_topic }),
  version: outside.version.optional().catch(undefined),
});

const how = { failure_match_id: matchId, idempotency_key: v.keyText(LIMITS.keyBytesMax), enqueue_evaluation: v.flag() };
export const failureEnvelope = v
  .object({ failure_payload: failurePayload, ...v.optionals({ ...how, ...outside }) })
  .meta({ id: "FailureReport" });

export const counted = v.shape("Counted", {
  ...v.integers("candidate_id", "group_id", "occurrence_count"),
  ...v.texts("failure_match_id", "status"),
  ...v.fields(z.boolean(), "is_duplicate", "evaluation_queued"),
  regression: z.literal(true).optional().describe("where it brought a resolved group back"),
});

const evaluated = evaluation.extend({
  ...{ ...v.texts("fingerprint", "failure_match_id", "template"), group_id: z.int().nullable(), duration_ms: z.number() },
});

const suggested = evaluated.extend({ group: group.nullable(), candidate: candidate.nullable() }).meta({ id: "Suggested" });
const EVALUATES = "What the rules say about such a failure; nothing is kept";
const SUGGESTS = "The same, with what is known of the group that it would join";

/** Occurrences may carry two mebibytes each. */
export const OCCURRENCE_PAGE_MAX = 20;

const isWord = (text: string): boolean => text.trim() !== "" && text.length <= 200 && !/\p{Cc}|\p{Surrogate}/u.test(text);
const word = v.text().refine(isWord, { error: "must be a word or phrase of at most 200 characters" });
const noWords = "is missing: what a failure must contain to go to the new group";
const words = v.list(word, 20, "words or phrases of at most 200 characters", noWords);
const from = v.list(groupName(), 100, "group ids", "is missing: the ids of the groups that join this one");

const groupDetail = group
  .extend({ why: texts, candidate: candidate.nullable(), occurrences: z.array(occurrence) })
  .meta({ id: "GroupDetail" });
const split = group.extend({ moved: z.int() }).meta({ id: "SplitGroup" });

export const inOrder = {
  order: v.oneOf(["recent", "size"]).describe("the latest first, or the largest"),
  since: v.moment().describe("only what failed since then: an instant, or 24h, 7d"),
  until: v.moment().describe("only what failed before then"),
};

export const asked = <const S extends z.core.$ZodShape>(fields: S) => body("recovery", v.object(fields));
const because = { reason: v.reason() };
const resolved = v.optionals({
  in_version: v.line().describe("failures of earlier versions do not bring it back; absent: every failure does"),
  messages: v.oneOf(["leave", "resolve"]).describe("what becomes of its open dead letters; absent: they are left"),
});
const SPLIT = "Take the failures that contain these words out into a group of their own";
const RESOLVE = "Say that it is mended: nothing is suggested until it fails again in that version or a later one";
const RELEASE = "Let go of a group that is held for a person: a suggestion may be made for it again";
const { reason } = v.versioned();

const ofProvenance = { ...v.fields(v.numberId(), "group_id", "candidate_id"), ...matchedBy, redrive_id: v.uuid() };

export const GROUP_ROUTES = routes({
  ingestFailure: route("accept", "Count a failure of another service, once per idempotency key", okOrCreated(counted), {
    headers: ["idempotency-key"],
    body: exactBody("failure", failureEnvelope),
    errors: ["key_conflict"],
  }),
  evaluateFailure: takes("read", EVALUATES, evaluated.meta({ id: "Evaluated" }), body("failure", failure)),
  suggestFailure: takes("read", SUGGESTS, suggested, body("failure", failure)),
  listGroups: lists("Groups of failures of one kind, the latest failure first", group, {
    ...v.fields(v.text(), "topic", "error_code", "tenant_id"),
    ...inOrder,
    ...matchedBy,
    open: v.flag().describe("only those with open dead letters"),
    reported: v.flag().describe("only those with open failures that other services reported"),
    merged: v.flag().describe("those that were merged into others, too"),
  }),
  getGroup: shows("One group, why its failures are together, its candidate and its newest occurrences", groupDetail),
  listOccurrences: lists("The failures of a group, one by one, newest first", occurrence, {
    payload: v.flag().describe("with what was reported"),
    open: v.flag().describe("only messages that are open dead letters"),
    tenant_id: v.text(),
  }),
  mergeGroups: takes("operate", "Join other groups to this one, for what comes as well", group, asked({ from, ...because })),
  splitGroup: takes("operate", SPLIT, created(split), asked({ words, ...because })),
  resolveGroup: takes("operate", RESOLVE, group, asked({ ...because, ...resolved }), "wrong_state"),
  suggestGroup: takes("operate", "Evaluate a group afresh", candidateDetail, asked({}), "version_conflict"),
  releaseGroup: takes("operate", RELEASE, group, asked({ reason }), "wrong_state", "version_conflict"),
  listGroupRules: listsAll("What people decided about groups: merges and splits", groupRule),
  deleteGroupRule: takes("operate", "Forget such a decision, for failures to come", null, asked({ version: v.ifVersion() })),
  listProvenance: lists("Who did what, and why, newest first", provenance, ofProvenance, ["group_not_found"]),
  getStats: shows("How many groups, decisions, executions, and what came of each action", stats, { query: v.object({}) }),
});
