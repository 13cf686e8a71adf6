/** What rules are asked about: one failure, with what became of earlier actions on it. Texts are cut to their limits once. */
import { type CauseFinder, causeOf } from "../causes/cause-of.ts";
import type { Evidence } from "../confidence/confidence.ts";
import { merged, type OutcomeCounts } from "../confidence/outcome-counts.ts";
import { readCode } from "./code-words.ts";
import type { KnownActions } from "./parse-rule.ts";
import { INPUT_LIMITS } from "./rule.ts";
import { shown } from "./schema.ts";

export interface RuleInput {
  readonly errorCode: string;
  readonly errorMessage?: string;
  readonly stackTrace?: string;
  readonly httpStatus?: number | undefined;
  readonly topic?: string;
  readonly skillId?: string;
  /** How often this failure has happened, this time included; absent: once. */
  readonly occurrenceCount?: number;
  /** What became of executions of an action: for this kind of failure, others with its cause, and all others. */
  readonly outcomes?: readonly (Evidence & { readonly action: string })[];
  /** The time to which outcomes are decayed; absent: that of the latest of them. */
  readonly at?: number;
}

export type PreparedInput = ReturnType<typeof prepareInput>;

/** I10: more entries than this are no history of a catalogue. */
const OUTCOMES_MAX = 1_000;
const NOTES_MAX = 20;

const together = (a?: OutcomeCounts, b?: OutcomeCounts) => (b === undefined ? a : merged(a, b));

export function prepareInput(input: RuleInput, actions: KnownActions, find: CauseFinder = causeOf) {
  const { codeChars, messageChars, stackChars, nameChars } = INPUT_LIMITS;
  const fields = {
    code: input.errorCode.slice(0, codeChars),
    message: (input.errorMessage ?? "").slice(0, messageChars),
    stack: (input.stackTrace ?? "").slice(0, stackChars),
    topic: (input.topic ?? "").slice(0, nameChars),
    skill: (input.skillId ?? "").slice(0, nameChars),
  };
  const evidence = new Map<string, Evidence>();
  const notes: string[] = [];
  let latest = 0;
  for (const { action, own, cause, all } of (input.outcomes ?? []).slice(0, OUTCOMES_MAX)) {
    if (!actions.has(action)) {
      if (notes.length < NOTES_MAX) notes.push(`outcomes of ${shown(action)} were left out: it is no action of the catalogue`);
      continue;
    }
    latest = Math.max(latest, own?.at ?? 0, cause?.at ?? 0, all?.at ?? 0);
    const before = evidence.get(action);
    evidence.set(action, {
      own: together(before?.own, own),
      cause: together(before?.cause, cause),
      all: together(before?.all, all),
    });
  }
  const [code, cause] = [readCode(fields.code, fields.message), find(input)];
  return { code, cause, fields, occurrences: input.occurrenceCount ?? 1, evidence, at: input.at ?? latest, notes };
}
