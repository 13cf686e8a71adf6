/**
 * Settings and texts of an action. `{name}` stands for a field of the group and nothing else does: no expression, no path, no
 * condition. What has an unknown name, a stray brace, or characters that a store cannot keep is refused when it is saved, so
 * rendering cannot fail; what a member becomes is cut to the length it may have.
 */
import { isWellFormed } from "../../message/validate.ts";
import type { Candidate } from "../candidates/candidate.ts";
import type { Group } from "../groups/group.ts";
import { REDRIVE_LIMITS } from "../redrive/request.ts";

export type TemplateValues = Readonly<Record<string, string | number | boolean>>;

export const TEMPLATE_LIMITS = { textCharsMax: 2_000, ownerCharsMax: 255, membersMax: 20 } as const;

/** Members that mean nothing when they are blank. */
const NEVER_BLANK = new Set(["owner", "reason", "text"]);

const charsMax = (member: string): number => (member === "owner" ? TEMPLATE_LIMITS.ownerCharsMax : TEMPLATE_LIMITS.textCharsMax);

/** Numbers of a redrive's plan, by the ranges that a redrive has; any other number of an action is its own business. */
const RANGES: Readonly<Record<string, { readonly min: number; readonly max: number; readonly whole: boolean }>> = {
  canary: { min: 0, max: REDRIVE_LIMITS.canaryMax, whole: true },
  rate_per_second: { min: REDRIVE_LIMITS.ratePerSecondMin, max: REDRIVE_LIMITS.ratePerSecondMax, whole: false },
  ramp_from: { min: REDRIVE_LIMITS.ratePerSecondMin, max: REDRIVE_LIMITS.ratePerSecondMax, whole: false },
  failure_share_max: { min: 0, max: 1, whole: false },
  failure_min: { min: 1, max: REDRIVE_LIMITS.messagesMax, whole: true },
  delay_ms: { min: 0, max: REDRIVE_LIMITS.delayMsMax, whole: true },
  cooldown_ms: { min: 1, max: REDRIVE_LIMITS.delayMsMax, whole: true },
};
const ANY_RANGE = { min: 0, max: 1e9, whole: false };

const FIELDS = {
  topic: ({ group }: Fields) => group.topic,
  sink: ({ group }: Fields) => group.sink,
  code: ({ group }: Fields) => group.errorCode,
  template: ({ group }: Fields) => group.template,
  group_id: ({ group }: Fields) => String(group.groupId),
  failure_match_id: ({ group }: Fields) => group.failureMatchId,
  occurrences: ({ group }: Fields) => String(group.occurrenceCount),
  open_messages: ({ group }: Fields) => String(group.openMessages),
  first_at: ({ group }: Fields) => group.firstAt.toISOString(),
  last_at: ({ group }: Fields) => group.lastAt.toISOString(),
  candidate_id: ({ candidate }: Fields) => String(candidate.candidateId),
  confidence: ({ candidate }: Fields) => (candidate.confidence ?? 0).toFixed(2),
} as const;

interface Fields {
  readonly group: Group;
  readonly candidate: Candidate;
}

export const TEMPLATE_NAMES: readonly string[] = Object.keys(FIELDS);

const NAME = /\{([a-z_]{1,40})\}/g;

/** What is wrong with a member's value, in words; null: nothing. */
export function templateFault(member: string, value: string | number | boolean): string | null {
  if (typeof value === "string") return textFault(member, value);
  if (typeof value === "boolean") return null;
  const { min, max, whole } = RANGES[member] ?? ANY_RANGE;
  if (value >= min && value <= max && (!whole || Number.isInteger(value))) return null;
  return `must be a ${whole ? "whole " : ""}number from ${min} to ${max}`;
}

function textFault(member: string, text: string): string | null {
  if (text.length > charsMax(member)) return `has ${text.length} characters, at most ${charsMax(member)}`;
  if (NEVER_BLANK.has(member) && text.trim() === "") return "must not be blank";
  if (!isKeepable(text)) return "must not contain control characters or half a surrogate pair";
  for (const [, name = ""] of text.matchAll(NAME)) {
    if (!Object.hasOwn(FIELDS, name)) return `has {${name}}, which is no field; there are ${TEMPLATE_NAMES.join(", ")}`;
  }
  return /[{}]/.test(text.replace(NAME, "")) ? "has a brace that is not part of a {name}" : null;
}

/** Every store can keep it, and a terminal can show it. */
function isKeepable(text: string): boolean {
  return isWellFormed(text) && !/\p{Cc}/u.test(text);
}

/** One pass: what a field's own text contains is not looked at again. */
export function rendered(text: string, fields: Fields): string {
  return text.replace(NAME, (whole, name: string) =>
    Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof typeof FIELDS](fields) : whole,
  );
}

export function renderedTemplate(template: TemplateValues, fields: Fields): TemplateValues {
  const pairs = Object.entries(template).map(([name, value]) => [
    name,
    typeof value === "string" ? cut(rendered(value, fields), charsMax(name)) : value,
  ]);
  return Object.fromEntries(pairs);
}

/** Not through the middle of a character. */
function cut(text: string, max: number): string {
  const head = text.slice(0, max);
  return isWellFormed(head) ? head : head.slice(0, -1);
}
