/**
 * `makegood groups rules [--delete <rule>]`: what people merged and split, for what comes.
 */
import type { Command } from "commander";
import { askAndShow, conversation, part } from "../ask.ts";
import { age, fittedTable, short } from "../fitted.ts";
import { integer } from "../integer.ts";
import { type Io, say } from "../io.ts";
import type { GroupRuleJson, ListJson } from "../json-types.ts";
import type { Run } from "../run.ts";

const GROUP_RULES = "/api/v1/recovery/group-rules";

/** An id is shown whole: it is what `--delete` takes. */
const ID_CHARS = 44;
const CODE_CHARS = 14;

interface Options {
  readonly delete?: string;
  readonly ifVersion?: number;
}

export function groupRulesCommand(groups: Command, run: Run): void {
  groups
    .command("rules")
    .description("the rules that merges and splits left; without its rule a split takes nothing more, merged groups stay merged")
    .option("--delete <rule>", "take this one away; what was counted stays where it is")
    .option("--if-version <n>", "refuse to delete it if it has moved on since", integer)
    .addHelpText("after", "\nExample:\n  $ makegood groups rules --delete split-2f6c0a")
    .action(({ delete: id, ifVersion }: Options) =>
      conversation(run, (context, api) => {
        if (id === undefined) {
          return askAndShow<ListJson<GroupRuleJson>>(context, api, ["GET", GROUP_RULES], ({ data }) => show(context.io, data));
        }
        const path = `${GROUP_RULES}/${part(id)}`;
        return askAndShow(context, api, ["DELETE", path, { version: ifVersion }], () =>
          say(context.io, `group rule ${id} is deleted`),
        );
      }),
    );
}

function show(io: Io, data: readonly GroupRuleJson[]): void {
  const rows = data.map((rule) => [
    rule.id,
    rule.used ? (rule.kind ?? "") : "not used",
    age(rule.at),
    short(rule.error_code, CODE_CHARS),
    `${rule.words.length > 0 ? `[${rule.words.join(" ")}] ` : ""}${rule.reason} (${rule.actor})`,
  ]);
  fittedTable(io, ["rule", "kind", "age", "code", "why"], rows, ID_CHARS);
}
