/**
 * Rules and the catalogue of actions over HTTP. An edit names the version it was made from and is refused when another one came first; what is
 * wrong with it is told all at once, with the path of each mistake.
 */
import type { Recovery } from "../../recovery/recovery.ts";
import { ruleToJson } from "../../recovery/rules/parse-rule.ts";
import { json } from "../http.ts";
import { actionJson } from "../json/candidate-json.ts";
import { parsedText } from "../json/group-json.ts";
import type { Kernel } from "../kernel.ts";
import { Refusal } from "../problem.ts";
import { type Asked, refusal } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";
import { notFound, recoveryHandlers } from "./recovery-request.ts";

type Routes = "listRules" | "getRule" | "putRule" | "deleteRule" | "getRuleHistory" | "listActions" | "getAction" | "putAction";

export function ruleHandlers(kernel: Kernel): Handlers<Routes> {
  return recoveryHandlers<Routes>(kernel, {
    listRules: async (recovery) => json(200, { data: (await recovery.rules()).map(ruleToJson), next_cursor: null }),
    async getRule(recovery, { params: { id } }) {
      const rule = (await recovery.rules()).find((one) => one.id === id);
      if (!rule) throw notFound("rule", id);
      return json(200, ruleToJson(rule), { etag: `"${rule.version}"` });
    },
    async putRule(recovery, asked, actor) {
      const { id } = asked.params;
      const from = asked.version ?? 0;
      const rule = await recovery.putRule(id, documentText(asked, id), from, actor);
      return json(from === 0 ? 201 : 200, ruleToJson(rule), { etag: `"${rule.version}"` });
    },
    async deleteRule(recovery, { params: { id }, version }, actor) {
      await recovery.deleteRule(id, version ?? (await versionNow(recovery, id)), actor);
      return { status: 204, headers: {}, body: "" };
    },
    async getRuleHistory(recovery, { params: { id } }) {
      const data = (await recovery.ruleHistory(id)).map(({ version, text, actor, at }) => ({
        version,
        actor,
        at: at.toISOString(),
        rule: text === "" ? null : parsedText(text),
      }));
      return json(200, { data, next_cursor: null });
    },
    async listActions(recovery, { query }) {
      const actions = await recovery.actions({ actionType: query.action_type });
      return json(200, { data: actions.map(actionJson), next_cursor: null });
    },
    async getAction(recovery, { params: { id } }) {
      const action = (await recovery.actions()).find((one) => one.actionCode === id);
      if (!action) throw notFound("action", id);
      return json(200, actionJson(action), { etag: `"${action.version}"` });
    },
    async putAction(recovery, asked, actor) {
      const action = await recovery.putAction(asked.params.id, documentText(asked), asked.version ?? 0, actor);
      return json(200, actionJson(action), { etag: `"${action.version}"` });
    },
  });
}

/** The document as it was sent, without the members that are about the edit itself: what it may hold is for the engine to say. */
function documentText({ body }: Pick<Asked<"putRule">, "body">, id?: string): string {
  const { version: _, ...document } = body;
  if (id === undefined) return JSON.stringify(document);
  if (document.id !== undefined && document.id !== id) {
    const fault = { field: "id", detail: `is another one than that of the address, ${id}` };
    throw new Refusal(refusal("invalid_request", { named: [fault], more: 0 }));
  }
  return JSON.stringify({ ...document, id });
}

async function versionNow(recovery: Recovery, id: string): Promise<number> {
  return (await recovery.rules()).find((rule) => rule.id === id)?.version ?? 0;
}
