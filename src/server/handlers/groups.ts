/**
 * Groups over HTTP: list, one with the reasons why its failures are together, its occurrences, merge, split, a fresh suggestion; and the
 * record of who did what, and the statistics.
 */
import { OCCURRENCE_PAGE_MAX } from "../../contract/recovery/groups.ts";
import { json, jsonText } from "../http.ts";
import { candidateDetailJson, candidateJson } from "../json/candidate-json.ts";
import { groupJson, groupRuleJson, occurrenceJson, occurrenceText, provenanceJson, statsJson } from "../json/group-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Handlers } from "./handlers.ts";
import { limitOf } from "./limit-of.ts";
import { numbered, recoveryHandlers } from "./recovery-request.ts";

type Routes =
  | "listGroups"
  | "getGroup"
  | "listOccurrences"
  | "mergeGroups"
  | "splitGroup"
  | "suggestGroup"
  | "listGroupRules"
  | "deleteGroupRule"
  | "listProvenance"
  | "getStats";

const groupOf = numbered("group");

export function groupHandlers(kernel: Kernel): Handlers<Routes> {
  return recoveryHandlers<Routes>(kernel, {
    async listGroups(recovery, { query: { error_code: errorCode, tenant_id: tenantId, limit, ...filter } }) {
      const page = await recovery.groups({ ...filter, errorCode, tenantId, limit: limitOf(limit) });
      return json(200, { data: page.data.map(groupJson), next_cursor: page.nextCursor });
    },
    async getGroup(recovery, asked) {
      const { group, candidate, occurrences, why } = await recovery.group(groupOf(asked));
      return json(200, {
        ...groupJson(group),
        why,
        candidate: candidate === null ? null : candidateJson(candidate, group),
        occurrences: occurrences.map(occurrenceJson),
      });
    },
    async listOccurrences(recovery, asked) {
      const { payload = false, limit, tenant_id: tenantId, ...filter } = asked.query;
      const page = { ...filter, tenantId, limit: limitOf(limit, payload ? OCCURRENCE_PAGE_MAX : undefined) };
      const { data, nextCursor } = await recovery.occurrences(groupOf(asked), page);
      const texts = data.map((one) => occurrenceText(one, payload));
      return jsonText(200, `{"data":[${texts.join(",")}],"next_cursor":${JSON.stringify(nextCursor)}}`);
    },
    async mergeGroups(recovery, asked, actor) {
      const { from, reason } = asked.body;
      return json(200, groupJson(await recovery.merge(groupOf(asked), [...new Set(from)], reason, actor)));
    },
    async splitGroup(recovery, asked, actor) {
      const { group, moved } = await recovery.split(groupOf(asked), asked.body.words, asked.body.reason, actor);
      return json(201, { ...groupJson(group), moved }, { location: `/api/v1/recovery/groups/${group.groupId}` });
    },
    async suggestGroup(recovery, asked, actor) {
      const { candidateId } = await recovery.suggest(groupOf(asked), actor);
      return json(200, candidateDetailJson(await recovery.candidate(candidateId)));
    },
    async listGroupRules(recovery) {
      return json(200, { data: (await recovery.groupRules()).map(groupRuleJson), next_cursor: null });
    },
    async deleteGroupRule(recovery, { params, version }, actor) {
      await recovery.deleteGroupRule(params.id, version ?? null, actor);
      return { status: 204, headers: {}, body: "" };
    },
    async listProvenance(recovery, { query }) {
      const { group_id: groupId, candidate_id: candidateId, redrive_id: redriveId, limit, cursor } = query;
      const given = Object.entries({ groupId, candidateId, redriveId }).filter(([, value]) => value !== undefined);
      const { data, nextCursor } = await recovery.provenance(Object.fromEntries(given), { limit: limitOf(limit), cursor });
      return json(200, { data: data.map(provenanceJson), next_cursor: nextCursor });
    },
    getStats: async (recovery) => json(200, statsJson(await recovery.stats())),
  });
}
