/**
 * What may be set about an action over the API, read from untrusted JSON with every fault named at once: whether it is used, who must
 * approve, its risk class, its priority, its template. Members that are absent stay as they are in code.
 */
import { errorText } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import { Mistakes, shown } from "../rules/mistakes.ts";
import type { ApprovalPolicy, RecoveryAction, RiskClass } from "./action.ts";
import { TEMPLATE_LIMITS, type TemplateValues, templateFault } from "./template.ts";

export interface ActionSettings {
  readonly enabled?: boolean | undefined;
  readonly approval?: ApprovalPolicy | undefined;
  readonly risk?: RiskClass | undefined;
  readonly priority?: number | undefined;
  /** Members over those of the code. */
  readonly template?: TemplateValues | undefined;
}

export type ReadSettings =
  | { readonly ok: true; readonly settings: ActionSettings }
  | { readonly ok: false; readonly mistakes: readonly Fault[] };

const MEMBERS = ["enabled", "approval", "risk", "priority", "template"];

export function readSettings(text: string, action: Pick<RecoveryAction, "template">): ReadSettings {
  const mistakes = new Mistakes();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    mistakes.add("", `is not JSON: ${errorText(error)}`);
    return { ok: false, mistakes: mistakes.list };
  }
  const given = mistakes.object(value, "", MEMBERS);
  if (given === undefined) return { ok: false, mistakes: mistakes.list };
  const oneOf = <T extends string>(name: string, words: readonly T[]): T | undefined => {
    const word = given[name];
    if (word === undefined || words.includes(word as T)) return word as T | undefined;
    mistakes.add(name, `must be one of ${words.join(", ")}`);
    return undefined;
  };
  if (given.enabled !== undefined && typeof given.enabled !== "boolean") mistakes.add("enabled", "must be true or false");
  const settings: ActionSettings = {
    enabled: typeof given.enabled === "boolean" ? given.enabled : undefined,
    approval: oneOf("approval", ["none", "one", "two"]),
    risk: oneOf("risk", ["safe", "risky", "forbidden"]),
    priority: given.priority === undefined ? undefined : mistakes.number(given.priority, "priority", 0, 1_000, true),
    template: given.template === undefined ? undefined : readTemplate(given.template, action.template, mistakes),
  };
  return mistakes.some ? { ok: false, mistakes: mistakes.list } : { ok: true, settings };
}

/** Only members that the code knows, each of its type: a template adds no behaviour. */
function readTemplate(value: unknown, known: TemplateValues, mistakes: Mistakes): TemplateValues | undefined {
  const given = mistakes.object(value, "template", Object.keys(known));
  if (given === undefined) return undefined;
  const out: Record<string, string | number | boolean> = {};
  for (const name of Object.keys(known)) {
    const set = given[name];
    if (set === undefined) continue;
    const path = `template.${name}`;
    const type = typeof known[name];
    const fault =
      typeof set === type
        ? templateFault(name, set as string | number | boolean)
        : `must be a ${type === "string" ? "text" : type}`;
    if (fault === null) out[name] = set as string | number | boolean;
    else mistakes.add(path, fault);
  }
  return out;
}

/** What is wrong with an action that a program registers. */
export function actionFaults({ actionCode, priority, template, plan, ...rest }: RecoveryAction): string[] {
  const faults: string[] = [];
  for (const name of ["appliesToErrorCodes", "appliesToTopics"] as const) {
    const list: unknown = rest[name];
    if (!Array.isArray(list) || !list.every((each) => typeof each === "string")) faults.push(`${name} must be a list of texts`);
  }
  if (typeof plan !== "function") faults.push("plan must be a function");
  if (!/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(actionCode))
    faults.push(`actionCode ${shown(actionCode)} must be small letters, digits, _ . and -`);
  if (!Number.isInteger(priority) || priority < 0 || priority > 1_000)
    faults.push("priority must be a whole number from 0 to 1000");
  const members = Object.entries(template);
  if (members.length > TEMPLATE_LIMITS.membersMax) faults.push(`template has more than ${TEMPLATE_LIMITS.membersMax} members`);
  for (const [name, value] of members) {
    const fault = templateFault(name, value);
    if (fault !== null) faults.push(`template.${name} ${fault}`);
  }
  return faults;
}
