/**
 * `makegood candidates list|show`, `approve`, `reject` and `execute`. Each takes the number of a candidate; `execute --group` takes a
 * group's current one. Before an execution what it touches is shown, and a person is asked.
 */
import type { Command } from "commander";
import { ApiError } from "../../contract/http-client.ts";
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { type Confirming, confirmed, WAIT, YES } from "../confirm.ts";
import { ask, type Conversation } from "../conversation.ts";
import { EXIT, type ExitCode, Stop } from "../exit-code.ts";
import { type Io, printJson, say } from "../io.ts";
import { watched } from "../progress.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { age, listing, percent, plural, sayFields, wrapped } from "../table.ts";

type Candidate = AnswerOf<"getCandidate">;

const CANDIDATE = { id: "<candidate>" };
const GROUP_INSTEAD = "is the number of a candidate, as `makegood candidates list` shows it; `execute --group` takes a group's";

export function candidatesCommand(program: Command, run: Run): void {
  const candidates = program.command("candidates").description("what is suggested for each group, and what became of it");
  routeCommand(candidates, run, "listCandidates", { name: "list", isDefault: true, show: candidateList });
  routeCommand(candidates, run, "getCandidate", { name: "show", args: CANDIDATE, show: showCandidate });
}

export function approveCommand(program: Command, run: Run): void {
  const example = 'approve 12 --reason "the receiver is back"';
  routeCommand(program, run, "approveCandidate", { name: "approve", args: CANDIDATE, example, show: sayDecision });
}

export function rejectCommand(program: Command, run: Run): void {
  const example = 'reject 12 --reason "it was mended by hand"';
  routeCommand(program, run, "rejectCandidate", { name: "reject", args: CANDIDATE, example, show: sayDecision });
}

function sayDecision(io: Io, { candidate_id, decision, approvals_missing, hint }: Candidate): void {
  const missing = decision === "rejected" || approvals_missing === 0 ? "" : `; ${plural(approvals_missing, "approval")} missing`;
  say(io, `candidate ${candidate_id} is ${decision}${missing}`);
  if (hint !== undefined) say(io, ...wrapped(io, hint, "  "));
  else if (decision === "approved" && approvals_missing === 0) say(io, `  run it: makegood execute ${candidate_id}`);
}

export function executeCommand(program: Command, run: Run): void {
  routeCommand(program, run, "executeCandidate", {
    name: "execute",
    args: { id: "[candidate]" },
    flags: { delay_ms: "delay" },
    about: "do what a candidate suggests, once; shows what it touches and asks",
    example: "execute 12 --canary 10 --rate 100 --wait\n  $ makegood execute --group 7 --reason 'the receiver is back'",
    options: { "--group <group>": "instead: the current candidate of this group", ...YES, ...WAIT },
    act: execute,
  });
}

interface ExecuteOptions extends Confirming {
  readonly group?: string;
  readonly wait?: boolean;
}

async function execute(asking: Conversation, input: InputOf<"executeCandidate">, given: ExecuteOptions): Promise<ExitCode> {
  const { io, json } = asking;
  const seen = await wanted(asking, input.id as string | undefined, given.group);
  const { candidate_id: id, selected_action, blast_radius: radius, version, group } = seen;
  if (!json) {
    say(io, `candidate ${id} of group ${group.group_id}: ${group.error_code} in ${group.topic}`);
    sayRadius(io, seen);
  }
  const answer = await confirmed(io, given, `Run ${selected_action ?? "it"} on ${plural(radius.messages, "message")}?`);
  // What was shown is what is agreed to.
  const shown = answer === "asked" ? { version, redrive: { confirm: radius.messages, seen: radius.seen } } : {};
  const plan = { ...shown.redrive, ...input.redrive };
  const redrive = Object.keys(plan).length > 0 ? { redrive: plan } : {};
  const { value, text } = await ask(asking, "executeCandidate", { ...shown, ...input, ...redrive, id });
  const { redrive_id, execution_status } = value;
  if (given.wait === true && redrive_id !== null) return watched(asking, redrive_id);
  if (json) printJson(io, text);
  else {
    say(io, `candidate ${id} is ${execution_status}`);
    if (redrive_id !== null) say(io, `  follow it: makegood redrive status ${redrive_id} --watch`);
  }
  return execution_status === "failed" ? EXIT.failed : EXIT.ok;
}

/** The candidate that is meant. A number that only a group has is said to be one. */
async function wanted(asking: Conversation, id: string | undefined, group: string | undefined): Promise<Candidate> {
  if ((id === undefined) === (group === undefined)) throw new Stop("which candidate? Give its number, or --group with a group's");
  if (id === undefined) {
    const { candidate } = (await ask(asking, "getGroup", { id: group as string })).value;
    if (candidate !== null) return (await ask(asking, "getCandidate", { id: candidate.candidate_id })).value;
    throw new Stop(`nothing is suggested for group ${group} yet: makegood suggest ${group}`, EXIT.conflict);
  }
  try {
    return (await ask(asking, "getCandidate", { id })).value;
  } catch (error) {
    if (!(error instanceof ApiError && error.code === "candidate_not_found")) throw error;
    const known = await ask(asking, "getGroup", { id }).catch(() => null);
    const meant = known?.value.candidate;
    const hint = meant ? `; group ${id} is there, its candidate is ${meant.candidate_id}` : "";
    throw new ApiError(error.status, { ...error.problem, detail: `${error.message}: ${id} ${GROUP_INSTEAD}${hint}` });
  }
}

function sayRadius(io: Io, { selected_action, blast_radius }: Candidate): void {
  const { messages, over_generation, topics, tenants, oldest_at } = blast_radius;
  const old = oldest_at === null ? "" : `, the oldest ${age(oldest_at)} old`;
  say(io, `${selected_action ?? "no action"} touches ${plural(messages, "message")} of ${plural(tenants, "tenant")}${old}`);
  for (const { topic, messages: count } of topics) say(io, `  ${String(count).padStart(8)}  ${topic}`);
  if (over_generation > 0) say(io, `  ${String(over_generation).padStart(8)}  left out: replayed often enough`);
}

const candidateList = listing<AnswerOf<"listCandidates">["data"][number]>({
  candidate: "candidate_id",
  group: "group_id",
  action: "selected_action",
  sure: ({ confidence }) => percent(confidence),
  decision: "decision",
  execution: "execution_status",
  seen: "occurrence_count",
  failure: ({ error_code, topic }) => `${error_code}  ${topic}`,
});

const reasonList = listing<Candidate["rules_evaluated"][number]>({
  "  rule": ({ rule_id }) => `  ${rule_id}`,
  "speaks for": speaksFor,
  because({ facts }) {
    const fact = facts.find((one) => one.matched);
    return fact && `${fact.field} ${fact.wanted}; found ${fact.found}`;
  },
});

type Provenance = NonNullable<Candidate["provenance"]>[number];
const provenanceList = listing<Provenance>({ at: "at", actor: "actor", event: "event_type", reason: "reason" });

/** What a rule adds to the evaluation. */
export function speaksFor({ contribution }: Pick<Candidate["rules_evaluated"][number], "contribution">): string {
  return contribution.kind === "none" ? "" : `${contribution.action} ${percent(contribution.score)}`;
}

export const suggestions = (some: readonly { readonly action: string; readonly confidence: number }[]): string =>
  some.map(({ action, confidence }) => `${action} (${percent(confidence)})`).join(", ");

export function showCandidate(io: Io, candidate: Candidate): void {
  const { group, action, evaluation, approvals, approvals_missing, lapsed_reason, provenance, executed_by: by } = candidate;
  sayFields(io, {
    candidate: `${candidate.candidate_id}, round ${candidate.round} of group ${candidate.group_id}, version ${candidate.version}`,
    failure: `${group.error_code} in ${group.topic}: ${group.template}`,
    seen: plural(candidate.occurrence_count, "occurrence"),
    evaluation: candidate.evaluation_status,
    suggested: candidate.selected_action === null ? "nothing" : `${candidate.selected_action} (${percent(candidate.confidence)})`,
    risk: action && `${action.risk}; approval: ${action.approval}`,
    decision: candidate.decision,
    approvals: approvals.map(({ actor, at }) => `${actor} ${age(at)} ago`).join(", "),
    missing: approvals_missing > 0 ? plural(approvals_missing, "approval") : null,
    lapsed: lapsed_reason && `${lapsed_reason}: approve again`,
    execution: `${candidate.execution_status}${by === null ? "" : ` by ${by}`}`,
    redrive: candidate.redrive_id,
    owner: candidate.owner,
    note: candidate.note,
  });
  say(io, "");
  sayRadius(io, candidate);
  const matched = candidate.rules_evaluated.filter((rule) => rule.matched);
  if (matched.length > 0) {
    say(io, "", "Why:");
    reasonList(io, { data: matched });
  }
  const others = evaluation?.alternatives ?? [];
  if (others.length > 0) say(io, "", ...wrapped(io, `Else: ${suggestions(others)}`, ""));
  if (provenance === undefined) return;
  say(io, "");
  provenanceList(io, { data: provenance });
}
