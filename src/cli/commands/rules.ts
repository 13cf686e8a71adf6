/**
 * `makegood rules list|show|set|delete|history`, `makegood causes list|show|set|delete|test`, `makegood actions list|show|set`, and `makegood evaluate`: what the rules say about a failure.
 */
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { type Conversation, family, type Options } from "../conversation.ts";
import { type Io, readInput, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listBelow, listing, percent, sayFields, sayJson } from "../table.ts";
import { shownCause, speaksFor, suggestions } from "./candidates.ts";

type Rule = AnswerOf<"getRule">;
type Evaluation = AnswerOf<"evaluateFailure">;

/** A command that sends what a file holds. */
const document = {
  name: "set",
  flags: null,
  options: { "--file <path>": "the document as JSON; - is standard input (the default)" },
  async before({ io }: Conversation, _: unknown, { file }: Options) {
    return { body: await readInput(io, file as string | undefined, "document") };
  },
};

/** A command about a failure that need not have happened. */
const failureText = {
  flags: { error_message: "message", skill_id: "skill", occurrence_count: "occurrences", error_type: null, raw: null },
  options: { "--file <path>": "the message, or a whole stack trace; - is standard input" },
  async before({ io }: Conversation, input: InputOf<"evaluateFailure">, { file }: Options) {
    return file === undefined ? {} : { input: { ...input, error_message: await readInput(io, file as string, "message") } };
  },
};

const isOff = (enabled: boolean, action: string): string => (enabled ? action : `(off) ${action}`);
const actionOf = ({ enabled, action }: Rule): string => isOff(enabled, action);
const scoreOf = ({ score }: Rule): string => percent(score);
const ruleList = listing<Rule>([["rule", "id"], "priority", ["action", actionOf], ["score", scoreOf], "version", "name"]);

function pastRule({ rule }: AnswerOf<"getRuleHistory">["data"][number]): string {
  const one = rule as Rule | null;
  return one === null ? "deleted" : `${actionOf(one)} ${percent(one.score)}, priority ${one.priority}`;
}

const rules = family("rules", "what is suggested when: look at the rules, change them", [
  routeCommand("listRules", { name: "list", isDefault: true, show: ruleList }),
  routeCommand("getRule", { name: "show", show: sayJson }),
  routeCommand("putRule", {
    ...document,
    about: "make a rule or change it; an edit carries the version that `show` gave",
    example: "rules show timeout_retry > rule.json   # edit it\n  $ makegood rules set timeout_retry --file rule.json",
    show: (io, { id, version }) => say(io, `rule ${id} is version ${version} now`),
  }),
  routeCommand("deleteRule", {
    name: "delete",
    about: "a shipped rule is switched off; the history stays; asks first",
    async asks({ io, client }, { id }) {
      ruleList(io, { data: [await client.getRule({ id })] });
      return `Delete rule ${id}?`;
    },
    show: (io, _, { input }) => say(io, `rule ${input.id} is not asked any more`),
  }),
  routeCommand("getRuleHistory", { name: "history", show: listing(["version", "at", "actor", ["rule", pastRule]]) }),
]);

type Signature = AnswerOf<"getCause">;
const causeOf = ({ enabled, cause, detail }: Signature): string =>
  isOff(enabled, detail === undefined ? cause : `${cause}.${detail}`);
const signatureList = listing<Signature>([
  ["signature", "id"],
  ["cause", causeOf],
  ["certain", ({ certainty }) => percent(certainty)],
  "version",
  "says",
]);

const causes = family("causes", "how the cause of a failure is found: look at the signatures, change them, test a text", [
  routeCommand("listCauses", { name: "list", isDefault: true, show: signatureList }),
  routeCommand("getCause", { name: "show", show: sayJson }),
  routeCommand("putCause", {
    ...document,
    about: "make a signature or change it; an edit carries the version that `show` gave",
    example: "causes show deadlock > signature.json   # edit it\n  $ makegood causes set deadlock --file signature.json",
    show: (io, { id, version }) => say(io, `signature ${id} is version ${version} now`),
  }),
  routeCommand("deleteCause", {
    name: "delete",
    about: "a shipped signature is switched off; asks first",
    async asks({ io, client }, { id }) {
      signatureList(io, { data: [await client.getCause({ id })] });
      return `Delete signature ${id}?`;
    },
    show: (io, _, { input }) => say(io, `signature ${input.id} is not asked any more`),
  }),
  routeCommand("evaluateFailure", {
    ...failureText,
    name: "test",
    about: "which cause a text has, by which signature",
    example: 'causes test --error-code http_500 --message "deadlock detected"',
    show: (io, answer) =>
      sayFields(io, { cause: shownCause(answer), signature: answer.cause_signature, because: answer.cause_evidence }),
  }),
]);

type Action = AnswerOf<"getAction">;
const action = ["action", ({ is_active, action_code }: Action) => isOff(is_active, action_code)] as const;
const healed = [
  "healed",
  ({ successes, failures }: Action) => `${Math.round(successes)}/${Math.round(successes + failures)}`,
] as const;

const actions = family("actions", "what can be done about a group, and how well it worked", [
  routeCommand("listActions", {
    name: "list",
    isDefault: true,
    show: listing([action, "action_type", "priority", "risk", "approval", healed, "name"]),
  }),
  routeCommand("getAction", { name: "show", show: sayJson }),
  routeCommand("putAction", {
    ...document,
    about: "its settings as a whole: enabled, approval, risk, priority, template; what is left out is as shipped",
    show: (io, { action_code, version }) => say(io, `${action_code} is version ${version} now`),
  }),
]);

const evaluate = routeCommand("evaluateFailure", {
  ...failureText,
  name: "evaluate",
  example: 'evaluate --error-code TIMEOUT --message "no answer within 15 s"',
  show: showEvaluation,
});

export const commands = [evaluate, rules, causes, actions];

type RuleResult = Evaluation["rules_evaluated"][number];

function because({ skipped, facts, matched }: RuleResult): string | undefined {
  const fact = facts.find((one) => one.matched === matched) ?? facts[0];
  return skipped ?? (fact && `${fact.field}: ${fact.wanted}`);
}
const asked = listing<RuleResult>(["rule_id", "priority", "matched", ["speaks for", speaksFor], ["because", because]]);

function showEvaluation(io: Io, answer: Evaluation): void {
  const { recommended_action: action, confidence, alternatives, rules_evaluated, template, group_id, notes } = answer;
  sayFields(io, {
    suggested: action === null ? "nothing reaches the confidence that is asked for" : `${action} (${percent(confidence)})`,
    else: suggestions(alternatives),
    cause: shownCause(answer),
    because: answer.cause_evidence,
    "read as": [answer.error_code, ...answer.error_classes].filter((one) => one !== "").join(", "),
    template,
    group: group_id ?? "a new one",
  });
  listBelow(io, asked, rules_evaluated);
  for (const note of notes) say(io, `note: ${note}`);
}
