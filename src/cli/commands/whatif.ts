/**
 * `makegood whatif`: what other rules would have suggested for the groups of the last days, without changing anything; and
 * `makegood recovery stats`.
 */
import type { AnswerOf } from "../../contract/table.ts";
import { errorText } from "../../message/errors.ts";
import { isObject } from "../../message/json.ts";
import { family } from "../conversation.ts";
import { type Io, readInput, Stop, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listBelow, listing, percent, plural, sayFields } from "../table.ts";

type WhatIf = AnswerOf<"whatIf">;
type Other = WhatIf["data"][number];
type Stats = AnswerOf<"getStats">;

const actionOf = (one: Other["before"]): string => (one === null ? "nothing" : `${one.action} ${percent(one.confidence)}`);

/** How the other action ended before, and where. */
function endedOf({ after }: Other): string {
  const { ended = null } = after ?? {};
  if (ended === null) return "not known";
  const where = ended.from === "own" ? "here" : `by ${ended.from}`;
  return `${percent(ended.mean)} of ${Math.round(ended.weight * 10) / 10} healed ${where}`;
}

const changedList = listing<Other>([
  "group_id",
  "open_messages",
  ["now", ({ before }) => actionOf(before)],
  ["then", ({ after }) => actionOf(after)],
  ["ended before", endedOf],
  ["failure", ({ error_code, topic }) => `${error_code}  ${topic}`],
]);

const outcomeList = listing<Stats["outcomes"][number]>([
  "action",
  "healed",
  "failed",
  ["success", ({ success_rate }) => percent(success_rate)],
]);

export const commands = [
  routeCommand("whatIf", {
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
  }),
  family("recovery", "recovery as a whole", [routeCommand("getStats", { name: "stats", show: showStats })]),
];

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
    Object.entries(some)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
  const states = { decisions: words(decisions), evaluations: words(evaluations), executions: words(executions) };
  sayFields(io, { ...counts, ...states });
  listBelow(io, outcomeList, outcomes, "What became of each action:");
}
