/** What other rules would have suggested for the groups that failed lately, with what is known today. Nothing is written. */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import { ruleReader } from "../rules/parse-rule.ts";
import { prepareRules, type RuleSet } from "../rules/rule-set.ts";
import { type EvaluatedFailure, evaluateFailure, failureOf } from "./evaluate-failure.ts";
import type { CandidateDeps } from "./found.ts";

export interface WhatIfRequest {
  /** As `putRule` takes them, parsed; each has its id. */
  readonly rules: readonly unknown[];
  /** Groups that failed in the last so many days; default 7. */
  readonly days?: number | undefined;
  /** How many groups are looked at, at most; default 500. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

const DAY_MS = 86_400_000;
const PAGE = 100;

export async function whatIf(deps: CandidateDeps, request: WhatIfRequest) {
  const { recovery, ruleBook, clock } = deps;
  const { days = 7, limit = 500 } = request;
  const inUse = await ruleBook.set();
  const tried = rulesWith(inUse, request.rules);
  const since = new Date(clock.wallMs() - days * DAY_MS);
  const data = [];
  let groups = 0;
  let cursor = request.cursor;
  do {
    const page = await recovery.groups({ since, limit: Math.min(PAGE, limit - groups), cursor });
    for (const group of page.data) {
      const failure = await failureOf(recovery, group);
      const before = supposed(await evaluateFailure(deps, failure, group, inUse));
      const after = supposed(await evaluateFailure(deps, failure, group, tried));
      if (before?.action !== after?.action) data.push({ ...group, before, after });
    }
    groups += page.data.length;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && groups < limit);
  const openMessages = data.reduce((sum, one) => sum + one.openMessages, 0);
  return { days, groups, changed: data.length, openMessages, cutOff: cursor !== undefined, nextCursor: cursor ?? null, data };
}

/** With what became of the action before, on the nearest level that knows; null: nothing is known. */
function supposed({ evaluation: { recommended } }: EvaluatedFailure) {
  if (recommended === undefined) return null;
  const { action, confidence, contributions } = recommended;
  return { action, confidence, ended: contributions.find(({ from }) => from !== "prior") ?? null };
}

/** The rules in use with these, new or in place of those with the same id. */
function rulesWith(inUse: RuleSet, documents: readonly unknown[]): RuleSet {
  const rules = new Map(inUse.rules.map(({ rule }) => [rule.id, rule]));
  const errors: Fault[] = [];
  const parseRule = ruleReader(inUse.actions);
  for (const [i, document] of documents.entries()) {
    const parsed = parseRule(document);
    if (parsed.ok) rules.set(parsed.value.id, parsed.value);
    else errors.push(...parsed.mistakes.map(({ field, detail }) => ({ field: `rules.${i}.${field}`, detail })));
  }
  try {
    if (errors.length === 0) return { ...inUse, ...prepareRules([...rules.values()], inUse.actions) };
  } catch (error) {
    errors.push({ field: "rules", detail: errorText(error) });
  }
  throw new MakegoodError("invalid_rule", errors.map(({ field, detail }) => `${field} ${detail}`).join("; "), { errors });
}
