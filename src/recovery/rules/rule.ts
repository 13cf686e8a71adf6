/** A rule as data: when its condition holds, it proposes an action. Nothing in a rule can loop; everything has a limit (I10). */

export const RULE_LIMITS = {
  rulesMax: 500,
  depthMax: 8,
  nodesMax: 64,
  valuesMax: 64,
  textCharsMax: 200,
  patternCharsMax: 256,
  patternsMax: 4,
  /** Instructions of one compiled pattern, and of all patterns of a rule set. */
  programMax: 200,
  programsMax: 2_000,
  priorityMax: 1_000,
  countMax: 1_000_000_000,
  errorsMax: 100,
} as const;

/** Characters of a failure that rules look at; the rest of a text of 1 MiB is not read. */
export const INPUT_LIMITS = { codeChars: 256, messageChars: 4_096, stackChars: 4_096, nameChars: 512 } as const;

/** Stands in a rule for the action that worked before; only for rules with a `history` condition that names none. */
export const FROM_HISTORY = "from_history";

export const PATTERN_FIELDS = ["code", "message", "stack", "topic", "skill"] as const;
export type PatternField = (typeof PATTERN_FIELDS)[number];

export interface CodeCondition {
  /** The whole code, in any spelling: `RATE_LIMIT` is also rate-limited, 429, http_429. */
  readonly is?: readonly string[];
  /** The first words of the code: `BUDGET` is also BUDGET_MONTHLY, and not BUDGETARY. */
  readonly prefix?: readonly string[];
  /** A class such as HTTP_5XX. */
  readonly class?: readonly string[];
}

export interface CauseCondition {
  /** Causes, or one kind of a cause: `outage` is also `outage.passing`, and not the other way round. */
  readonly is: readonly string[];
  /** At least so certain; absent: however vague it is. */
  readonly certainty?: number;
}

export interface HistoryCondition {
  /** Absent: any action of the catalogue that meets the rest. */
  readonly action?: string;
  /** Outcomes of this fingerprint; older ones weigh less, the sum is rounded. */
  readonly minOccurrences: number;
  readonly minSuccess: number;
}

/** Each has exactly one member. Lists inside one mean "one of these". */
export type Condition =
  | { readonly code: CodeCondition }
  | { readonly cause: CauseCondition }
  | { readonly pattern: { readonly field: PatternField; readonly matches: string } }
  | { readonly topic: readonly string[] }
  | { readonly skill: readonly string[] }
  /** At least so many occurrences. */
  | { readonly occurrences: number }
  | { readonly history: HistoryCondition }
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition };

export interface Rule {
  readonly id: string;
  /** Raised by every edit; an edit names the version it was made from. */
  readonly version: number;
  readonly name: string;
  /** Higher is looked at first. */
  readonly priority: number;
  readonly enabled: boolean;
  readonly condition: Condition;
  /** A code of the catalogue, or `from_history`. */
  readonly action: string;
  /** How likely the action heals what the condition describes, before anything is known: 0 to 1. */
  readonly score: number;
}

export type Rules = readonly Rule[];

/** Priority, then score, both from high to low, then id. Ids are unique, so the order is total. */
export function byOrder(a: Rule, b: Rule): number {
  return b.priority - a.priority || b.score - a.score || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
