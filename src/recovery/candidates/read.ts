/** Candidates as people see them: with their group, what is known, what an execution would touch, and who has done what. */

import { actionInfo } from "../actions/info.ts";
import type { Paged } from "../pages.ts";
import type { Records } from "../records.ts";
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
  if (filter.order === "size" && filter.groupId === undefined) return largestFirst(recovery, filter);
  const { data, nextCursor } = await recovery.candidates(filter);
  const groups = await recovery.groupsById([...new Set(data.map(({ groupId }) => groupId))]);
  const pairs = data.map((candidate: Candidate) => ({ candidate, group: groups.get(candidate.groupId) }));
  return { data: pairs.filter((pair): pair is CandidateInGroup => pair.group !== undefined), nextCursor };
}

/** Groups that are looked at for one page, where few of them fit the rest of the filter. */
const LOOKED_MAX = 2_000;

async function largestFirst(
  recovery: Records,
  { order, cursor: from, limit, ...filter }: CandidateFilter,
): Promise<Paged<CandidateInGroup>> {
  const data: CandidateInGroup[] = [];
  let cursor = from;
  let looked = 0;
  do {
    const { since, until } = filter;
    const page = await recovery.groups({ order, since, until, limit: limit - data.length, cursor });
    const groupId = page.data.map((group) => group.groupId);
    const found = await recovery.candidates({ ...filter, current: true, groupId, limit });
    const byGroup = new Map(found.data.map((candidate) => [candidate.groupId, candidate]));
    for (const group of page.data) {
      const candidate = byGroup.get(group.groupId);
      if (candidate) data.push({ candidate, group });
    }
    looked += page.data.length;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && data.length < limit && looked < LOOKED_MAX);
  return { data, nextCursor: cursor ?? null };
}
