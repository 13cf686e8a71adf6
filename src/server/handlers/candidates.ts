/**
 * Candidates over HTTP: list, read, change, approve, reject, execute. Every change is made under the token's name and may insist on the
 * version that was read; which moves there are is the engine's business.
 */
import type { Actor, Recovery, Versioned } from "../../recovery/recovery.ts";
import { json } from "../http.ts";
import { candidateDetailJson, candidateJson } from "../json/candidate-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import type { Asked } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";
import { limitOf } from "./limit-of.ts";
import { NAMES_HINT, numbered, recoveryHandlers } from "./recovery-request.ts";
import { planOf } from "./redrives.ts";

type Routes =
  | "listCandidates"
  | "getCandidate"
  | "updateCandidate"
  | "deleteCandidate"
  | "approveCandidate"
  | "rejectCandidate"
  | "executeCandidate"
  | "approve";

const candidateOf = numbered("candidate");

/** What every change carries. */
interface Change extends Pick<Asked<"approveCandidate">, "version" | "named"> {
  readonly body: { readonly reason?: string | undefined };
}

const versioned = ({ version, body }: Change, actor: Actor): Versioned => ({ ...actor, version, reason: body.reason ?? null });

export function candidateHandlers(kernel: Kernel): Handlers<Routes> {
  const decides =
    (decide: "approve" | "reject") => async (recovery: Recovery, asked: Asked<"approveCandidate">, actor: Actor) => {
      const id = candidateOf(asked);
      await recovery[decide](id, versioned(asked, actor));
      return answer(recovery, asked, id);
    };
  return recoveryHandlers<Routes>(kernel, {
    async listCandidates(recovery, { query }) {
      const { group_id: groupId, evaluation_status: evaluationStatus, execution_status: executionStatus, ...filter } = query;
      const { all = false, limit, ...rest } = filter;
      const wanted = { ...rest, groupId, evaluationStatus, executionStatus, current: !all, limit: limitOf(limit) };
      const { data, nextCursor } = await recovery.candidates(wanted);
      return json(200, { data: data.map(({ candidate, group }) => candidateJson(candidate, group)), next_cursor: nextCursor });
    },
    getCandidate: (recovery, asked) => answer(recovery, asked, candidateOf(asked), asked.query.include_provenance),
    async updateCandidate(recovery, asked, actor) {
      const { execution_status: executionStatus, selected_action: selectedAction, owner, note } = asked.body;
      const id = candidateOf(asked);
      await recovery.update(id, { executionStatus, selectedAction, owner, note, ...versioned(asked, actor) });
      return answer(recovery, asked, id);
    },
    deleteCandidate: decides("reject"),
    approveCandidate: decides("approve"),
    rejectCandidate: decides("reject"),
    async executeCandidate(recovery, asked, actor) {
      const { redrive } = asked.body;
      const id = candidateOf(asked);
      const how = redrive && { ...planOf(redrive), confirm: redrive.confirm, seen: redrive.seen };
      await recovery.execute(id, { ...versioned(asked, actor), redrive: how });
      return answer(recovery, asked, id);
    },
    async approve(recovery, asked, actor) {
      const { candidate_id: id, decision = "approved" } = asked.body;
      await recovery[decision === "approved" ? "approve" : "reject"](id, versioned(asked, actor));
      return answer(recovery, asked, id);
    },
  });
}

/** The candidate as it is now, whatever was done to it, and how to go on where one name is not enough. */
async function answer(
  recovery: Recovery,
  { named }: { readonly named: boolean },
  id: number,
  provenance = false,
): Promise<Reply> {
  const detail = await recovery.candidate(id, { provenance });
  const body = candidateDetailJson(detail);
  const waits = detail.approvalsMissing > 0 && detail.candidate.approvals.length > 0 && !detail.lapsed;
  const shown = waits && !named ? { ...body, hint: `another person must approve; ${NAMES_HINT}` } : body;
  return json(200, shown, { etag: `"${detail.candidate.version}"` });
}
