/** Asks every rule about one failure: what to do, how sure that is, what each rule contributed. Pure, in any order of rules. */
import { SHIPPED_ACTIONS } from "../actions/shipped.ts";
import { CONFIDENCE_GATES, isSelectable } from "../confidence/gates.ts";
import { type Proposal, type Ranked, rankActions } from "../confidence/rank.ts";
import { DEFAULT_RULES } from "./defaults.ts";
import { type PreparedInput, prepareInput, type RuleInput } from "./input.ts";
import type { Asking } from "./match.ts";
import { FROM_HISTORY } from "./rule.ts";
import { type PreparedRule, prepareRules, type RuleSet } from "./rule-set.ts";

/** An alternative below this is not worth a line. */
const ALTERNATIVE_MIN = 0.1;

/** What a rule added: the prior of its action; or nothing but support, since a rule before it had given that; or nothing. */
type RuleContribution =
  | { readonly kind: "prior" | "supports"; readonly action: string; readonly score: number }
  | { readonly kind: "none" };

export interface Suggestion extends Ranked {
  /** Rules that matched and propose it, the one that gave the prior first. Empty: outcomes alone brought it up. */
  readonly rules: readonly string[];
}

export type RuleResult = ReturnType<typeof ask>;
export type Evaluation = Readonly<ReturnType<typeof evaluate>>;

export function evaluate(set: RuleSet, given: RuleInput, minConfidence: number = CONFIDENCE_GATES.select) {
  const input = prepareInput(given, set.actions, set.causes);
  const proposers = new Map<string, string[]>();
  const proposals: Proposal[] = [];
  const rulesEvaluated = set.rules.map((prepared) => ask(prepared, input, proposers, proposals));
  for (const action of set.actions) if (!proposers.has(action)) proposals.push({ action });
  const ranked = rankActions(proposals, (action) => input.evidence.get(action) ?? {}, input.at);
  // An action that no rule names is no suggestion while nothing is known of it, nor of any other action here.
  const suggestions = ranked
    .filter(({ action, known }) => proposers.has(action) || known)
    .map((each): Suggestion => ({ ...each, rules: proposers.get(each.action) ?? [] }));
  const recommended = suggestions.find((each) => isSelectable(each.confidence, minConfidence));
  return {
    /** Absent when nothing reaches the confidence that is asked for. */
    recommended,
    confidence: recommended?.confidence ?? 0,
    alternatives: suggestions.filter((each) => each !== recommended && each.confidence >= ALTERNATIVE_MIN),
    /** Every action of the catalogue in its order, those without rule and outcome included. */
    ranked,
    /** In the order in which they were asked. */
    rulesEvaluated,
    /** What was read as the error code. */
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
) {
  const asking: Asking = { input, facts: [], fromHistory: undefined, share: 1 };
  const holds: boolean = matches?.(asking) ?? false;
  const action = rule.action === FROM_HISTORY ? asking.fromHistory : rule.action;
  const { id: ruleId, version, priority } = rule;
  const asked = { ruleId, version, priority, skipped, facts: asking.facts };
  if (!holds || action === undefined) return { ...asked, matched: false, contribution: { kind: "none" } as RuleContribution };
  const before = proposers.get(action);
  const score = rule.score * asking.share;
  proposers.set(action, [...(before ?? []), ruleId]);
  if (before === undefined)
    proposals.push({ action, score, general: "occurrences" in rule.condition || "history" in rule.condition });
  const contribution: RuleContribution = { kind: before === undefined ? "prior" : "supports", action, score };
  return { ...asked, matched: true, contribution };
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
