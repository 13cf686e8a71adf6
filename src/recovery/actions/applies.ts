/** Whether an action fits a failure, and how many people must agree before it may run: what its own data and its own check say. */
import { errorText } from "../../message/errors.ts";
import { codeMeant, isCode, readCode } from "../rules/code-words.ts";
import { fitsGlob } from "../rules/glob.ts";
import type { ActionContext, RecoveryAction } from "./action.ts";

/** Codes as rules compare them, in any spelling, or a class such as HTTP_5XX; topics with stars. Empty lists fit everything. */
export function appliesTo(
  { appliesToErrorCodes, appliesToTopics }: Pick<RecoveryAction, "appliesToErrorCodes" | "appliesToTopics">,
  failure: { readonly errorCode: string; readonly errorMessage?: string; readonly topic: string },
): boolean {
  if (appliesToTopics.length > 0 && !appliesToTopics.some((glob) => fitsGlob(glob, failure.topic))) return false;
  if (appliesToErrorCodes.length === 0) return true;
  const code = readCode(failure.errorCode, failure.errorMessage ?? "");
  return appliesToErrorCodes.some((each) => code.classes.has(each) || isCode(code, codeMeant(each)));
}

/** What is risky always needs one. */
export function approvalsNeeded({ approval, risk }: Pick<RecoveryAction, "approval" | "risk">): number {
  const asked = { none: 0, one: 1, two: 2 }[approval];
  return risk === "risky" ? Math.max(1, asked) : asked;
}

/** Code of a program: what it throws is a reason against its own action, and against nothing else. */
export function refusalOf(action: Pick<RecoveryAction, "refusal">, about: Pick<ActionContext, "group" | "topic">): string | null {
  try {
    return action.refusal?.(about) ?? null;
  } catch (thrown) {
    return errorText(thrown);
  }
}
