/** `makegood candidates`, `approve`, `reject` and `execute`; what an execution touches is shown first, and a person is asked. */
import { ApiError } from "../../contract/http-client.ts";
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { ask, type Conversation, confirmed, family, type Options, WAIT } from "../conversation.ts";
import { EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";
import { history, provenanceList, routeCommand } from "../route-command.ts";
import { age, listBelow, listing, percent, plural, sayFields, wrapped } from "../table.ts";
import { watched } from "./redrive.ts";

type Candidate = AnswerOf<"getCandidate">;

const GROUP_INSTEAD = "is the number of a candidate, as `makegood candidates list` shows it; `execute --group` takes a group's";
type Listed = AnswerOf<"listCandidates">["data"][number];
const sure = ["sure", ({ confidence }: Listed) => percent(confidence)] as const;
const failure = ["failure", ({ error_code, topic }: Listed) => `${error_code}  ${topic}`] as const;
const state = ["decision", "execution_status", "occurrence_count"] as const;
const columns = ["candidate_id", "group_id", "selected_action", sure, ...state] as const;
const candidateList = listing<Listed>([...columns, failure]);
const wideList = listing<Listed>([...columns, "owner", "note", failure]);

/** A change of a candidate by one option; the fields that it is not about are not offered. */
const NO_OTHER = { selected_action: null, execution_status: null, owner: null, note: null };
const sayStatus = (io: Io, { candidate_id, execution_status }: Candidate): void =>
  say(io, `candidate ${candidate_id} is ${execution_status} now`);

export const commands = [
  family("candidates", "what is suggested for each group, and what became of it", [
    routeCommand("listCandidates", {
      name: "list",
      isDefault: true,
      example: "candidates list --decision pending --order size --since 24h",
      options: { "--wide": "with owners and notes" },
      show: (io, page, { options }) => (options.wide === true ? wideList : candidateList)(io, page),
    }),
    routeCommand("getCandidate", { name: "show", show: showCandidate }),
    routeCommand("updateCandidate", {
      name: "choose",
      about: "take another action than the one that is suggested; approvals that were given lapse",
      flags: { ...NO_OTHER, selected_action: "action" },
      needs: ["selected_action"],
      example: 'candidates choose 12 --action retry_exponential --reason "the receiver is back"',
      show: (io, { candidate_id, selected_action }) => say(io, `candidate ${candidate_id} is to do ${selected_action} now`),
    }),
    routeCommand("updateCandidate", {
      name: "settle",
      about: "say what became of an execution that is unknown, because its process died",
      flags: NO_OTHER,
      options: { "--as <outcome>": "succeeded or failed" },
      example: 'candidates settle 12 --as failed --reason "looked: nothing was sent"',
      async before(_, input, { as }) {
        if (as !== "succeeded" && as !== "failed") throw new Stop("what became of it? Give --as succeeded or --as failed");
        return { input: { ...input, execution_status: as } };
      },
      show: sayStatus,
    }),
    routeCommand("updateCandidate", {
      name: "rollback",
      about: "undo what an execution did, where something undoes it: closes breakers, releases the group",
      flags: NO_OTHER,
      example: 'candidates rollback 12 --reason "opened by mistake"',
      before: async (_, input) => ({ input: { ...input, execution_status: "rolled_back" } }),
      show: sayStatus,
    }),
    history("candidate"),
    routeCommand("claimCandidate", {
      name: "claim",
      example: "candidates claim 12",
      show: (io, { candidate_id, selected_action, execution_id, lease_until, group }) => {
        say(io, `${selected_action} of ${plural(group.open_reports, "reported failure")} is yours until ${lease_until}`);
        say(io, `  then: makegood candidates outcome ${candidate_id} --execution-id ${execution_id} --healed N --failed N`);
      },
    }),
    routeCommand("reportOutcome", {
      name: "outcome",
      example: "candidates outcome 12 --execution-id 0193… --healed 5 --failed 0",
      show: (io, { candidate_id, execution_status }) => say(io, `candidate ${candidate_id} is ${execution_status}`),
    }),
  ]),
  routeCommand("approveCandidate", { name: "approve", example: 'approve 12 --reason "the receiver is back"', show: sayDecision }),
  routeCommand("rejectCandidate", { name: "reject", example: 'reject 12 --reason "it was mended by hand"', show: sayDecision }),
  routeCommand("executeCandidate", {
    name: "execute",
    args: { id: "[candidate]" },
    flags: { delay_ms: "delay" },
    about: "do what a candidate suggests, once; shows what it touches and asks",
    example: "execute 12 --canary 10 --rate 100 --wait\n  $ makegood execute --group 7 --reason 'the receiver is back'",
    options: { "--group <group>": "instead: the current candidate of this group", ...WAIT },
    act: execute,
  }),
];

function sayDecision(io: Io, { candidate_id, decision, approvals_missing, hint }: Candidate): void {
  const missing = decision === "rejected" || approvals_missing === 0 ? "" : `; ${plural(approvals_missing, "approval")} missing`;
  say(io, `candidate ${candidate_id} is ${decision}${missing}`);
  if (hint !== undefined) say(io, ...wrapped(io, hint, "  "));
  else if (decision === "approved" && approvals_missing === 0) say(io, `  run it: makegood execute ${candidate_id}`);
}

async function execute(asking: Conversation, input: InputOf<"executeCandidate">, options: Options): Promise<ExitCode> {
  const { io, json } = asking;
  const seen = await wanted(asking, input.id as string | undefined, options.group as string | undefined);
  const { candidate_id: id, selected_action, blast_radius: radius, version, group } = seen;
  if (!json) {
    say(io, `candidate ${id} of group ${group.group_id}: ${group.error_code} in ${group.topic}`);
    sayRadius(io, seen);
  }
  let body = { ...input, id };
  if (options.yes !== true && input.redrive?.confirm === undefined) {
    await confirmed(io, `Run ${selected_action ?? "it"} on ${plural(radius.messages, "message")}?`);
    // What was shown is what is agreed to.
    body = { version, ...body, redrive: { confirm: radius.messages, seen: radius.seen, ...input.redrive } };
  }
  const { value, text } = await ask(asking, "executeCandidate", body);
  const { redrive_id, execution_status } = value;
  // What is only watched from now on is done.
  if (options.wait === true && redrive_id !== null && execution_status === "executing") return watched(asking, redrive_id);
  tell(asking, text, () => {
    say(io, `candidate ${id} is ${execution_status}${cameTo(value)}`);
    if (redrive_id !== null) say(io, `  follow it: makegood redrive status ${redrive_id} --watch`);
  });
  return execution_status === "failed" ? EXIT.failed : EXIT.ok;
}

function cameTo({ execution_status, selected_action, action, owner, group: { group_id, open_messages } }: Candidate): string {
  if (execution_status !== "succeeded") return "";
  const still = open_messages > 0 ? `; ${plural(open_messages, "message")} of group ${group_id} still wait` : "";
  if (selected_action === "notify_ops") return `: operators were told${still}`;
  return action?.action_type === "manual" ? `: group ${group_id} is held for ${owner ?? "operators"}` : "";
}

async function wanted({ client }: Conversation, id: string | undefined, group: string | undefined): Promise<Candidate> {
  if ((id === undefined) === (group === undefined)) throw new Stop("which candidate? Give its number, or --group with a group's");
  if (id === undefined) {
    const { candidate } = await client.getGroup({ id: group as string });
    if (candidate !== null) return client.getCandidate({ id: candidate.candidate_id });
    throw new Stop(`nothing is suggested for group ${group} yet: makegood suggest ${group}`, EXIT.conflict);
  }
  try {
    return await client.getCandidate({ id });
  } catch (error) {
    if (!(error instanceof ApiError && error.code === "candidate_not_found")) throw error;
    const known = await client.getGroup({ id }).catch(() => null);
    const meant = known?.candidate;
    const hint = meant ? `; group ${id} is there, its candidate is ${meant.candidate_id}` : "";
    throw new ApiError(error.status, { ...error.problem, detail: `${error.message}: ${id} ${GROUP_INSTEAD}${hint}` });
  }
}

const CARRIED = "a copy is on its way to another receiver";
const LEFT_OUT: Readonly<Record<string, string>> = { generation_cap: "replayed often enough", carried: CARRIED };

function sayRadius(io: Io, { selected_action, blast_radius }: Candidate): void {
  const { messages, over_generation, left_out, topics, tenants, oldest_at } = blast_radius;
  const old = oldest_at === null ? "" : `, the oldest ${age(oldest_at)} old`;
  say(io, `${selected_action ?? "no action"} touches ${plural(messages, "message")} of ${plural(tenants, "tenant")}${old}`);
  for (const { topic, messages: count } of topics) say(io, `  ${String(count).padStart(8)}  ${topic}`);
  const left = Object.entries({ ...left_out, generation_cap: over_generation }).filter(([, count]) => count > 0);
  for (const [why, count] of left) say(io, `  ${String(count).padStart(8)}  left out: ${LEFT_OUT[why] ?? why}`);
}

type Reason = Candidate["rules_evaluated"][number];
const ruleOf = ["  rule", ({ rule_id }: Reason): string => `  ${rule_id}`] as const;
const because = ({ facts }: Reason): string | undefined =>
  facts.filter((one) => one.matched).map(({ field, wanted, found }) => `${field} ${wanted}; found ${found}`)[0];
const reasonList = listing<Reason>([ruleOf, ["speaks for", speaksFor], ["because", because]]);

export function speaksFor({ contribution }: Pick<Reason, "contribution">): string {
  return contribution.kind === "none" ? "" : `${contribution.action} ${percent(contribution.score)}`;
}

export const suggestions = (some: readonly { readonly action: string; readonly confidence: number }[]): string =>
  some.map(({ action, confidence }) => `${action} (${percent(confidence)})`).join(", ");

type Caused = Partial<Pick<AnswerOf<"evaluateFailure">, "cause" | "cause_detail" | "cause_certainty">>;
export const shownCause = ({ cause, cause_detail, cause_certainty }: Caused): string | null =>
  cause === undefined ? null : `${cause}${cause_detail ? `.${cause_detail}` : ""} (${percent(cause_certainty ?? 0)})`;

export function showCandidate(io: Io, candidate: Candidate): void {
  const { group, action, evaluation, approvals, approvals_missing, lapsed_reason, provenance, executed_by: by } = candidate;
  sayFields(io, {
    candidate: `${candidate.candidate_id}, round ${candidate.round} of group ${candidate.group_id}, version ${candidate.version}`,
    failure: `${group.error_code} in ${group.topic}: ${group.template}`,
    seen: plural(candidate.occurrence_count, "occurrence"),
    cause: shownCause(evaluation ?? {}),
    because: evaluation?.cause_evidence,
    evaluation: candidate.evaluation_status,
    suggested: candidate.selected_action === null ? "nothing" : `${candidate.selected_action} (${percent(candidate.confidence)})`,
    risk: action && `${action.risk}; approval: ${action.approval}`,
    decision: candidate.decision,
    approvals: approvals.map(({ actor, at, note }) => `${actor} ${age(at)} ago${note === null ? "" : ` (${note})`}`).join(", "),
    missing: approvals_missing > 0 ? plural(approvals_missing, "approval") : null,
    lapsed: lapsed_reason && `${lapsed_reason}: approve again`,
    execution: `${candidate.execution_status}${candidate.execution_status === "unknown" ? " (end it: candidates settle)" : ""}${by === null ? "" : ` by ${by}`}`,
    redrive: candidate.redrive_id,
    owner: candidate.owner,
  });
  if (candidate.note !== null) say(io, "note", ...wrapped(io, candidate.note, "  "));
  say(io, "");
  sayRadius(io, candidate);
  const matched = candidate.rules_evaluated.filter((rule) => rule.matched);
  listBelow(io, reasonList, matched, "Why:");
  const others = evaluation?.alternatives ?? [];
  if (others.length > 0) say(io, "", ...wrapped(io, `Else: ${suggestions(others)}`, ""));
  for (const note of evaluation?.notes ?? []) say(io, ...wrapped(io, `note: ${note}`, ""));
  listBelow(io, provenanceList, provenance ?? []);
}
