/**
 * `makegood groups list|show|occurrences|merge|split|rules`, and `makegood suggest <group>`.
 */
import type { Command } from "commander";
import { askAndShow, conversation, part, queryOf } from "../ask.ts";
import { age, fittedTable, percent, plural, sayFields, wrapped } from "../fitted.ts";
import { integer } from "../integer.ts";
import { type Io, say } from "../io.ts";
import type { CandidateDetailJson, CandidateJson, GroupJson, ListJson, OccurrenceJson } from "../json-types.ts";
import type { Run } from "../run.ts";
import { showCandidate } from "./candidates.ts";
import { groupRulesCommand } from "./group-rules.ts";

interface ListOptions {
  readonly topic?: string;
  readonly errorCode?: string;
  readonly tenantId?: string;
  readonly open?: boolean;
  readonly merged?: boolean;
  readonly limit: string;
  readonly cursor?: string;
}

interface OccurrenceOptions {
  readonly open?: boolean;
  readonly tenantId?: string;
  readonly limit: string;
  readonly cursor?: string;
}

type GroupDetailJson = GroupJson & {
  readonly why: readonly string[];
  readonly candidate: CandidateJson | null;
  readonly occurrences: readonly OccurrenceJson[];
};

const GROUPS = "/api/v1/recovery/groups";

export function groupsCommand(program: Command, run: Run): void {
  const groups = program.command("groups").description("failures that are the same: look at them, merge and split them");
  groups
    .command("list", { isDefault: true })
    .description("the latest failure first")
    .option("--topic <topic>")
    .option("--error-code <code>")
    .option("--tenant-id <tenant>")
    .option("--open", "only those with open dead letters")
    .option("--merged", "those that were merged into others, too")
    .option("--limit <n>", "how many at most", "50")
    .option("--cursor <cursor>", "where the page before ended")
    .addHelpText("after", "\nExample:\n  $ makegood groups list --open")
    .action(({ topic, errorCode, tenantId, open, merged, limit, cursor }: ListOptions) =>
      conversation(run, (context, api) => {
        const query = queryOf({ topic, error_code: errorCode, tenant_id: tenantId, open, merged, limit, cursor });
        return askAndShow<ListJson<GroupJson>>(context, api, ["GET", `${GROUPS}${query}`], (page) =>
          showGroups(context.io, page),
        );
      }),
    );
  groups
    .command("show <group>")
    .description("one group: why its failures are together, what is suggested, and the newest of them")
    .action((group: string) =>
      conversation(run, (context, api) =>
        askAndShow<GroupDetailJson>(context, api, ["GET", `${GROUPS}/${part(group)}`], (shown) => showGroup(context.io, shown)),
      ),
    );
  groups
    .command("occurrences <group>")
    .description("its failures one by one, newest first")
    .option("--open", "only messages that are open dead letters")
    .option("--tenant-id <tenant>")
    .option("--limit <n>", "how many at most", "50")
    .option("--cursor <cursor>", "where the page before ended")
    .action((group: string, { open, tenantId, limit, cursor }: OccurrenceOptions) =>
      conversation(run, (context, api) => {
        const path = `${GROUPS}/${part(group)}/occurrences${queryOf({ open, tenant_id: tenantId, limit, cursor })}`;
        return askAndShow<ListJson<OccurrenceJson>>(context, api, ["GET", path], ({ data, next_cursor }) => {
          showOccurrences(context.io, data);
          more(context.io, next_cursor);
        });
      }),
    );
  mergeAndSplit(groups, run);
  groupRulesCommand(groups, run);
}

function mergeAndSplit(groups: Command, run: Run): void {
  groups
    .command("merge")
    .argument("<into>", "the group that stays")
    .argument("<from...>", "the groups that join it", (text: string, before: number[] | undefined) => [
      ...(before ?? []),
      integer(text),
    ])
    .description("the groups `from` become part of `into`, now and in the future; no count is lost")
    .requiredOption("--reason <text>", "why; it is kept with the rule")
    .addHelpText("after", '\nExample:\n  $ makegood groups merge 3 7 9 --reason "the same proxy, two spellings"')
    .action((into: string, from: number[], { reason }: { reason: string }) =>
      conversation(run, (context, api) => {
        const body = { from, reason };
        return askAndShow<GroupJson>(context, api, ["POST", `${GROUPS}/${part(into)}/merge`, body], (group) =>
          say(context.io, `group ${group.group_id} has ${plural(group.occurrence_count, "occurrence")} now`),
        );
      }),
    );
  groups
    .command("split <group> <words...>")
    .description("what contains all these words becomes a group of its own, now and in the future")
    .requiredOption("--reason <text>", "why; it is kept with the rule")
    .addHelpText("after", '\nExample:\n  $ makegood groups split 3 "read only" --reason "a replica, not the primary"')
    .action((group: string, words: string[], { reason }: { reason: string }) =>
      conversation(run, (context, api) =>
        askAndShow<GroupJson & { moved: number }>(
          context,
          api,
          ["POST", `${GROUPS}/${part(group)}/split`, { words, reason }],
          (made) => say(context.io, `group ${made.group_id} has ${plural(made.moved, "occurrence")} of group ${group} now`),
        ),
      ),
    );
}

export function suggestCommand(program: Command, run: Run): void {
  program
    .command("suggest <group>")
    .description("ask for a fresh suggestion; opens the next round where the last one is closed")
    .addHelpText("after", "\nExample:\n  $ makegood suggest 3")
    .action((group: string) =>
      conversation(run, (context, api) =>
        askAndShow<CandidateDetailJson>(context, api, ["POST", `${GROUPS}/${part(group)}/suggest`, {}], (candidate) =>
          showCandidate(context.io, candidate),
        ),
      ),
    );
}

function showGroups(io: Io, { data, next_cursor }: ListJson<GroupJson>): void {
  const rows = data.map((group) => [
    String(group.group_id),
    String(group.open_messages),
    String(group.occurrence_count),
    age(group.last_at),
    group.error_code,
    group.topic,
    `${group.held_by === null ? "" : `[held by ${group.held_by}] `}${group.template}`,
  ]);
  fittedTable(io, ["group", "open", "seen", "last", "code", "topic", "template"], rows, 20);
  more(io, next_cursor);
}

function showGroup(io: Io, { why, candidate, occurrences, ...group }: GroupDetailJson): void {
  sayFields(io, {
    group: group.group_id,
    topic: group.topic,
    sink: group.sink,
    code: group.error_code,
    template: group.template,
    "top frame": group.top_frame,
    seen: `${plural(group.occurrence_count, "occurrence")}, the last ${age(group.last_at)} ago, the first ${age(group.first_at)}`,
    open: plural(group.open_messages, "dead letter"),
    "held by": group.held_by,
    "merged into": group.merged_into,
    "match id": group.failure_match_id,
  });
  say(io, "", "Why they are together:", ...why.flatMap((line) => wrapped(line, "  ")));
  if (candidate !== null) {
    const { candidate_id, selected_action, confidence, decision, execution_status } = candidate;
    const sure = confidence === null ? "" : ` (${percent(confidence)})`;
    const suggestion = selected_action === null ? "nothing is suggested yet" : `${selected_action}${sure}`;
    say(io, "", `Suggested: ${suggestion}; candidate ${candidate_id} is ${decision}, execution ${execution_status}`);
    say(io, `  why: makegood candidates show ${candidate_id}`);
  }
  say(io, "");
  showOccurrences(io, occurrences);
}

function showOccurrences(io: Io, data: readonly OccurrenceJson[]): void {
  const state = (open: boolean | null): string => (open === null ? "" : open ? "open" : "moved on");
  const rows = data.map((one) => [age(one.at), one.source, one.message_id ?? "", state(one.open), one.error_message]);
  fittedTable(io, ["ago", "source", "message", "state", "text"], rows, 36);
}

function more(io: Io, cursor: string | null): void {
  if (cursor !== null) say(io, "", `more: --cursor ${cursor}`);
}
