/**
 * Candidates over HTTP: list, read, change, approve, reject, execute. Every change is made under the token's name and may insist on the
 * version that was read; which moves there are is the engine's business.
 */
import type { CANDIDATE_ROUTES } from "../../contract/recovery/candidates.ts";
import type { Actor, Recovery, Versioned } from "../../recovery/recovery.ts";
import { page, tagged } from "../http.ts";
import { candidateDetailJson, candidateJson } from "../json/candidate-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import type { Asked } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";
import { limited } from "./limited.ts";
import { NAMES_HINT, numbered, recoveryHandlers } from "./recovery-request.ts";

type Routes = keyof typeof CANDIDATE_ROUTES;
type Change = Pick<Asked<"approveCandidate">, "version" | "named"> & { readonly body: { readonly reason?: string | undefined } };

export function candidateHandlers(kernel: Kernel): Handlers<Routes> {
  /** A change, and the candidate as it is afterwards. */
  const changed = async (recovery: Recovery, asked: Change, actor: Actor, id: number, change: (by: Versioned) => unknown) => {
    await change({ ...actor, version: asked.version, reason: asked.body.reason ?? null });
    return answer(recovery, asked, id);
  };
  const decides = (decide: "approve" | "reject") => (recovery: Recovery, asked: Asked<"approveCandidate">, actor: Actor) => {
    const id = numbered("candidate", asked);
    return changed(recovery, asked, actor, id, (by) => recovery[decide](id, by));
  };
  return recoveryHandlers<Routes>(kernel, {
    async listCandidates(recovery, { query: { all = false, ...filter } }) {
      const found = await recovery.candidates({ ...limited(filter), current: !all });
      return page(found, ({ candidate, group }) => candidateJson(candidate, group));
    },
    getCandidate: (recovery, asked) => answer(recovery, asked, numbered("candidate", asked), asked.query.includeProvenance),
    updateCandidate(recovery, asked, actor) {
      const id = numbered("candidate", asked);
      return changed(recovery, asked, actor, id, (by) => recovery.update(id, { ...asked.body, ...by }));
    },
    deleteCandidate: decides("reject"),
    approveCandidate: decides("approve"),
    rejectCandidate: decides("reject"),
    executeCandidate(recovery, asked, actor) {
      const id = numbered("candidate", asked);
      return changed(recovery, asked, actor, id, (by) => recovery.execute(id, { ...by, redrive: asked.body.redrive }));
    },
    approve(recovery, asked, actor) {
      const { candidateId: id, decision } = asked.body;
      return changed(recovery, asked, actor, id, (by) => recovery[decision === "rejected" ? "reject" : "approve"](id, by));
    },
  });
}

/** The candidate as it is now, and how to go on where one name is not enough. */
async function answer(recovery: Recovery, { named }: { named: boolean }, id: number, provenance = false): Promise<Reply> {
  const detail = await recovery.candidate(id, { provenance });
  const body = candidateDetailJson(detail);
  const waits = detail.approvalsMissing > 0 && detail.candidate.approvals.length > 0 && !detail.lapsed;
  const shown = waits && !named ? { ...body, hint: `another person must approve; ${NAMES_HINT}` } : body;
  return tagged(200, shown, detail.candidate.version);
}
