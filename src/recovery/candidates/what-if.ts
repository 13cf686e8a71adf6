/**
 * What other rules would have suggested: every group that failed lately is evaluated by the rules in use and by those that are tried, with
 * what is known today. Nothing is written, and it ends after so many groups.
 */
import type { Clock } from "../../platform/clock.ts";
import type { Contribution } from "../confidence/confidence.ts";
import type { Group } from "../groups/group.ts";
import type { Records } from "../records.ts";
import type { Evaluation } from "../rules/evaluate.ts";
import type { RuleBook } from "../rules/rule-documents.ts";
import { type EvaluateFailure, failureOf } from "./evaluate-failure.ts";

export interface WhatIfDeps {
  readonly recovery: Pick<Records, "groups" | "occurrences">;
  readonly ruleBook: Pick<RuleBook, "set" | "trial">;
  readonly evaluateFailure: EvaluateFailure;
  readonly clock: Clock;
}

export interface WhatIfRequest {
  /** As `putRule` takes them, parsed; each has its id. */
  readonly rules: readonly unknown[];
  /** Groups that failed in the last so many days; default 7. */
  readonly days?: number | undefined;
  /** How many groups are looked at, at most; default 500. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface Supposed {
  readonly action: string;
  readonly confidence: number;
  /** What became of the action before, on the nearest level that knows; null: nothing is known. */
  readonly ended: Pick<Contribution, "from" | "weight" | "mean"> | null;
}

const DAY_MS = 86_400_000;
const PAGE = 100;

export async function whatIf({ recovery, ruleBook, evaluateFailure, clock }: WhatIfDeps, request: WhatIfRequest) {
  const { days = 7, limit = 500 } = request;
  const [inUse, tried] = [await ruleBook.set(), await ruleBook.trial(request.rules)];
  const since = new Date(clock.wallMs() - days * DAY_MS);
  const data: (Group & { readonly before: Supposed | null; readonly after: Supposed | null })[] = [];
  let groups = 0;
  let cursor = request.cursor;
  do {
    const page = await recovery.groups({ since, limit: Math.min(PAGE, limit - groups), cursor });
    for (const group of page.data) {
      const failure = await failureOf(recovery, group);
      const [before, after] = [await evaluateFailure(failure, group, inUse), await evaluateFailure(failure, group, tried)];
      const pair = { before: supposed(before.evaluation), after: supposed(after.evaluation) };
      if (pair.before?.action !== pair.after?.action) data.push({ ...group, ...pair });
    }
    groups += page.data.length;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && groups < limit);
  const openMessages = data.reduce((sum, one) => sum + one.openMessages, 0);
  return { days, groups, changed: data.length, openMessages, cutOff: cursor !== undefined, nextCursor: cursor ?? null, data };
}

function supposed({ recommended }: Evaluation): Supposed | null {
  if (recommended === undefined) return null;
  const { action, confidence, contributions } = recommended;
  return { action, confidence, ended: contributions.find(({ from }) => from !== "prior") ?? null };
}
