/**
 * `makegood rules list|show|set|delete|history`, `makegood actions list|show|set`, and `makegood evaluate`: what the rules say about a failure.
 */
import type { Command } from "commander";
import type { AnswerOf } from "../../contract/table.ts";
import { confirmed, YES } from "../confirm.ts";
import { ask, type Conversation } from "../conversation.ts";
import { Stop } from "../exit-code.ts";
import { type Io, readInput, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { listing, percent, sayFields, sayJson } from "../table.ts";
import { speaksFor, suggestions } from "./candidates.ts";

type Rule = AnswerOf<"getRule">;

const RULE = { id: "<rule>" };
const ACTION = { id: "<action>" };

export function rulesCommand(program: Command, run: Run): void {
  const rules = program.command("rules").description("what is suggested when: look at the rules, change them");
  routeCommand(rules, run, "listRules", { name: "list", isDefault: true, show: ruleList });
  routeCommand(rules, run, "getRule", { name: "show", args: RULE, show: sayJson });
  routeCommand(rules, run, "putRule", {
    ...document(RULE),
    about: "make a rule or change it; an edit carries the version that `show` gave",
    example: "rules show timeout_retry > rule.json   # edit it\n  $ makegood rules set timeout_retry --file rule.json",
    show: (io, { id, version }) => say(io, `rule ${id} is version ${version} now`),
  });
  routeCommand(rules, run, "deleteRule", {
    name: "delete",
    args: RULE,
    about: "a shipped rule is switched off; the history stays; asks first",
    options: YES,
    async before(asking, { id }, options) {
      const { value: rule } = await ask(asking, "getRule", { id });
      if (options.yes !== true) ruleList(asking.io, { data: [rule] });
      await confirmed(asking.io, options, `Delete rule ${rule.id}?`);
      return undefined;
    },
    show: (io, _, { input }) => say(io, `rule ${input.id} is not asked any more`),
  });
  routeCommand(rules, run, "getRuleHistory", { name: "history", args: RULE, show: historyList });
}

export function actionsCommand(program: Command, run: Run): void {
  const actions = program.command("actions").description("what can be done about a group, and how well it worked");
  routeCommand(actions, run, "listActions", { name: "list", isDefault: true, show: actionList });
  routeCommand(actions, run, "getAction", { name: "show", args: ACTION, show: sayJson });
  routeCommand(actions, run, "putAction", {
    ...document(ACTION),
    about: "its settings as a whole: enabled, approval, risk, priority, template; what is left out is as shipped",
    show: (io, { action_code, version }) => say(io, `${action_code} is version ${version} now`),
  });
}

/** A command that sends what a file holds. */
const document = (args: typeof RULE) => ({
  name: "set",
  args,
  flags: null,
  options: { "--file <path>": "the document as JSON; - is standard input (the default)" },
  async before({ io }: Conversation, _: unknown, { file }: Readonly<Record<string, unknown>>) {
    const body = await readInput(io, file as string | undefined, "document");
    try {
      JSON.parse(body);
    } catch {
      throw new Stop("no document: it is not valid JSON");
    }
    return { body };
  },
});

const actionOf = ({ enabled, action }: Rule): string => (enabled ? action : `(off) ${action}`);

const ruleList = listing<Rule>({
  rule: "id",
  priority: "priority",
  action: actionOf,
  score: ({ score }) => percent(score),
  version: "version",
  name: "name",
});

const historyList = listing<AnswerOf<"getRuleHistory">["data"][number]>({
  version: "version",
  at: "at",
  actor: "actor",
  rule({ rule }) {
    const one = rule as Rule | null;
    return one === null ? "deleted" : `${actionOf(one)} ${percent(one.score)}, priority ${one.priority}`;
  },
});

const actionList = listing<AnswerOf<"getAction">>({
  action: ({ is_active, action_code }) => (is_active ? action_code : `(off) ${action_code}`),
  type: "action_type",
  priority: "priority",
  risk: "risk",
  approval: "approval",
  healed: ({ successes, failures }) => `${Math.round(successes)}/${Math.round(successes + failures)}`,
  name: "name",
});

type Evaluation = AnswerOf<"evaluateFailure">;

export function evaluateCommand(program: Command, run: Run): void {
  routeCommand(program, run, "evaluateFailure", {
    name: "evaluate",
    example: 'evaluate --error-code TIMEOUT --message "no answer within 15 s"',
    flags: { error_message: "message", skill_id: "skill", occurrence_count: "occurrences", error_type: null, raw: null },
    options: { "--file <path>": "the message, or a whole stack trace; - is standard input" },
    async before({ io }, input, { file }) {
      return file === undefined
        ? undefined
        : { input: { ...input, error_message: await readInput(io, file as string, "message") } };
    },
    show: showEvaluation,
  });
}

const askedList = listing<Evaluation["rules_evaluated"][number]>({
  rule: "rule_id",
  priority: "priority",
  holds: "matched",
  "speaks for": speaksFor,
  because({ skipped, facts, matched }) {
    const fact = facts.find((one) => one.matched === matched) ?? facts[0];
    return skipped ?? (fact && `${fact.field}: ${fact.wanted}`);
  },
});

function showEvaluation(io: Io, answer: Evaluation): void {
  const { recommended_action: action, confidence, alternatives, rules_evaluated, template, group_id, notes } = answer;
  sayFields(io, {
    suggested: action === null ? "nothing reaches the confidence that is asked for" : `${action} (${percent(confidence)})`,
    else: suggestions(alternatives),
    "read as": [answer.error_code, ...answer.error_classes].filter((one) => one !== "").join(", "),
    template,
    group: group_id ?? "a new one",
  });
  say(io, "");
  askedList(io, { data: rules_evaluated });
  for (const note of notes) say(io, `note: ${note}`);
}
