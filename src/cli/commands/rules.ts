/**
 * `makegood rules list|show|set|delete|history` and `makegood actions list|show|set`.
 */
import { type Command, Option } from "commander";
import { withApi } from "../api.ts";
import { askAndShow, conversation, part, queryOf } from "../ask.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { age, fittedTable, percent } from "../fitted.ts";
import { integer } from "../integer.ts";
import { complain, type Io, readInput, say } from "../io.ts";
import type { ActionJson, ListJson } from "../json-types.ts";
import type { CommandContext, Run } from "../run.ts";

const RULES = "/api/v1/recovery/rules";
const ACTIONS = "/api/v1/recovery/actions";
const TYPES = ["retry", "fallback", "escalate", "notify", "reconfigure", "rollback", "manual", "skip"];

interface RuleJson {
  readonly id: string;
  readonly version: number;
  readonly name: string;
  readonly priority: number;
  readonly enabled: boolean;
  readonly condition: unknown;
  readonly action: string;
  readonly score: number;
}

interface HistoryJson {
  readonly version: number;
  readonly actor: string;
  readonly at: string;
  readonly rule: RuleJson | null;
}

export function rulesCommand(program: Command, run: Run): void {
  const rules = program.command("rules").description("what is suggested when: look at the rules, change them");
  rules
    .command("list", { isDefault: true })
    .description("in the order in which they are asked")
    .action(() =>
      conversation(run, (context, api) =>
        askAndShow<ListJson<RuleJson>>(context, api, ["GET", RULES], ({ data }) => showRules(context.io, data)),
      ),
    );
  rules
    .command("show <rule>")
    .description("one rule as JSON, ready to be edited and set")
    .action((id: string) =>
      conversation(run, (context, api) =>
        askAndShow<RuleJson>(context, api, ["GET", `${RULES}/${part(id)}`], (rule) => sayJson(context.io, rule)),
      ),
    );
  rules
    .command("set <rule>")
    .description("make a rule or change it; an edit carries the version that `show` gave")
    .option("--file <path>", "the rule as JSON; - is standard input (the default)")
    .addHelpText(
      "after",
      "\nExample:\n  $ makegood rules show timeout_retry > rule.json   # edit it\n  $ makegood rules set timeout_retry --file rule.json",
    )
    .action((id: string, { file }: { file?: string }) =>
      run((context) =>
        put(context, `${RULES}/${part(id)}`, file, (rule: RuleJson) => `rule ${rule.id} is version ${rule.version} now`),
      ),
    );
  rules
    .command("delete <rule>")
    .description("a shipped rule is switched off; the history stays")
    .option("--if-version <n>", "refuse if it has moved on since", integer)
    .action((id: string, { ifVersion }: { ifVersion?: number }) =>
      conversation(run, (context, api) =>
        askAndShow(context, api, ["DELETE", `${RULES}/${part(id)}`, { version: ifVersion }], () =>
          say(context.io, `rule ${id} is not asked any more`),
        ),
      ),
    );
  rules
    .command("history <rule>")
    .description("every version, newest first")
    .action((id: string) =>
      conversation(run, (context, api) =>
        askAndShow<ListJson<HistoryJson>>(context, api, ["GET", `${RULES}/${part(id)}/history`], ({ data }) => {
          const what = ({ rule }: HistoryJson): string =>
            rule === null
              ? "deleted"
              : `${rule.enabled ? "" : "(off) "}${rule.action} ${percent(rule.score)}, priority ${rule.priority}`;
          const rows = data.map((one) => [String(one.version), `${age(one.at)} ago`, one.actor, what(one)]);
          fittedTable(context.io, ["version", "when", "actor", "rule"], rows);
        }),
      ),
    );
}

export function actionsCommand(program: Command, run: Run): void {
  const actions = program.command("actions").description("what can be done about a group, and how well it worked");
  actions
    .command("list", { isDefault: true })
    .description("by priority")
    .addOption(new Option("--type <type>", "only of this type").choices(TYPES))
    .action(({ type }: { type?: string }) =>
      conversation(run, (context, api) =>
        askAndShow<ListJson<ActionJson>>(context, api, ["GET", `${ACTIONS}${queryOf({ action_type: type })}`], ({ data }) =>
          showActions(context.io, data),
        ),
      ),
    );
  actions
    .command("show <action>")
    .description("one action as JSON")
    .action((code: string) =>
      conversation(run, (context, api) =>
        askAndShow<ActionJson>(context, api, ["GET", `${ACTIONS}/${part(code)}`], (action) => sayJson(context.io, action)),
      ),
    );
  actions
    .command("set <action>")
    .description("its settings as a whole: enabled, approval, risk, priority, template; what is left out is as shipped")
    .option("--file <path>", "the settings as JSON; - is standard input (the default)")
    .addHelpText("after", '\nExample:\n  $ echo \'{"approval":"two","version":1}\' | makegood actions set skip_task')
    .action((code: string, { file }: { file?: string }) =>
      run((context) =>
        put(
          context,
          `${ACTIONS}/${part(code)}`,
          file,
          (action: ActionJson) => `${action.action_code} is version ${action.version} now`,
        ),
      ),
    );
}

async function put<T>(
  context: CommandContext,
  path: string,
  file: string | undefined,
  words: (value: T) => string,
): Promise<ExitCode> {
  const { io, config } = context;
  const input = await readInput(io, file);
  const document = "text" in input ? parsed(input.text) : input;
  if ("fault" in document) {
    complain(io, `makegood: no document: ${document.fault}`);
    return EXIT.usage;
  }
  return withApi(io, config, (api) =>
    askAndShow<T>(context, api, ["PUT", path, document.value], (value) => say(io, words(value))),
  );
}

function parsed(text: string): { value: unknown } | { fault: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { fault: "it is not valid JSON" };
  }
}

function sayJson(io: Io, value: unknown): void {
  say(io, ...JSON.stringify(value, null, 2).split("\n"));
}

function showRules(io: Io, rules: readonly RuleJson[]): void {
  const rows = rules.map((rule) => [
    rule.id,
    String(rule.priority),
    rule.enabled ? rule.action : `(off) ${rule.action}`,
    percent(rule.score),
    String(rule.version),
    rule.name,
  ]);
  fittedTable(io, ["rule", "priority", "action", "score", "version", "name"], rows);
}

function showActions(io: Io, actions: readonly ActionJson[]): void {
  const rows = actions.map((action) => [
    action.is_active ? action.action_code : `(off) ${action.action_code}`,
    action.action_type,
    String(action.priority),
    action.risk,
    action.approval,
    `${Math.round(action.successes)}/${Math.round(action.successes + action.failures)}`,
    action.name,
  ]);
  fittedTable(io, ["action", "type", "priority", "risk", "approval", "healed", "name"], rows);
}
