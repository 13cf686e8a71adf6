/**
 * `makegood evaluate`: what the rules say about a failure, without keeping anything.
 */
import type { Command } from "commander";
import type { AnswerOf } from "../../contract/table.ts";
import { type Io, readInput, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { listing, percent, sayFields } from "../table.ts";
import { speaksFor, suggestions } from "./candidates.ts";

type Answer = AnswerOf<"evaluateFailure">;

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
    show,
  });
}

const ruleList = listing<Answer["rules_evaluated"][number]>({
  rule: "rule_id",
  priority: "priority",
  holds: "matched",
  "speaks for": speaksFor,
  because({ skipped, facts, matched }) {
    const fact = facts.find((one) => one.matched === matched) ?? facts[0];
    return skipped ?? (fact && `${fact.field}: ${fact.wanted}`);
  },
});

function show(io: Io, answer: Answer): void {
  const { recommended_action: action, confidence, alternatives, rules_evaluated, template, group_id, notes } = answer;
  sayFields(io, {
    suggested: action === null ? "nothing reaches the confidence that is asked for" : `${action} (${percent(confidence)})`,
    else: suggestions(alternatives),
    "read as": [answer.error_code, ...answer.error_classes].filter((one) => one !== "").join(", "),
    template,
    group: group_id ?? "a new one",
  });
  say(io, "");
  ruleList(io, { data: rules_evaluated });
  for (const note of notes) say(io, `note: ${note}`);
}
