/** `makegood rules`, `causes`, `actions`, `evaluate` (what they say of a failure), `whatif` and `recovery stats`. */
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { errorText } from "../../message/errors.ts";
import { isObject } from "../../message/json.ts";
import { type Conversation, family, type Options } from "../conversation.ts";
import { type Io, readInput, Stop, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { type Listing, listBelow, listing, percent, plural, sayFields, sayJson } from "../table.ts";
import { shownCause, speaksFor, suggestions } from "./candidates.ts";

type Rule = AnswerOf<"getRule">;
type Evaluation = AnswerOf<"evaluateFailure">;

/** Rules and signatures are deleted alike: the one that is meant is shown, and a person asked. */
const deletes = <One>(of: "Rule" | "Cause", word: string, about: string, list: Listing<One>) =>
  routeCommand(`delete${of}`, {
    name: "delete",
    about,
    async asks({ io, client }, { id }) {
      list(io, { data: [(await client[`get${of}`]({ id })) as One] });
      return `Delete ${word} ${id}?`;
    },
    show: (io, _, { input }) => say(io, `${word} ${input.id} is not asked any more`),
  });

const document = {
  name: "set",
  flags: null,
  options: { "--file <path>": "the document as JSON; - is standard input (the default)" },
  async before({ io }: Conversation, _: unknown, { file }: Options) {
    return { body: await readInput(io, file as string | undefined, "document") };
  },
};

const sets = (route: "putRule" | "putCause", word: string, words: string, one: string) =>
  routeCommand(route, {
    ...document,
    about: `make a ${word} or change it; an edit carries the version that \`show\` gave`,
    example: `${words} show ${one} > ${word}.json   # edit it\n  $ makegood ${words} set ${one} --file ${word}.json`,
    show: (io, { id, version }) => say(io, `${word} ${id} is version ${version} now`),
  });

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
  sets("putRule", "rule", "rules", "timeout_retry"),
  deletes("Rule", "rule", "a shipped rule is switched off; the history stays; asks first", ruleList),
  routeCommand("getRuleHistory", { name: "history", show: listing(["version", "at", "actor", ["rule", pastRule]]) }),
]);

type Signature = AnswerOf<"getCause">;
const causeOf = ({ enabled, cause, detail }: Signature): string =>
  isOff(enabled, detail === undefined ? cause : `${cause}.${detail}`);
const certainOf = ({ certainty }: Signature): string => percent(certainty);
const signatureList = listing<Signature>([["signature", "id"], ["cause", causeOf], ["certain", certainOf], "version", "says"]);

const causes = family("causes", "how the cause of a failure is found: look at the signatures, change them, test a text", [
  routeCommand("listCauses", { name: "list", isDefault: true, show: signatureList }),
  routeCommand("getCause", { name: "show", show: sayJson }),
  sets("putCause", "signature", "causes", "deadlock"),
  deletes("Cause", "signature", "a shipped signature is switched off; asks first", signatureList),
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
const healedOf = ({ successes, failures }: Action): string => `${Math.round(successes)}/${Math.round(successes + failures)}`;

const actions = family("actions", "what can be done about a group, and how well it worked", [
  routeCommand("listActions", {
    name: "list",
    isDefault: true,
    show: listing([action, "action_type", "priority", "risk", "approval", ["healed", healedOf], "name"]),
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

type WhatIf = AnswerOf<"whatIf">;
type Other = WhatIf["data"][number];
type Stats = AnswerOf<"getStats">;

const supposed = (one: Other["before"]): string => (one === null ? "nothing" : `${one.action} ${percent(one.confidence)}`);
function endedOf({ after }: Other): string {
  const { ended = null } = after ?? {};
  if (ended === null) return "not known";
  const where = ended.from === "own" ? "here" : `by ${ended.from}`;
  return `${percent(ended.mean)} of ${Math.round(ended.weight * 10) / 10} healed ${where}`;
}

const changedList = listing<Other>([
  "group_id",
  "open_messages",
  ["now", ({ before }) => supposed(before)],
  ["then", ({ after }) => supposed(after)],
  ["ended before", endedOf],
  ["failure", ({ error_code, topic }) => `${error_code}  ${topic}`],
]);

const successOf = ({ success_rate }: Stats["outcomes"][number]): string => percent(success_rate);
const outcomeList = listing<Stats["outcomes"][number]>(["action", "healed", "failed", ["success", successOf]]);

const whatIf = routeCommand("whatIf", {
  name: "whatif",
  flags: { rules: null },
  options: {
    "--rules <file>": "a rule as JSON, or a list of them, as `rules set` takes them; - is standard input (the default)",
  },
  example: "rules show timeout_retry > rule.json   # edit it\n  $ makegood whatif --rules rule.json --days 30",
  async before({ io }, input, { rules: file }) {
    return { input: { ...input, rules: rulesOf(await readInput(io, file as string | undefined, "rules")) } };
  },
  show: showWhatIf,
});

const stats = family("recovery", "recovery as a whole", [routeCommand("getStats", { name: "stats", show: showStats })]);

/** One rule, several, or what `rules list --json` printed. */
function rulesOf(text: string): Record<string, unknown>[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Stop(`the rules are not JSON: ${errorText(error)}`);
  }
  const some = isObject(parsed) && Array.isArray(parsed.data) ? parsed.data : [parsed].flat();
  return some as Record<string, unknown>[];
}

function showWhatIf(io: Io, { days, groups, changed, open_messages, cut_off, next_cursor, data }: WhatIf): void {
  const of = `${plural(groups, "group")} of the last ${plural(days, "day")}`;
  const with_ = changed === 0 ? "" : `, with ${plural(open_messages, "open message")}`;
  say(io, `${changed} of ${of} would get another suggestion${with_}; nothing was changed`);
  listBelow(io, changedList, data);
  if (cut_off) say(io, "", `cut off: there are more groups; go on with --cursor ${next_cursor}, or look at more with --limit`);
}

function showStats(io: Io, { outcomes, decisions, evaluations, executions, ...counts }: Stats): void {
  const words = (some: Readonly<Record<string, number>>): string =>
    Object.keys(some)
      .map((state) => `${some[state]} ${state}`)
      .join(", ");
  const states = { decisions: words(decisions), evaluations: words(evaluations), executions: words(executions) };
  sayFields(io, { ...counts, ...states });
  listBelow(io, outcomeList, outcomes, "What became of each action:");
}

export const commands = [evaluate, rules, causes, actions, whatIf, stats];
