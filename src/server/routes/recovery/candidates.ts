/**
 * Candidates over HTTP: list, read, change, approve, reject, execute. Every change is made under the token's name and may insist on the
 * version that was read; which moves there are is the engine's business (appendix E, DR-33).
 */
import type { Actor, ExecuteOptions, Recovery, Versioned } from "../../../recovery/recovery.ts";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../../store/candidate-state.ts";
import type { CandidateFilter } from "../../../store/recovery.ts";
import { type CandidateDetailJson, candidateDetailJson, candidateJson } from "../../contract/contract-candidate.ts";
import type { Fields } from "../../contract/fields.ts";
import type { Reply } from "../../contract/problem.ts";
import { type ApiRequest, type Handler, json } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";
import { nameOf, noteOf, readBody, versionOf } from "./body.ts";
import { readQuery } from "./query.ts";
import { readPlan } from "./read-redrive.ts";
import { NAMES_HINT, notFound, numberIn, type RecoveryHandler, recoveryHandler } from "./recovery-request.ts";

const ID_MAX = Number.MAX_SAFE_INTEGER;
const OWNER_BYTES_MAX = 255;

export type CandidateHandlers = Readonly<
  Record<"list" | "get" | "patch" | "remove" | "approve" | "reject" | "execute" | "approveById", Handler>
>;

export function candidateHandlers(kernel: Kernel): CandidateHandlers {
  const make = (handle: RecoveryHandler): Handler => recoveryHandler(kernel, handle);
  const decides = (decide: "approve" | "reject"): Handler =>
    make((recovery, request, actor) =>
      withCandidate(request, async (candidateId) => {
        const by = await readBody(request, (fields) => versioned(request, fields, actor), { optional: true });
        if (!by.ok) return by.reply;
        await recovery[decide](candidateId, by.value);
        return answer(recovery, request, candidateId);
      }),
    );
  return {
    list: make(list),
    get: make((recovery, request) =>
      withCandidate(request, async (candidateId) => {
        const query = readQuery(request.query, (read) => read.boolean("include_provenance"));
        return query.ok ? answer(recovery, request, candidateId, query.value ?? false) : query.reply;
      }),
    ),
    patch: make((recovery, request, actor) => withCandidate(request, (id) => patch(recovery, request, actor, id))),
    // EV-48: what was suggested stays on record; to delete it is to reject it.
    remove: decides("reject"),
    approve: decides("approve"),
    reject: decides("reject"),
    execute: make((recovery, request, actor) =>
      withCandidate(request, async (candidateId) => {
        const asked = await readBody(request, (fields) => executeOptions(request, fields, actor), { optional: true });
        if (!asked.ok) return asked.reply;
        await recovery.execute(candidateId, asked.value);
        return answer(recovery, request, candidateId);
      }),
    ),
    approveById: make(approveById),
  };
}

/** EV-48's form of a decision: the candidate stands in the body. */
async function approveById(recovery: Recovery, request: ApiRequest, actor: Actor): Promise<Reply> {
  const asked = await readBody(request, (fields) => {
    const candidateId = fields.integer("candidate_id", 1, ID_MAX);
    if (!fields.has("candidate_id")) fields.fault("candidate_id", "is missing");
    const decision = fields.oneOf("decision", ["approved", "rejected"]) ?? "approved";
    return { candidateId: candidateId ?? 0, decision, by: versioned(request, fields, actor) };
  });
  if (!asked.ok) return asked.reply;
  const { candidateId, decision, by } = asked.value;
  await recovery[decision === "approved" ? "approve" : "reject"](candidateId, by);
  return answer(recovery, request, candidateId);
}

async function list(recovery: Recovery, request: ApiRequest): Promise<Reply> {
  const query = readQuery(request.query, (read): CandidateFilter => {
    const all = read.boolean("all") ?? false;
    return {
      groupId: read.integer("group_id", 1, ID_MAX),
      decision: read.oneOf("decision", DECISIONS),
      evaluationStatus: read.oneOf("evaluation_status", EVALUATION_STATUSES),
      executionStatus: read.oneOf("execution_status", EXECUTION_STATUSES),
      action: read.text("action"),
      current: !all,
      ...read.page(),
    };
  });
  if (!query.ok) return query.reply;
  const { data, nextCursor } = await recovery.candidates(query.value);
  return json(200, { data: data.map(({ candidate, group }) => candidateJson(candidate, group)), next_cursor: nextCursor });
}

async function patch(recovery: Recovery, request: ApiRequest, actor: Actor, candidateId: number): Promise<Reply> {
  const asked = await readBody(request, (fields) => {
    const cleared = new Set(fields.entries().flatMap(([name, value]) => (value === null ? [name] : [])));
    const orCleared = (name: string, value: string | undefined): string | null | undefined =>
      value ?? (cleared.has(name) ? null : undefined);
    const update = {
      executionStatus: fields.oneOf("execution_status", EXECUTION_STATUSES),
      selectedAction: nameOf(fields, "selected_action"),
      owner: orCleared("owner", nameOf(fields, "owner", OWNER_BYTES_MAX)),
      note: orCleared("note", noteOf(fields, "note")),
    };
    const changes = Object.values(update).some((value) => value !== undefined);
    if (!changes && fields.faults.length === 0) {
      fields.fault(".", "nothing to change: execution_status, selected_action, owner or note");
    }
    return { ...update, ...versioned(request, fields, actor) };
  });
  if (!asked.ok) return asked.reply;
  await recovery.update(candidateId, asked.value);
  return answer(recovery, request, candidateId);
}

function versioned(request: ApiRequest, fields: Fields, actor: Actor): Versioned {
  return { ...actor, version: versionOf(request, fields), reason: noteOf(fields, "reason") ?? null };
}

function executeOptions(request: ApiRequest, fields: Fields, actor: Actor): ExecuteOptions {
  const plan = fields.object("redrive");
  const redrive = plan && { ...readPlan(plan), confirm: plan.integer("confirm", 0, ID_MAX), seen: plan.text("seen") };
  plan?.refuseUnknown();
  return { ...versioned(request, fields, actor), redrive };
}

/** The candidate as it is now, whatever was done to it, and how to go on where one name is not enough. */
async function answer(recovery: Recovery, request: ApiRequest, candidateId: number, provenance = false): Promise<Reply> {
  const detail = await recovery.candidate(candidateId, { provenance });
  const body: CandidateDetailJson & { hint?: string } = candidateDetailJson(detail);
  const waits = detail.approvalsMissing > 0 && detail.candidate.approvals.length > 0 && !detail.lapsed;
  const shown = waits && !request.named ? { ...body, hint: `another person must approve; ${NAMES_HINT}` } : body;
  return json(200, shown, { etag: `"${detail.candidate.version}"` });
}

async function withCandidate(request: ApiRequest, use: (candidateId: number) => Promise<Reply>): Promise<Reply> {
  const candidateId = numberIn(request, "id");
  return candidateId === null ? notFound("candidate", request.params.get("id") ?? "") : use(candidateId);
}
