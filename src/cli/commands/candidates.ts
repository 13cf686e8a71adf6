/**
 * `makegood candidates list|show`, `approve`, `reject` and `execute`. Before an execution its blast radius is shown, and a person is
 * asked.
 */
import { type Command, Option } from "commander";
import { EXECUTION_STATUSES } from "../../store/candidate-state.ts";
import type { Api } from "../api-on.ts";
import { ask, askAndShow, conversation, part, queryOf } from "../ask.ts";
import { confirmed } from "../confirm.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { age, fittedTable, percent, plural, sayFields, wrapped } from "../fitted.ts";
import { integer } from "../integer.ts";
import { type Io, printJson, say } from "../io.ts";
import type { BlastRadiusJson, CandidateDetailJson, CandidateJson, ListJson, RedriveJson } from "../json-types.ts";
import { exitOf, follow, sayEnd } from "../progress.ts";
import type { CommandContext, Run } from "../run.ts";
import { type PlanOptions, planBody, planOptions } from "./redrive-plan.ts";

const CANDIDATES = "/api/v1/recovery/candidates";

interface ListOptions {
  readonly group?: number;
  readonly decision?: string;
  readonly execution?: string;
  readonly action?: string;
  readonly all?: boolean;
  readonly limit: string;
  readonly cursor?: string;
}

interface DecideOptions {
  readonly reason?: string;
  readonly ifVersion?: number;
}

interface ExecuteOptions extends DecideOptions, PlanOptions {
  readonly yes?: boolean;
  readonly confirm?: number;
  readonly seen?: string;
  readonly wait?: boolean;
}

export function candidatesCommand(program: Command, run: Run): void {
  const candidates = program.command("candidates").description("what is suggested for each group, and what became of it");
  candidates
    .command("list", { isDefault: true })
    .description("newest first, the latest of each group")
    .option("--group <group>", "of one group", integer)
    .addOption(new Option("--decision <decision>").choices(["pending", "approved", "rejected"]))
    .addOption(new Option("--execution <status>").choices([...EXECUTION_STATUSES]))
    .option("--action <code>")
    .option("--all", "those of earlier rounds, too")
    .option("--limit <n>", "how many at most", "50")
    .option("--cursor <cursor>", "where the page before ended")
    .action(({ group, decision, execution, action, all, limit, cursor }: ListOptions) =>
      conversation(run, (context, api) => {
        const query = queryOf({ group_id: group, decision, execution_status: execution, action, all, limit, cursor });
        return askAndShow<ListJson<CandidateJson>>(context, api, ["GET", `${CANDIDATES}${query}`], (page) =>
          showCandidates(context.io, page),
        );
      }),
    );
  candidates
    .command("show <candidate>")
    .description("one candidate: the evidence, who approved, what an execution would touch")
    .option("--provenance", "everything that was done to it, too")
    .action((id: string, { provenance }: { provenance?: boolean }) =>
      conversation(run, (context, api) => {
        const path = `${CANDIDATES}/${part(id)}${queryOf({ include_provenance: provenance })}`;
        return askAndShow<CandidateDetailJson>(context, api, ["GET", path], (candidate) => showCandidate(context.io, candidate));
      }),
    );
}

export function approveCommand(program: Command, run: Run): void {
  decision(program, run, "approve", "agree to what is suggested; two people are two tokens");
}

export function rejectCommand(program: Command, run: Run): void {
  decision(program, run, "reject", "decline what is suggested; it rests for a day, or until a person asks");
}

function decision(program: Command, run: Run, decide: "approve" | "reject", description: string): void {
  program
    .command(`${decide} <candidate>`)
    .description(description)
    .option("--reason <text>", "why; it becomes part of the record")
    .option("--if-version <n>", "refuse if the candidate has moved on since", integer)
    .addHelpText("after", `\nExample:\n  $ makegood ${decide} 12 --reason "the receiver is back"`)
    .action((id: string, { reason, ifVersion }: DecideOptions) =>
      conversation(run, (context, api) =>
        askAndShow<CandidateDetailJson & { hint?: string }>(
          context,
          api,
          ["POST", `${CANDIDATES}/${part(id)}/${decide}`, { reason, version: ifVersion }],
          (candidate) => sayDecision(context.io, candidate),
        ),
      ),
    );
}

function sayDecision(
  io: Io,
  { candidate_id, decision: decided, approvals_missing, hint }: CandidateDetailJson & { hint?: string },
): void {
  const missing = decided === "rejected" || approvals_missing === 0 ? "" : `; ${plural(approvals_missing, "approval")} missing`;
  say(io, `candidate ${candidate_id} is ${decided}${missing}`);
  if (hint !== undefined) say(io, ...wrapped(hint, "  "));
  else if (decided === "approved" && approvals_missing === 0) say(io, `  run it: makegood execute ${candidate_id}`);
}

export function executeCommand(program: Command, run: Run): void {
  const execute = program
    .command("execute <candidate>")
    .description("do what is suggested, once; shows what it touches and asks")
    .option("--reason <text>", "why; it becomes part of the record")
    .option("--if-version <n>", "refuse if the candidate has moved on since", integer)
    .option("--yes", "do not ask")
    .option("--confirm <n>", "do not ask, and refuse unless so many messages are touched", integer)
    .option("--seen <mark>", "only what was seen: blast_radius.seen of `candidates show --json`")
    .option("--wait", "follow it to its end; exit code 1 if anything failed");
  planOptions(execute)
    .addHelpText("after", "\nExample:\n  $ makegood execute 12 --canary 10 --rate 100 --wait")
    .action((id: string, options: ExecuteOptions) => conversation(run, (context, api) => executeOne(context, api, id, options)));
}

async function executeOne(context: CommandContext, api: Api, id: string, options: ExecuteOptions): Promise<ExitCode> {
  const { io, json } = context;
  const seen = await ask<CandidateDetailJson>(context, api, "GET", `${CANDIDATES}/${part(id)}`);
  if (!seen.ok) return seen.exit;
  const { selected_action, blast_radius: radius, version } = seen.value;
  if (!json) sayRadius(io, selected_action, radius);
  const answer = await confirmed(io, options, `Run ${selected_action ?? "it"} on ${plural(radius.messages, "message")}?`);
  if (answer === "no") return EXIT.usage;
  const confirm = answer === "asked" ? radius.messages : options.confirm;
  const mark = options.seen ?? (answer === "asked" ? radius.seen : undefined);
  const plan = {
    ...planBody(options),
    ...(confirm === undefined ? {} : { confirm }),
    ...(mark === undefined ? {} : { seen: mark }),
  };
  const body = {
    reason: options.reason,
    // What was shown is what is agreed to.
    version: options.ifVersion ?? (answer === "asked" ? version : undefined),
    ...(Object.keys(plan).length > 0 ? { redrive: plan } : {}),
  };
  const done = await ask<CandidateDetailJson>(context, api, "POST", `${CANDIDATES}/${part(id)}/execute`, body);
  if (!done.ok) return done.exit;
  const { redrive_id, execution_status } = done.value;
  if (options.wait !== true || redrive_id === null) {
    if (json) printJson(io, done.text);
    else sayExecution(io, done.value);
    return execution_status === "failed" ? EXIT.failed : EXIT.ok;
  }
  const ended = await follow(context, api, redrive_id);
  if (!ended.ok) return ended.exit;
  if (json) printJson(io, ended.text);
  else sayEnd(io, ended.value);
  return exitOf(ended.value satisfies RedriveJson);
}

function sayExecution(io: Io, { candidate_id, execution_status, redrive_id }: CandidateDetailJson): void {
  say(io, `candidate ${candidate_id} is ${execution_status}`);
  if (redrive_id !== null) say(io, `  follow it: makegood redrive status ${redrive_id} --watch`);
}

function sayRadius(
  io: Io,
  action: string | null,
  { messages, over_generation, topics, tenants, oldest_at }: BlastRadiusJson,
): void {
  const old = oldest_at === null ? "" : `, the oldest ${age(oldest_at)} old`;
  say(io, `${action ?? "no action"} touches ${plural(messages, "message")} of ${plural(tenants, "tenant")}${old}`);
  for (const { topic, messages: count } of topics) say(io, `  ${String(count).padStart(8)}  ${topic}`);
  if (over_generation > 0) say(io, `  ${String(over_generation).padStart(8)}  left out: replayed often enough`);
}

function showCandidates(io: Io, { data, next_cursor }: ListJson<CandidateJson>): void {
  const rows = data.map((one) => [
    String(one.candidate_id),
    String(one.group_id),
    one.selected_action ?? "",
    percent(one.confidence),
    one.decision,
    one.execution_status,
    String(one.occurrence_count),
    `${one.error_code}  ${one.topic}`,
  ]);
  fittedTable(io, ["candidate", "group", "action", "sure", "decision", "execution", "seen", "failure"], rows);
  if (next_cursor !== null) say(io, "", `more: --cursor ${next_cursor}`);
}

export function showCandidate(io: Io, candidate: CandidateDetailJson): void {
  const { group, evaluation, rules_evaluated, approvals, approvals_missing, lapsed_reason, provenance } = candidate;
  sayFields(io, {
    candidate: `${candidate.candidate_id}, round ${candidate.round} of group ${candidate.group_id}, version ${candidate.version}`,
    failure: `${group.error_code} in ${group.topic}: ${group.template}`,
    seen: plural(candidate.occurrence_count, "occurrence"),
    evaluation: candidate.evaluation_status,
    suggested: candidate.selected_action === null ? "nothing" : `${candidate.selected_action} (${percent(candidate.confidence)})`,
    risk: candidate.action === null ? null : `${candidate.action.risk}; approval: ${candidate.action.approval}`,
    decision: candidate.decision,
    approvals: approvals.map(({ actor, at }) => `${actor} ${age(at)} ago`).join(", "),
    missing: approvals_missing > 0 ? plural(approvals_missing, "approval") : null,
    lapsed: lapsed_reason === null ? null : `${lapsed_reason}: approve again`,
    execution: `${candidate.execution_status}${candidate.executed_by === null ? "" : ` by ${candidate.executed_by}`}`,
    redrive: candidate.redrive_id,
    owner: candidate.owner,
    note: candidate.note,
  });
  say(io, "");
  sayRadius(io, candidate.selected_action, candidate.blast_radius);
  const matched = rules_evaluated.filter((rule) => rule.matched);
  if (matched.length > 0) {
    say(io, "", "Why:");
    const rows = matched.map(({ rule_id, contribution, facts }) => {
      const what = contribution.kind === "none" ? "" : `${contribution.action} ${percent(contribution.score)}`;
      const fact = facts.find((one) => one.matched);
      return [`  ${rule_id}`, what, fact === undefined ? "" : `${fact.field} ${fact.wanted}; found ${fact.found}`];
    });
    fittedTable(io, ["  rule", "speaks for", "because"], rows, 28);
  }
  const others = evaluation?.alternatives ?? [];
  if (others.length > 0)
    say(io, "", ...wrapped(`Else: ${others.map((one) => `${one.action} (${percent(one.confidence)})`).join(", ")}`, ""));
  if (provenance !== undefined) {
    say(io, "");
    const rows = provenance.map((one) => [one.at, one.actor, one.event_type, one.reason ?? ""]);
    fittedTable(io, ["at", "actor", "event", "reason"], rows);
  }
}
