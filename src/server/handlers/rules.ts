/**
 * Rules and the catalogue of actions over HTTP. An edit names the version it was made from and is refused when another one came first; what is
 * wrong with it is told all at once, with the path of each mistake.
 */
import type { RULE_ROUTES } from "../../contract/recovery/rules.ts";
import { ruleToJson } from "../../recovery/rules/parse-rule.ts";
import { DONE, page, tagged } from "../http.ts";
import { actionJson } from "../json/candidate-json.ts";
import { parsedText } from "../json/group-json.ts";
import type { Kernel } from "../kernel.ts";
import { type Asked, refusalOf } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";
import { notFound, recoveryHandlers } from "./recovery-request.ts";

export const ruleHandlers = (kernel: Kernel): Handlers<keyof typeof RULE_ROUTES> =>
  recoveryHandlers<keyof typeof RULE_ROUTES>(kernel, {
    listRules: async (recovery) => page({ data: await recovery.rules() }, ruleToJson),
    async getRule(recovery, { params: { id } }) {
      const rule = (await recovery.rules()).find((one) => one.id === id);
      if (!rule) throw notFound("rule", id);
      return tagged(200, ruleToJson(rule), rule.version);
    },
    async putRule(recovery, asked, actor) {
      const { id } = asked.params;
      const from = asked.version ?? 0;
      const rule = await recovery.putRule(id, documentText(asked, id), from, actor);
      return tagged(from === 0 ? 201 : 200, ruleToJson(rule), rule.version);
    },
    async deleteRule(recovery, { params: { id }, version }, actor) {
      const known = (await recovery.rules()).find((rule) => rule.id === id);
      await recovery.deleteRule(id, version ?? known?.version ?? 0, actor);
      return DONE;
    },
    async getRuleHistory(recovery, { params: { id } }) {
      const data = await recovery.ruleHistory(id);
      return page({ data }, ({ version, text, actor, at }) => ({ version, actor, at, rule: parsedText(text || null) }));
    },
    listActions: async (recovery, { query }) => page({ data: await recovery.actions(query) }, actionJson),
    async getAction(recovery, { params: { id } }) {
      const action = (await recovery.actions()).find((one) => one.actionCode === id);
      if (!action) throw notFound("action", id);
      return tagged(200, actionJson(action), action.version);
    },
    async putAction(recovery, asked, actor) {
      const action = await recovery.putAction(asked.params.id, documentText(asked), asked.version ?? 0, actor);
      return tagged(200, actionJson(action), action.version);
    },
  });

/** The document as it was sent, without the members that are about the edit itself: what it may hold is for the engine to say. */
function documentText({ body }: Pick<Asked<"putRule">, "body">, id?: string): string {
  const { version: _, ...document } = body;
  if (id === undefined) return JSON.stringify(document);
  if (document.id !== undefined && document.id !== id)
    throw refusalOf("invalid_request", "id", `is another one than that of the address, ${id}`);
  return JSON.stringify({ ...document, id });
}
