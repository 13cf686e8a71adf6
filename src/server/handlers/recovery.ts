/**
 * The recovery engine over HTTP: groups, candidates, rules and actions, redrives, and a dead letter again with another payload. Every change is made
 * under the token's name and may insist on the version that was read; which moves there are, and what a rule may say, is the engine's business.
 */
import { editBody } from "../../contract/messages.ts";
import { type CANDIDATE_ROUTES, type RULE_ROUTES, whatIf } from "../../contract/recovery/candidates.ts";
import { type GROUP_ROUTES, OCCURRENCE_PAGE_MAX } from "../../contract/recovery/groups.ts";
import { type REDRIVE_ROUTES, redriveItem } from "../../contract/recovery/redrives.ts";
import { groupRule } from "../../contract/recovery/shapes.ts";
import { momentOf } from "../../contract/values.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Actor, Recovery, Versioned } from "../../recovery/recovery.ts";
import type { RedriveDetail } from "../../recovery/redrive/redrive.ts";
import { ruleToJson } from "../../recovery/rules/parse-rule.ts";
import { DONE, identified, json, jsonText, notFound, numbered, page, pageText, type Reply, spliced, tagged } from "../http.ts";
import * as shape from "../json/recovery-json.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { type Asked, limited, readExact, refusalOf } from "../read-request.ts";
import type { RecoveryHandlers } from "./handlers.ts";
import { headerKey, shownMessage } from "./messages.ts";

/** Two people need two names, and a server without tokens has only one. */
export const NAMES_HINT =
  "this server asks for no token, so everybody has one name here: set MAKEGOOD_TOKENS (name:secret,…) to give each person their own";

/** The moments of a query as instants. */
function inTime<Q extends Asked<"listGroups" | "listCandidates">["query"]>({ since, until, ...query }: Q, { clock }: Kernel) {
  const instant = (moment: string | undefined) =>
    moment === undefined ? undefined : (momentOf(moment, clock.wallMs()) ?? undefined);
  return { ...query, since: instant(since), until: instant(until) };
}

/** A group is named by its number, or by a failure_match_id: its own, or one that was supplied. */
async function groupId(recovery: Recovery, asked: { readonly params: { readonly id: string } }): Promise<number> {
  const failureMatchId = asked.params.id.toLowerCase();
  if (!isUuid(failureMatchId)) return numbered("group", asked);
  const [group] = (await recovery.groups({ failureMatchId, limit: 1 })).data;
  if (group === undefined) throw notFound("group", failureMatchId);
  return group.groupId;
}

export const GROUPS: RecoveryHandlers<keyof typeof GROUP_ROUTES> = {
  listGroups: async (recovery, { query }, _, kernel) =>
    page(await recovery.groups(limited(inTime(query, kernel))), shape.groupJson),
  async getGroup(recovery, asked) {
    const { group, candidate, occurrences, why } = await recovery.group(await groupId(recovery, asked));
    const shown = candidate && shape.candidateJson({ candidate, group });
    return json(200, { ...shape.groupJson(group), why, candidate: shown, occurrences: occurrences.map(shape.occurrenceJson) });
  },
  async listOccurrences(recovery, asked) {
    const { payload = false, ...filter } = asked.query;
    const wanted = limited(filter, payload ? OCCURRENCE_PAGE_MAX : undefined);
    return pageText(await recovery.occurrences(await groupId(recovery, asked), wanted), (one) => {
      return spliced(shape.occurrenceJson(one), "failure_payload", payload ? (one.failurePayload ?? "null") : undefined);
    });
  },
  async mergeGroups(recovery, asked, actor) {
    const { from, reason } = asked.body;
    return json(200, shape.groupJson(await recovery.merge(await groupId(recovery, asked), [...new Set(from)], reason, actor)));
  },
  async splitGroup(recovery, asked, actor) {
    const { words, reason } = asked.body;
    const { group: made, moved } = await recovery.split(await groupId(recovery, asked), words, reason, actor);
    return json(201, { ...shape.groupJson(made), moved }, { location: `/api/v1/recovery/groups/${made.groupId}` });
  },
  async resolveGroup(recovery, asked, actor) {
    return json(200, shape.groupJson(await recovery.resolveGroup(await groupId(recovery, asked), { ...asked.body, ...actor })));
  },
  async suggestGroup(recovery, asked, actor) {
    const { candidateId } = await recovery.suggest(await groupId(recovery, asked), actor);
    return json(200, shape.candidateDetailJson(await recovery.candidate(candidateId)));
  },
  async releaseGroup(recovery, asked, actor) {
    return json(
      200,
      shape.groupJson(await recovery.release(await groupId(recovery, asked), { ...actor, reason: asked.body.reason })),
    );
  },
  listGroupRules: async (recovery) => page({ data: await recovery.groupRules() }, (one) => wireOf(groupRule, one)),
  async deleteGroupRule(recovery, { params, version }, actor) {
    await recovery.deleteGroupRule(params.id, version ?? null, actor);
    return DONE;
  },
  async listProvenance(recovery, { query }) {
    const { limit, cursor, ...of } = limited(query);
    return page(await recovery.provenance(of, { limit, cursor }), shape.provenanceJson);
  },
  getStats: async (recovery) => json(200, shape.statsJson(await recovery.stats())),
};

type Changing = Pick<Asked<"pauseRedrive">, "version" | "params" | "named"> & {
  readonly body: { readonly reason?: string | undefined };
};

const changedBy = ({ version, body }: Changing, actor: Actor): Versioned => ({ ...actor, version, reason: body.reason ?? null });

/** A change, and the candidate as it is afterwards. */
async function changed(recovery: Recovery, asked: Changing, actor: Actor, change: (id: number, by: Versioned) => unknown) {
  const id = numbered("candidate", asked);
  await change(id, changedBy(asked, actor));
  return shownCandidate(recovery, asked, id);
}

const decides = (decide: "approve" | "reject") => (recovery: Recovery, asked: Changing, actor: Actor) =>
  changed(recovery, asked, actor, (id, by) => recovery[decide](id, by));

export const CANDIDATES: RecoveryHandlers<keyof typeof CANDIDATE_ROUTES> = {
  async listCandidates(recovery, { query }, _, kernel) {
    const { all = false, ...filter } = limited(inTime(query, kernel));
    return page(await recovery.candidates({ ...filter, current: !all }), shape.candidateJson);
  },
  getCandidate: (recovery, asked) => shownCandidate(recovery, asked, numbered("candidate", asked), asked.query.includeProvenance),
  updateCandidate: (recovery, asked, actor) =>
    changed(recovery, asked, actor, (id, by) => recovery.update(id, { ...asked.body, ...by })),
  deleteCandidate: decides("reject"),
  approveCandidate: decides("approve"),
  rejectCandidate: decides("reject"),
  executeCandidate: (recovery, asked, actor) =>
    changed(recovery, asked, actor, (id, by) =>
      recovery.execute(id, { ...by, redrive: asked.body.redrive, afterRepair: asked.body.afterRepair }),
    ),
  claimCandidate: (recovery, asked, actor) =>
    changed(recovery, asked, actor, (id, by) => recovery.claim(id, { ...asked.body, ...by })),
  async reportOutcome(recovery, asked, actor) {
    const id = numbered("candidate", asked);
    await recovery.reportOutcome(id, { ...asked.body, ...actor });
    return shownCandidate(recovery, asked, id);
  },
  approve(recovery, asked, actor) {
    const { candidateId: id, decision } = asked.body;
    return decides(decision === "rejected" ? "reject" : "approve")(recovery, { ...asked, params: { id: String(id) } }, actor);
  },
};

/** The candidate as it is now, and how to go on where one name is not enough. */
async function shownCandidate(recovery: Recovery, { named }: { named: boolean }, id: number, provenance = false): Promise<Reply> {
  const detail = await recovery.candidate(id, { provenance });
  const waits = detail.approvalsMissing > 0 && detail.candidate.approvals.length > 0 && !detail.lapsed;
  const hint = waits && !named ? { hint: `another person must approve; ${NAMES_HINT}` } : {};
  return tagged(200, { ...shape.candidateDetailJson(detail), ...hint }, detail.candidate.version);
}

export const RULES: RecoveryHandlers<keyof typeof RULE_ROUTES> = {
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
  whatIf: async (recovery, { body }) => json(200, wireOf(whatIf, await recovery.whatIf(body))),
  async deleteRule(recovery, { params: { id }, version }, actor) {
    const known = (await recovery.rules()).find((rule) => rule.id === id);
    await recovery.deleteRule(id, version ?? known?.version ?? 0, actor);
    return DONE;
  },
  async getRuleHistory(recovery, { params: { id } }) {
    const data = await recovery.ruleHistory(id);
    return page({ data }, ({ version, text, actor, at }) => ({ version, actor, at, rule: shape.parsedText(text || null) }));
  },
  listCauses: async (recovery) => page({ data: await recovery.causes() }, (one) => one),
  async getCause(recovery, { params: { id } }) {
    const signature = (await recovery.causes()).find((one) => one.id === id);
    if (!signature) throw notFound("cause", id);
    return tagged(200, signature, signature.version);
  },
  async putCause(recovery, asked, actor) {
    const { id } = asked.params;
    const from = asked.version ?? 0;
    const signature = await recovery.putCause(id, documentText(asked, id), from, actor);
    return tagged(from === 0 ? 201 : 200, signature, signature.version);
  },
  async deleteCause(recovery, { params: { id }, version }, actor) {
    const known = (await recovery.causes()).find((one) => one.id === id);
    await recovery.deleteCause(id, version ?? known?.version ?? 0, actor);
    return DONE;
  },
  listActions: async (recovery, { query }) => page({ data: await recovery.actions(query) }, shape.actionJson),
  async getAction(recovery, { params: { id } }) {
    const action = (await recovery.actions()).find((one) => one.actionCode === id);
    if (!action) throw notFound("action", id);
    return tagged(200, shape.actionJson(action), action.version);
  },
  async putAction(recovery, asked, actor) {
    const action = await recovery.putAction(asked.params.id, documentText(asked), asked.version ?? 0, actor);
    return tagged(200, shape.actionJson(action), action.version);
  },
};

/** The document as it was sent, without the members that are about the edit itself: what it may hold is for the engine to say. */
function documentText({ body }: Pick<Asked<"putRule">, "body">, id?: string): string {
  const { version: _, ...document } = body;
  if (id === undefined) return JSON.stringify(document);
  if (document.id !== undefined && document.id !== id)
    throw refusalOf("invalid_request", "id", `is another one than that of the address, ${id}`);
  return JSON.stringify({ ...document, id });
}

const moves =
  (move: "pauseRedrive" | "cancelRedrive") =>
  async (recovery: Recovery, asked: Asked<"pauseRedrive">, actor: Actor): Promise<Reply> =>
    shownRedrive(await recovery[move](identified("redrive", asked), changedBy(asked, actor)));

export const REDRIVES: RecoveryHandlers<keyof typeof REDRIVE_ROUTES | "editMessage"> = {
  listRedrives: async (recovery, { query }) => page(await recovery.redrives(limited(query)), shape.redriveJson),
  async startRedrive(recovery, asked, actor) {
    const idempotencyKey = asked.body.idempotencyKey ?? headerKey(asked);
    const { redrive, created } = await recovery.startRedrive({ ...asked.body, idempotencyKey }, actor);
    return shownRedrive(redrive, created ? 201 : 200);
  },
  getRedrive: async (recovery, asked) => shownRedrive(await recovery.redrive(identified("redrive", asked))),
  listRedriveItems: async (recovery, asked) =>
    page(await recovery.redriveItems(identified("redrive", asked), limited(asked.query)), (one) => wireOf(redriveItem, one)),
  pauseRedrive: moves("pauseRedrive"),
  async resumeRedrive(recovery, asked, actor) {
    const by = { ...changedBy(asked, actor), afterRepair: asked.body.afterRepair };
    return shownRedrive(await recovery.resumeRedrive(identified("redrive", asked), by));
  },
  cancelRedrive: moves("cancelRedrive"),
  /** I8: the new payload is cut out as text; whether it fits the topic's schema is the engine's question. */
  async editMessage(recovery, asked, actor, kernel) {
    const { value, text: payload } = readExact(editBody, asked.body, "payload", "invalid_request");
    const id = identified("message", asked);
    const message = await recovery.edit(id, { ...value, payload, ...actor });
    const origin = await recovery.origin(message.id);
    const shown = await shownMessage(kernel, message, { replay_of: origin?.replayOf ?? id, edited: true });
    return jsonText(201, shown, { location: `/api/v1/messages/${message.id}` });
  },
};

function shownRedrive(redrive: RedriveDetail, status = 200): Reply {
  return tagged(status, shape.redriveDetailJson(redrive), redrive.version, { location: `/api/v1/redrives/${redrive.redriveId}` });
}
