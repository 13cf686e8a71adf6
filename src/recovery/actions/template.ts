/**
 * Settings and texts of an action. `{name}` stands for a field of the group and nothing else does: no expression, no path, no
 * condition (attack 25). What has an unknown name or a stray brace is refused when it is saved, so rendering cannot fail.
 */
import type { Candidate, Group } from "../../store/recovery.ts";

export type TemplateValues = Readonly<Record<string, string | number | boolean>>;

export const TEMPLATE_LIMITS = { textCharsMax: 1_000, membersMax: 20 } as const;

const FIELDS = {
  topic: ({ group }: Fields) => group.topic,
  sink: ({ group }: Fields) => group.sink,
  code: ({ group }: Fields) => group.code,
  template: ({ group }: Fields) => group.template,
  group_id: ({ group }: Fields) => String(group.groupId),
  failure_match_id: ({ group }: Fields) => group.matchId,
  occurrences: ({ group }: Fields) => String(group.occurrences),
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

/** What is wrong with a text, in words; null: nothing. */
export function templateFault(text: string): string | null {
  if (text.length > TEMPLATE_LIMITS.textCharsMax) return `has ${text.length} characters, at most ${TEMPLATE_LIMITS.textCharsMax}`;
  for (const [, name = ""] of text.matchAll(NAME)) {
    if (!Object.hasOwn(FIELDS, name)) return `has {${name}}, which is no field; there are ${TEMPLATE_NAMES.join(", ")}`;
  }
  return /[{}]/.test(text.replace(NAME, "")) ? "has a brace that is not part of a {name}" : null;
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
    typeof value === "string" ? rendered(value, fields) : value,
  ]);
  return Object.fromEntries(pairs);
}
