/** Candidates as people see them: with their group, what is known, what an execution would touch, and who has done what. */
import { actionInfo } from "../actions/info.ts";
import type { Group } from "../groups/group.ts";
import type { Paged } from "../pages.ts";
import type { Records } from "../records.ts";
import type { CandidateInGroup } from "../recovery.ts";
import type { Candidate } from "./candidate.ts";
import type { CandidateFilter } from "./candidates-sql.ts";
import { blastRadiusOf, type CandidateDeps, find } from "./found.ts";

const INPUTS = 20;
const LINES = 200;

export async function candidateDetail(
  deps: CandidateDeps,
  candidateId: number,
  { provenance = false }: { readonly provenance?: boolean | undefined } = {},
) {
  const { candidate, group, standing } = await find(deps, candidateId);
  const { recovery, catalogue } = deps;
  const { groupId, selectedAction } = candidate;
  const [inputs, action, blastRadius, lines] = await Promise.all([
    recovery.occurrences(groupId, { limit: INPUTS }),
    selectedAction === null ? null : actionInfo(catalogue, recovery, selectedAction, groupId),
    blastRadiusOf(recovery, groupId),
    provenance ? recovery.provenance({ candidateId }, { limit: LINES }) : null,
  ]);
  const { missing: approvalsMissing, lapsed, lapsedReason } = standing;
  const known = { inputs: inputs.data, action, blastRadius, provenance: lines?.data ?? null };
  return { candidate, group, ...known, approvalsMissing, lapsed, lapsedReason };
}

export async function candidateList({ recovery }: CandidateDeps, filter: CandidateFilter): Promise<Paged<CandidateInGroup>> {
  if (filter.order === "size" && filter.groupId === undefined) return largestFirst(recovery, filter);
  const { data, nextCursor } = await recovery.candidates(filter);
  const groups = await recovery.groupsById([...new Set(data.map(({ groupId }) => groupId))]);
  return { data: data.flatMap((candidate) => inGroup(candidate, groups.get(candidate.groupId))), nextCursor };
}

const inGroup = (candidate: Candidate | undefined, group: Group | undefined): CandidateInGroup[] =>
  candidate && group ? [{ candidate, group }] : [];

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
    data.push(...page.data.flatMap((group) => inGroup(byGroup.get(group.groupId), group)));
    looked += page.data.length;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && data.length < limit && looked < LOOKED_MAX);
  return { data, nextCursor: cursor ?? null };
}
