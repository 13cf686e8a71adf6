/**
 * Rules, group rules and the catalogue of actions over HTTP. An edit names the version it was made from (the member `version`, or If-Match) and is
 * refused when another one came first; what is wrong with it is told all at once, with the path of each mistake.
 */

import type { ActionType } from "../../../recovery/actions/action.ts";
import type { Actor, Recovery } from "../../../recovery/recovery.ts";
import { ruleToJson } from "../../../recovery/rules/parse-rule.ts";
import { BODY_BYTES } from "../../body.ts";
import { actionJson } from "../../contract/contract-candidate.ts";
import { groupRuleJson, parsedText } from "../../contract/contract-group.ts";
import type { Fields } from "../../contract/fields.ts";
import type { Reply } from "../../contract/problem.ts";
import { type ApiRequest, type Handler, json } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";
import { readBody, versionOf } from "./body.ts";
import { readQuery } from "./query.ts";
import { notFound, type RecoveryHandler, recoveryHandler } from "./recovery-request.ts";

const ACTION_TYPES: readonly ActionType[] = [
  "retry",
  "fallback",
  "escalate",
  "notify",
  "reconfigure",
  "rollback",
  "manual",
  "skip",
];

export type RuleHandlers = Readonly<
  Record<
    "list" | "get" | "put" | "remove" | "history" | "groupRules" | "removeGroupRule" | "actions" | "action" | "putAction",
    Handler
  >
>;

export function ruleHandlers(kernel: Kernel): RuleHandlers {
  const make = (handle: RecoveryHandler): Handler => recoveryHandler(kernel, handle);
  return {
    list: make(async (recovery, request) => {
      const query = readQuery(request.query, () => null);
      return query.ok ? json(200, { data: (await recovery.rules()).map(ruleToJson), next_cursor: null }) : query.reply;
    }),
    get: make(async (recovery, request) => {
      const id = idOf(request);
      const rule = (await recovery.rules()).find((one) => one.id === id);
      return rule ? json(200, ruleToJson(rule), { etag: `"${rule.version}"` }) : notFound("rule", id);
    }),
    put: make(putRule),
    remove: make(async (recovery, request, actor) => {
      const read = await readBody(request, (fields) => versionOf(request, fields), { optional: true });
      if (!read.ok) return read.reply;
      const id = idOf(request);
      await recovery.deleteRule(id, read.value ?? (await versionNow(recovery, id)), actor);
      return { status: 204, headers: {}, body: "" };
    }),
    history: make(async (recovery, request) => {
      const data = (await recovery.ruleHistory(idOf(request))).map(({ version, text, actor, at }) => ({
        version,
        actor,
        at: at.toISOString(),
        rule: text === "" ? null : parsedText(text),
      }));
      return json(200, { data, next_cursor: null });
    }),
    groupRules: make(async (recovery, request) => {
      const query = readQuery(request.query, () => null);
      return query.ok ? json(200, { data: (await recovery.groupRules()).map(groupRuleJson), next_cursor: null }) : query.reply;
    }),
    removeGroupRule: make(async (recovery, request, actor) => {
      const read = await readBody(request, (fields) => versionOf(request, fields), { optional: true });
      if (!read.ok) return read.reply;
      await recovery.deleteGroupRule(idOf(request), read.value ?? null, actor);
      return { status: 204, headers: {}, body: "" };
    }),
    actions: make(async (recovery, request) => {
      const query = readQuery(request.query, (read) => ({ actionType: read.oneOf("action_type", ACTION_TYPES) }));
      if (!query.ok) return query.reply;
      return json(200, { data: (await recovery.actions(query.value)).map(actionJson), next_cursor: null });
    }),
    action: make(async (recovery, request) => {
      const code = idOf(request);
      const action = (await recovery.actions()).find((one) => one.code === code);
      return action ? json(200, actionJson(action), { etag: `"${action.version}"` }) : notFound("action", code);
    }),
    putAction: make(async (recovery, request, actor) => {
      const read = await readDocument(request, ["version"]);
      if (!read.ok) return read.reply;
      const action = await recovery.putAction(idOf(request), read.value.text, read.value.version ?? 0, actor);
      return json(200, actionJson(action), { etag: `"${action.version}"` });
    }),
  };
}

async function putRule(recovery: Recovery, request: ApiRequest, actor: Actor): Promise<Reply> {
  const id = idOf(request);
  const read = await readDocument(request, ["version", "id"], (fields) => {
    if (fields.has("id") && fields.raw("id") !== id) fields.fault("id", `is another one than that of the address, ${id}`);
    return { id };
  });
  if (!read.ok) return read.reply;
  const from = read.value.version ?? 0;
  const rule = await recovery.putRule(id, read.value.text, from, actor);
  return json(from === 0 ? 201 : 200, ruleToJson(rule), { etag: `"${rule.version}"` });
}

/** The document as it was sent, without the members that are about the edit itself: what it may hold is for the engine to say. */
function readDocument(
  request: ApiRequest,
  own: readonly string[],
  also: (fields: Fields) => Record<string, unknown> = () => ({}),
) {
  return readBody(
    request,
    (fields) => {
      const version = versionOf(request, fields);
      const members = fields.entries().filter(([name]) => !own.includes(name));
      for (const [name] of members) fields.raw(name);
      // fromEntries defines each member as its own, __proto__ as well.
      return { version, text: JSON.stringify(Object.fromEntries([...Object.entries(also(fields)), ...members])) };
    },
    { bytesMax: BODY_BYTES.rule },
  );
}

async function versionNow(recovery: Recovery, id: string): Promise<number> {
  return (await recovery.rules()).find((rule) => rule.id === id)?.version ?? 0;
}

function idOf(request: ApiRequest): string {
  return request.params.get("id") ?? "";
}
