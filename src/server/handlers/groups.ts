/**
 * Groups over HTTP: list, one with the reasons why its failures are together, its occurrences, merge, split, a fresh suggestion; and the
 * record of who did what, and the statistics.
 */
import { group, groupRule } from "../../contract/recovery/group-shapes.ts";
import { type GROUP_ROUTES, OCCURRENCE_PAGE_MAX } from "../../contract/recovery/groups.ts";
import { DONE, json, jsonText, page } from "../http.ts";
import { candidateDetailJson, candidateJson } from "../json/candidate-json.ts";
import { groupJson, occurrenceJson, provenanceJson, statsJson } from "../json/group-json.ts";
import { withPayload } from "../json/message-json.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import type { Handlers } from "./handlers.ts";
import { limited } from "./limited.ts";
import { numbered, recoveryHandlers } from "./recovery-request.ts";

export const groupHandlers = (kernel: Kernel): Handlers<keyof typeof GROUP_ROUTES> =>
  recoveryHandlers<keyof typeof GROUP_ROUTES>(kernel, {
    listGroups: async (recovery, { query }) => page(await recovery.groups(limited(query)), groupJson),
    async getGroup(recovery, asked) {
      const { group, candidate, occurrences, why } = await recovery.group(numbered("group", asked));
      const shown = {
        why,
        candidate: candidate && candidateJson(candidate, group),
        occurrences: occurrences.map(occurrenceJson),
      };
      return json(200, { ...groupJson(group), ...shown });
    },
    async listOccurrences(recovery, asked) {
      const { payload = false, ...filter } = asked.query;
      const wanted = limited(filter, payload ? OCCURRENCE_PAGE_MAX : undefined);
      const { data, nextCursor } = await recovery.occurrences(numbered("group", asked), wanted);
      const texts = data.map((one) => {
        const object = occurrenceJson(one);
        return payload ? withPayload(object, one.failurePayload ?? "null", "failure_payload") : JSON.stringify(object);
      });
      return jsonText(200, `{"data":[${texts.join(",")}],"next_cursor":${JSON.stringify(nextCursor)}}`);
    },
    async mergeGroups(recovery, asked, actor) {
      const { from, reason } = asked.body;
      return json(200, groupJson(await recovery.merge(numbered("group", asked), [...new Set(from)], reason, actor)));
    },
    async splitGroup(recovery, asked, actor) {
      const { words, reason } = asked.body;
      const { group: made, moved } = await recovery.split(numbered("group", asked), words, reason, actor);
      return json(201, { ...wireOf(group, made), moved }, { location: `/api/v1/recovery/groups/${made.groupId}` });
    },
    async suggestGroup(recovery, asked, actor) {
      const { candidateId } = await recovery.suggest(numbered("group", asked), actor);
      return json(200, candidateDetailJson(await recovery.candidate(candidateId)));
    },
    listGroupRules: async (recovery) => page({ data: await recovery.groupRules() }, (one) => wireOf(groupRule, one)),
    async deleteGroupRule(recovery, { params, version }, actor) {
      await recovery.deleteGroupRule(params.id, version ?? null, actor);
      return DONE;
    },
    async listProvenance(recovery, { query }) {
      const { limit, cursor, ...of } = limited(query);
      return page(await recovery.provenance(of as Parameters<typeof recovery.provenance>[0], { limit, cursor }), provenanceJson);
    },
    getStats: async (recovery) => json(200, statsJson(await recovery.stats())),
  });
