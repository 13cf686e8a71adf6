/**
 * `makegood evaluate`: what the rules say about a failure, without keeping anything.
 */
import type { Command } from "commander";
import { withApi } from "../api.ts";
import { askAndShow } from "../ask.ts";
import { EXIT } from "../exit-code.ts";
import { fittedTable, percent, sayFields } from "../fitted.ts";
import { integer } from "../integer.ts";
import { complain, type Io, readInput, say } from "../io.ts";
import type { EvaluateJson } from "../json-types.ts";
import type { Run } from "../run.ts";

interface Options {
  readonly errorCode?: string;
  readonly message?: string;
  readonly file?: string;
  readonly topic?: string;
  readonly sink?: string;
  readonly skill?: string;
  readonly occurrences?: number;
}

export function evaluateCommand(program: Command, run: Run): void {
  program
    .command("evaluate")
    .description("ask the rules about a failure; keeps nothing")
    .option("--error-code <code>")
    .option("--message <text>", "the text of the error")
    .option("--file <path>", "the message, or a whole stack trace; - is standard input")
    .option("--topic <topic>")
    .option("--sink <sink>")
    .option("--skill <skill>")
    .option("--occurrences <n>", "as if it had happened so often", integer)
    .addHelpText("after", '\nExample:\n  $ makegood evaluate --error-code TIMEOUT --message "no answer within 15 s"')
    .action((options: Options) =>
      run(async (context) => {
        const input = options.file === undefined ? { text: options.message } : await readInput(context.io, options.file);
        if ("fault" in input) {
          complain(context.io, `makegood: no message: ${input.fault}`);
          return EXIT.usage;
        }
        const body = {
          error_code: options.errorCode,
          error_message: input.text,
          topic: options.topic,
          sink: options.sink,
          skill_id: options.skill,
          occurrence_count: options.occurrences,
        };
        const asked = ["POST", "/api/v1/recovery/evaluate", body] as const;
        return withApi(context.io, context.config, (api) =>
          askAndShow<EvaluateJson>(context, api, asked, (answer) => show(context.io, answer)),
        );
      }),
    );
}

function show(io: Io, answer: EvaluateJson): void {
  const { recommended_action, confidence, alternatives, rules_evaluated, template, group_id, notes } = answer;
  sayFields(io, {
    suggested:
      recommended_action === null
        ? "nothing reaches the confidence that is asked for"
        : `${recommended_action} (${percent(confidence)})`,
    else: alternatives.map((one) => `${one.action} (${percent(one.confidence)})`).join(", "),
    "read as": [answer.error_code, ...answer.error_classes].filter((one) => one !== "").join(", "),
    template,
    group: group_id ?? "a new one",
  });
  say(io, "");
  const rows = rules_evaluated.map(({ rule_id, priority, matched, skipped, facts, contribution }) => {
    const what = contribution.kind === "none" ? "" : `${contribution.action} ${percent(contribution.score)}`;
    const fact = facts.find((one) => one.matched === matched) ?? facts[0];
    return [
      rule_id,
      String(priority),
      matched ? "yes" : "no",
      what,
      skipped ?? (fact === undefined ? "" : `${fact.field}: ${fact.wanted}`),
    ];
  });
  fittedTable(io, ["rule", "priority", "holds", "speaks for", "because"], rows, 28);
  for (const note of notes) say(io, `note: ${note}`);
}
