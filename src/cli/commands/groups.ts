/**
 * `makegood groups list|show|occurrences|merge|split|rules`, and `makegood suggest <group>`. Each takes the number of a group.
 */
import type { Command } from "commander";
import type { AnswerOf } from "../../contract/table.ts";
import { confirmed, YES } from "../confirm.ts";
import { askAndShow } from "../conversation.ts";
import { type Io, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { listing, percent, plural, sayFields, wrapped } from "../table.ts";
import { showCandidate } from "./candidates.ts";

const GROUP = { id: "<group>" };

export function groupsCommand(program: Command, run: Run): void {
  const groups = program.command("groups").description("failures that are the same: look at them, merge and split them");
  routeCommand(groups, run, "listGroups", { name: "list", isDefault: true, example: "groups list --open", show: groupList });
  routeCommand(groups, run, "getGroup", { name: "show", args: GROUP, show: showGroup });
  routeCommand(groups, run, "listOccurrences", { name: "occurrences", args: GROUP, show: occurrenceList });
  routeCommand(groups, run, "mergeGroups", {
    name: "merge",
    args: { id: "<into>", from: "<from...>" },
    example: 'groups merge 3 7 9 --reason "the same proxy, two spellings"',
    show: (io, group) => say(io, `group ${group.group_id} has ${plural(group.occurrence_count, "occurrence")} now`),
  });
  routeCommand(groups, run, "splitGroup", {
    name: "split",
    args: { id: "<group>", words: "<words...>" },
    example: 'groups split 3 "read only" --reason "a replica, not the primary"',
    show: (io, { group_id, moved }, { input }) =>
      say(io, `group ${group_id} has ${plural(moved, "occurrence")} of group ${input.id} now`),
  });
  routeCommand(groups, run, "deleteGroupRule", {
    name: "rules",
    args: {},
    access: "look",
    about: "the rules that merges and splits left; without its rule a split takes nothing more, merged groups stay merged",
    example: "groups rules --delete split-2f6c0a",
    options: { "--delete <rule>": "take this one away; what was counted stays where it is", ...YES },
    async act(asking, input, { delete: id, ...options }) {
      const { io } = asking;
      if (id === undefined) return askAndShow(asking, "listGroupRules", {}, (page) => ruleList(io, page));
      await confirmed(io, options, `Delete group rule ${id}?`);
      return askAndShow(asking, "deleteGroupRule", { ...input, id: String(id) }, () => say(io, `group rule ${id} is deleted`));
    },
  });
}

export function suggestCommand(program: Command, run: Run): void {
  const about = "ask for a fresh suggestion for a group; opens the next round where the last one is closed";
  routeCommand(program, run, "suggestGroup", { name: "suggest", args: GROUP, about, example: "suggest 3", show: showCandidate });
}

const groupList = listing<AnswerOf<"listGroups">["data"][number]>({
  group: "group_id",
  open: "open_messages",
  seen: "occurrence_count",
  last: "last_at",
  code: "error_code",
  topic: "topic",
  template: ({ held_by, template }) => `${held_by === null ? "" : `[held by ${held_by}] `}${template}`,
});

const occurrenceList = listing<AnswerOf<"listOccurrences">["data"][number]>(
  {
    ago: "at",
    source: "source",
    message: "message_id",
    state: ({ open }) => (open === null ? "" : open ? "open" : "moved on"),
    text: "error_message",
  },
  ["message"],
);

const ruleList = listing<AnswerOf<"listGroupRules">["data"][number]>({
  rule: "id",
  kind: ({ used, kind }) => (used ? kind : "not used"),
  age: "at",
  code: "error_code",
  why: ({ words, reason, actor }) => `${words.length > 0 ? `[${words.join(" ")}] ` : ""}${reason} (${actor})`,
});

function showGroup(io: Io, { why, candidate, occurrences, ...group }: AnswerOf<"getGroup">): void {
  sayFields(io, group);
  say(io, "", "Why they are together:", ...why.flatMap((line) => wrapped(io, line, "  ")));
  if (candidate !== null) {
    const { candidate_id: id, selected_action, confidence, decision, execution_status } = candidate;
    const sure = confidence === null ? "" : ` (${percent(confidence)})`;
    const suggestion = selected_action === null ? "nothing is suggested yet" : `${selected_action}${sure}`;
    say(io, "", `Suggested: ${suggestion}; candidate ${id} is ${decision}, execution ${execution_status}`);
    say(io, `  why: makegood candidates show ${id}`, `  do it: makegood execute ${id}`);
  }
  say(io, "");
  occurrenceList(io, { data: occurrences });
}
