/**
 * Asks every rule about one failure and says what to do: the recommended action with its confidence, the alternatives, and for each
 * rule whether it matched, on which fields, and what it contributed. Pure: the same rules and the same input give the same
 * answer, whatever order the rules were given in.
 */

import type { FoundCause } from "../causes/cause-of.ts";
import type { Evidence } from "../confidence/confidence.ts";
import { CONFIDENCE_GATES, isSelectable } from "../confidence/gates.ts";
import { type Proposal, type Ranked, rankActions } from "../confidence/rank.ts";
import { SHIPPED_ACTIONS } from "./actions.ts";
import { DEFAULT_RULES } from "./defaults.ts";
import { type PreparedInput, prepareInput, type RuleInput } from "./input.ts";
import type { Asking, Fact } from "./match.ts";
import { FROM_HISTORY } from "./rule.ts";
import { type PreparedRule, prepareRules, type RuleSet } from "./rule-set.ts";

/** An alternative below this is not worth a line. */
const ALTERNATIVE_MIN = 0.1;

/** What a rule added: the prior of its action; or nothing but support, since a rule before it had given that; or nothing. */
export type RuleContribution =
  | { readonly kind: "prior" | "supports"; readonly action: string; readonly score: number }
  | { readonly kind: "none" };

export interface RuleResult {
  readonly ruleId: string;
  readonly version: number;
  readonly priority: number;
  readonly matched: boolean;
  /** Why it was not asked, if it was not. */
  readonly skipped: string | undefined;
  readonly facts: readonly Fact[];
  readonly contribution: RuleContribution;
}

export interface Suggestion extends Ranked {
  /** Rules that matched and propose it, the one that gave the prior first. Empty: outcomes alone brought it up. */
  readonly rules: readonly string[];
}

export interface Evaluation {
  /** Absent when nothing reaches the confidence that is asked for. */
  readonly recommended: Suggestion | undefined;
  /** Of the recommended action; 0 without one. */
  readonly confidence: number;
  readonly alternatives: readonly Suggestion[];
  /** Every action of the catalogue in its order, those without rule and outcome included. */
  readonly ranked: readonly Ranked[];
  /** In the order in which they were asked. */
  readonly rulesEvaluated: readonly RuleResult[];
  /** What was read as the error code. */
  readonly errorCode: string;
  readonly errorClasses: readonly string[];
  readonly cause: FoundCause;
  readonly notes: readonly string[];
}

const NO_EVIDENCE: Evidence = {};

export function evaluate(set: RuleSet, given: RuleInput, minConfidence: number = CONFIDENCE_GATES.select): Evaluation {
  const input = prepareInput(given, set.actions, set.causes);
  const proposers = new Map<string, string[]>();
  const proposals: Proposal[] = [];
  const rulesEvaluated = set.rules.map((prepared) => ask(prepared, input, proposers, proposals));
  for (const action of set.actionOrder) if (!proposers.has(action)) proposals.push({ action });
  const ranked = rankActions(proposals, (action) => input.evidence.get(action) ?? NO_EVIDENCE, input.at);
  // An action that no rule names is no suggestion while nothing is known of it, nor of any other action here.
  const suggestions = ranked
    .filter(({ action, known }) => proposers.has(action) || known)
    .map((each): Suggestion => ({ ...each, rules: proposers.get(each.action) ?? [] }));
  const recommended = suggestions.find((each) => isSelectable(each.confidence, minConfidence));
  return {
    recommended,
    confidence: recommended?.confidence ?? 0,
    alternatives: suggestions.filter((each) => each !== recommended && each.confidence >= ALTERNATIVE_MIN),
    ranked,
    rulesEvaluated,
    errorCode: input.code.name,
    errorClasses: [...input.code.classes],
    cause: input.cause,
    notes: input.notes,
  };
}

function ask(
  { rule, matches, skipped }: PreparedRule,
  input: PreparedInput,
  proposers: Map<string, string[]>,
  proposals: Proposal[],
): RuleResult {
  const asking: Asking = { input, facts: [], fromHistory: undefined, share: 1 };
  const holds: boolean = matches === undefined ? false : matches(asking);
  const action = rule.action === FROM_HISTORY ? asking.fromHistory : rule.action;
  const matched: boolean = holds && action !== undefined;
  let contribution: RuleContribution = { kind: "none" };
  if (holds && action !== undefined) {
    const before = proposers.get(action);
    const score = rule.score * asking.share;
    contribution = { kind: before === undefined ? "prior" : "supports", action, score };
    if (before === undefined) {
      proposers.set(action, [rule.id]);
      proposals.push({ action, score, general: "occurrences" in rule.condition || "history" in rule.condition });
    } else before.push(rule.id);
  }
  const { id, version, priority } = rule;
  return { ruleId: id, version, priority, matched, skipped, facts: asking.facts, contribution };
}

let shipped: RuleSet | undefined;

/** The seeds' call: the shipped rules and actions on one failure. */
export function evaluateRules(
  errorCode: string,
  errorMessage: string,
  more: Omit<RuleInput, "errorCode" | "errorMessage"> = {},
): Evaluation {
  shipped ??= prepareRules(DEFAULT_RULES, SHIPPED_ACTIONS);
  return evaluate(shipped, { ...more, errorCode, errorMessage });
}
