/** `makegood groups` and `suggest`; each takes the number of a group, or a failure_match_id. */
import type { AnswerOf } from "../../contract/table.ts";
import { ask, confirmed, family, YES } from "../conversation.ts";
import { type Io, say, tell } from "../io.ts";
import { history, routeCommand } from "../route-command.ts";
import { listBelow, listing, percent, plural, sayFields, wrapped } from "../table.ts";
import { showCandidate } from "./candidates.ts";

type Group = AnswerOf<"listGroups">["data"][number];
function template({ held_by, resolved_at, resolved_in, regression, template: text }: Group): string {
  const at = resolved_in === null ? "resolved" : `resolved in ${resolved_in}`;
  const resolved = resolved_at === null ? null : regression ? "regression" : at;
  const marks = [held_by && `held by ${held_by}`, resolved].filter((mark) => mark !== null);
  return [...marks.map((mark) => `[${mark}]`), text].join(" ");
}

const open = ({ open_messages, open_reports }: Group): number => open_messages + open_reports;

type Occurrence = AnswerOf<"listOccurrences">["data"][number];
const stateOf = (one: Occurrence): string => ((one.open ?? one.open_report) ? "open" : "moved on");
const occurrenceList = listing<Occurrence>([["ago", "at"], "source", "message_id", ["state", stateOf], "error_message"]);

type Rule = AnswerOf<"listGroupRules">["data"][number];
const kindOf = ({ used, kind }: Rule) => (used ? kind : "not used");
const whyOf = ({ words, reason, actor }: Rule): string =>
  `${words.length > 0 ? `[${words.join(" ")}] ` : ""}${reason} (${actor})`;
const ruleList = listing<Rule>([["rule", "id"], ["kind", kindOf], ["age", "at"], "error_code", ["why", whyOf]]);

export const commands = [
  family("groups", "failures that are the same: look at them, merge and split them", [
    routeCommand("listGroups", {
      name: "list",
      isDefault: true,
      example: "groups list --open --order size --since 24h",
      show: listing(["group_id", ["open", open], "occurrence_count", "last_at", "error_code", "topic", ["template", template]]),
    }),
    routeCommand("getGroup", {
      name: "show",
      example: "groups show 3\n  $ makegood groups show 6f0b2c1e-9f6d-4c53-8a55-0d1f3c6b7a90",
      show: showGroup,
    }),
    routeCommand("listOccurrences", { name: "occurrences", show: occurrenceList }),
    routeCommand("mergeGroups", {
      name: "merge",
      args: { id: "<into>", from: "<from...>" },
      example: 'groups merge 3 7 9 --reason "the same proxy, two spellings"',
      show: (io, group) => say(io, `group ${group.group_id} has ${plural(group.occurrence_count, "occurrence")} now`),
    }),
    routeCommand("splitGroup", {
      name: "split",
      args: { id: "<group>", words: "<words...>" },
      example: 'groups split 3 "read only" --reason "a replica, not the primary"',
      show: (io, { group_id, moved }, { input }) =>
        say(io, `group ${group_id} has ${plural(moved, "occurrence")} of group ${input.id} now`),
    }),
    routeCommand("releaseGroup", {
      name: "release",
      example: 'groups release 3 --reason "billing is looked after"',
      show: (io, { group_id }) => say(io, `group ${group_id} is held by nobody now`),
    }),
    history("group"),
    routeCommand("resolveGroup", {
      name: "resolve",
      example: 'groups resolve 3 --in-version 1.4.2 --reason "the date is parsed now"',
      show: (io, { group_id, resolved_in, open_messages }) => {
        say(io, `group ${group_id} is resolved${resolved_in === null ? "" : ` in version ${resolved_in}`}`);
        if (open_messages > 0)
          say(io, `  ${plural(open_messages, "dead letter")} left open: makegood redrive start --group ${group_id}`);
      },
    }),
    routeCommand("deleteGroupRule", {
      name: "rules",
      args: {},
      access: "look",
      about: "the rules that merges and splits left; without its rule a split takes nothing more, merged groups stay merged",
      example: "groups rules --delete split-2f6c0a",
      options: { "--delete <rule>": "take this one away; what was counted stays where it is", ...YES },
      async act(asking, input, { delete: id, yes }) {
        const { io } = asking;
        if (id === undefined) {
          const { value, text } = await ask(asking, "listGroupRules", {});
          return tell(asking, text, () => ruleList(io, value));
        }
        if (yes !== true) await confirmed(io, `Delete group rule ${id}?`);
        await ask(asking, "deleteGroupRule", { ...input, id: String(id) });
        return tell(asking, "{}", () => say(io, `group rule ${id} is deleted`));
      },
    }),
  ]),
  routeCommand("suggestGroup", {
    name: "suggest",
    about: "ask for a fresh suggestion for a group; opens the next round where the last one is closed",
    example: "suggest 3",
    show: showCandidate,
  }),
];

function showGroup(io: Io, { why, candidate, occurrences, ...group }: AnswerOf<"getGroup">): void {
  sayFields(io, group);
  if (group.held_by !== null) say(io, `  release it: makegood groups release ${group.group_id}`);
  say(io, "", "Why they are together:", ...why.flatMap((line) => wrapped(io, line, "  ")));
  if (candidate !== null) {
    const { candidate_id: id, selected_action: action, confidence, decision, execution_status } = candidate;
    const sure = confidence === null ? "" : ` (${percent(confidence)})`;
    const suggestion = action === null ? "nothing is suggested yet" : `${action}${sure}`;
    say(io, "", `Suggested: ${suggestion}; candidate ${id} is ${decision}, execution ${execution_status}`);
    say(io, `  why: makegood candidates show ${id}`, `  do it: makegood execute ${id}`);
  }
  listBelow(io, occurrenceList, occurrences);
}
