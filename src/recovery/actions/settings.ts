/**
 * What may be set about an action, its template included: settings, and texts in which `{name}` stands for a field of the group and nothing
 * else does, no expression and no path. What could not be rendered or kept is refused when it is saved, so rendering cannot fail.
 */
import { z } from "zod";
import type { Fault } from "../../message/fault.ts";
import { isWellFormed } from "../../message/validate.ts";
import type { Candidate } from "../candidates/candidate.ts";
import type { Group } from "../groups/group.ts";
import { REDRIVE_LIMITS } from "../redrive/request.ts";
import { checked, flag, id, number, object, oneOf, parse } from "../rules/schema.ts";
import type { RecoveryAction } from "./action.ts";

export type TemplateValues = Readonly<Record<string, string | number | boolean>>;

const LIMITS = { textCharsMax: 2_000, ownerCharsMax: 255, membersMax: 20 } as const;

/** Members that mean nothing when they are blank. */
const NEVER_BLANK = new Set(["owner", "reason", "text"]);

const charsMax = (member: string): number => (member === "owner" ? LIMITS.ownerCharsMax : LIMITS.textCharsMax);

const { canaryMax, ratePerSecondMin, ratePerSecondMax, messagesMax, delayMsMax } = REDRIVE_LIMITS;

/** Numbers of a redrive's plan, by the ranges that a redrive has; any other number of an action is its own business. */
const NUMBERS = new Map([
  ["canary", number(0, canaryMax, "whole")],
  ["rate_per_second", number(ratePerSecondMin, ratePerSecondMax)],
  ["ramp_from", number(ratePerSecondMin, ratePerSecondMax)],
  ["failure_share_max", number(0, 1)],
  ["failure_min", number(1, messagesMax, "whole")],
  ["delay_ms", number(0, delayMsMax, "whole")],
  ["cooldown_ms", number(1, delayMsMax, "whole")],
]);
const ANY_NUMBER = number(0, 1e9);

interface Fields {
  readonly group: Group;
  readonly candidate: Candidate;
}

const FIELDS = new Map<string, (fields: Fields) => string>([
  ["topic", ({ group }) => group.topic],
  ["sink", ({ group }) => group.sink],
  ["code", ({ group }) => group.errorCode],
  ["template", ({ group }) => group.template],
  ["group_id", ({ group }) => String(group.groupId)],
  ["failure_match_id", ({ group }) => group.failureMatchId],
  ["occurrences", ({ group }) => String(group.occurrenceCount)],
  ["open_messages", ({ group }) => String(group.openMessages)],
  ["first_at", ({ group }) => group.firstAt.toISOString()],
  ["last_at", ({ group }) => group.lastAt.toISOString()],
  ["candidate_id", ({ candidate }) => String(candidate.candidateId)],
  ["confidence", ({ candidate }) => (candidate.confidence ?? 0).toFixed(2)],
]);

export const TEMPLATE_NAMES: readonly string[] = [...FIELDS.keys()];

const NAME = /\{([a-z_]{1,40})\}/g;

/** Only members that the code knows, each of its type: a template adds no behaviour. */
function templateSchema(known: TemplateValues): z.ZodType<TemplateValues> {
  const { membersMax } = LIMITS;
  const members = Object.entries(known).map(([name, value]) => [name, memberSchema(name, typeof value).optional()]);
  const schema = object(Object.fromEntries(members)) as unknown as z.ZodType<TemplateValues>;
  return checked(schema, (value) => (Object.keys(value).length > membersMax ? `has more than ${membersMax} members` : null));
}

function memberSchema(name: string, type: string): z.ZodType<string | number | boolean> {
  if (type === "string") return checked(z.string("must be a text"), (value) => textFault(name, value));
  return type === "boolean" ? z.boolean("must be a boolean") : (NUMBERS.get(name) ?? ANY_NUMBER);
}

/** What is wrong with a member's text, in words; null: nothing. */
export function textFault(member: string, text: string): string | null {
  if (text.length > charsMax(member)) return `has ${text.length} characters, at most ${charsMax(member)}`;
  if (NEVER_BLANK.has(member) && text.trim() === "") return "must not be blank";
  // Every store can keep it, and a terminal can show it.
  if (!isWellFormed(text) || /\p{Cc}/u.test(text)) return "must not contain control characters or half a surrogate pair";
  for (const [, name = ""] of text.matchAll(NAME)) {
    if (!FIELDS.has(name)) return `has {${name}}, which is no field; there are ${TEMPLATE_NAMES.join(", ")}`;
  }
  return /[{}]/.test(text.replace(NAME, "")) ? "has a brace that is not part of a {name}" : null;
}

/** A member as text, cut to the length it may have; one pass: what a field's own text contains is not looked at again. */
export function rendered(template: TemplateValues, member: string, fields: Fields): string {
  const text = String(template[member] ?? "").replace(NAME, (whole, name: string) => FIELDS.get(name)?.(fields) ?? whole);
  const head = text.slice(0, charsMax(member));
  // Not through the middle of a character.
  return isWellFormed(head) ? head : head.slice(0, -1);
}

const priority = number(0, 1_000, "whole");

/** Members that are absent stay as they are in code. */
export const settingsSchema = ({ template }: Pick<RecoveryAction, "template">) =>
  object({
    enabled: flag().optional(),
    approval: oneOf(["none", "one", "two"]).optional(),
    risk: oneOf(["safe", "risky", "forbidden"]).optional(),
    priority: priority.optional(),
    /** Members over those of the code. */
    template: templateSchema(template).optional(),
  });

export type ActionSettings = z.output<ReturnType<typeof settingsSchema>>;

const texts = z.custom<readonly string[]>(
  (list) => Array.isArray(list) && list.every((each) => typeof each === "string"),
  "must be a list of texts",
);

/** What is wrong with an action that a program registers. */
export function actionFaults(action: RecoveryAction): readonly Fault[] {
  const schema = z.looseObject({
    ...{ appliesToErrorCodes: texts, appliesToTopics: texts },
    plan: z.custom((plan) => typeof plan === "function", "must be a function"),
    ...{ actionCode: id(), priority, template: templateSchema(action.template) },
  });
  const read = parse(schema, action);
  return read.ok ? [] : read.mistakes;
}
