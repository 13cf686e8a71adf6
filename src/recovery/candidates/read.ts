/** Candidates as people see them: with their group, what is known, what an execution would touch, and who has done what. */

import { actionInfo } from "../actions/info.ts";
import type { Paged } from "../pages.ts";
import type { CandidateDetail, CandidateInGroup } from "../recovery.ts";
import type { Candidate, CandidateFilter } from "./candidate.ts";
import { blastRadiusOf, type CandidateDeps, find } from "./found.ts";

const INPUTS = 20;
const LINES = 200;

export async function candidateDetail(
  deps: CandidateDeps,
  candidateId: number,
  { provenance = false }: { readonly provenance?: boolean | undefined } = {},
): Promise<CandidateDetail> {
  const { candidate, group, standing } = await find(deps, candidateId);
  const { recovery } = deps;
  const [inputs, action, blastRadius, lines] = await Promise.all([
    recovery.occurrences(group.groupId, { limit: INPUTS }),
    candidate.selectedAction === null ? null : actionInfo(deps.catalogue, recovery, candidate.selectedAction, group.groupId),
    blastRadiusOf(recovery, group.groupId),
    provenance ? recovery.provenance({ candidateId }, { limit: LINES }) : null,
  ]);
  return {
    candidate,
    group,
    inputs: inputs.data,
    action,
    approvalsMissing: standing.missing,
    lapsed: standing.lapsed,
    lapsedReason: standing.lapsedReason,
    blastRadius,
    provenance: lines?.data ?? null,
  };
}

export async function candidateList(
  { recovery }: Pick<CandidateDeps, "recovery">,
  filter: CandidateFilter,
): Promise<Paged<CandidateInGroup>> {
  const { data, nextCursor } = await recovery.candidates(filter);
  const groups = await recovery.groupsById([...new Set(data.map(({ groupId }) => groupId))]);
  const pairs = data.map((candidate: Candidate) => ({ candidate, group: groups.get(candidate.groupId) }));
  return { data: pairs.filter((pair): pair is CandidateInGroup => pair.group !== undefined), nextCursor };
}
