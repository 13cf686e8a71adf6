/** The recovery engine over HTTP. Every change is made under the token's name and may insist on the version that was read. */
import type { RouteId } from "../../contract/addresses.ts";
import { editBody } from "../../contract/messages.ts";
import { type CANDIDATE_ROUTES, whatIf } from "../../contract/recovery/candidates.ts";
import { type GROUP_ROUTES, OCCURRENCE_PAGE_MAX } from "../../contract/recovery/groups.ts";
import { type REDRIVE_ROUTES, redriveItem } from "../../contract/recovery/redrives.ts";
import { groupRule } from "../../contract/recovery/shapes.ts";
import { momentOf } from "../../contract/values.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Actor, Recovery, Versioned } from "../../recovery/recovery.ts";
import { ruleToJson } from "../../recovery/rules/parse-rule.ts";
import { DONE, identified, json, jsonText, notFound, numbered, page, pageText, type Reply, spliced, tagged } from "../http.ts";
import * as shape from "../json/recovery-json.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { type Asked, limited, readExact, refusalOf } from "../read-request.ts";
import type { FAILURES } from "./failures.ts";
import type { RecoveryHandlers } from "./handlers.ts";
import { headerKey, shownMessage } from "./messages.ts";

/** Two people need two names, and a server without tokens has only one. */
export const NAMES_HINT =
  "this server asks for no token, so everybody has one name here: set MAKEGOOD_TOKENS (name:secret,…) to give each person their own";

function inTime<Q extends Asked<"listGroups" | "listCandidates">["query"]>({ since, until, ...query }: Q, { clock }: Kernel) {
  const instant = (moment = "") => momentOf(moment, clock.wallMs()) ?? undefined;
  return { ...query, since: instant(since), until: instant(until) };
}

/** By its number, or by a failure_match_id: its own, or one that was supplied. */
async function named(recovery: Recovery, name: number | string): Promise<number> {
  if (typeof name === "number") return name;
  const failureMatchId = name.toLowerCase();
  const [group] = (await recovery.groups({ failureMatchId, limit: 1 })).data;
  if (group === undefined) throw notFound("group", failureMatchId);
  return group.groupId;
}

const allNamed = (recovery: Recovery, names: readonly (number | string)[]): Promise<number[]> =>
  Promise.all([...new Set(names)].map((name) => named(recovery, name)));

const groupId = (recovery: Recovery, asked: Pick<ById, "params">): Promise<number> =>
  named(recovery, isUuid(asked.params.id.toLowerCase()) ? asked.params.id : numbered("group", asked));

const gone = (deleting: Promise<unknown>): Promise<Reply> => deleting.then(() => DONE);

type ById<B = unknown> = { readonly params: { readonly id: string }; readonly body: B };

const regroups =
  <B>(change: (recovery: Recovery, id: number, body: B, actor: Actor) => Promise<shape.Of<"merge">>) =>
  async (recovery: Recovery, asked: ById<B>, actor: Actor): Promise<Reply> =>
    json(200, shape.groupJson(await change(recovery, await groupId(recovery, asked), asked.body, actor)));

export const GROUPS: RecoveryHandlers<Exclude<keyof typeof GROUP_ROUTES, keyof typeof FAILURES>> = {
  listGroups: async (recovery, { query }, _, kernel) =>
    page(await recovery.groups(limited(inTime(query, kernel))), shape.groupJson),
  async getGroup(recovery, asked) {
    const { group, candidate, occurrences, why } = await recovery.group(await groupId(recovery, asked));
    const shown = { candidate: candidate && shape.candidateJson({ candidate, group }) };
    return json(200, { ...shape.groupJson(group), why, ...shown, occurrences: occurrences.map(shape.occurrenceJson) });
  },
  async listOccurrences(recovery, asked) {
    const { payload = false, ...filter } = asked.query;
    const wanted = limited(filter, payload ? OCCURRENCE_PAGE_MAX : undefined);
    return pageText(await recovery.occurrences(await groupId(recovery, asked), wanted), (one) => {
      return spliced(shape.occurrenceJson(one), "failure_payload", payload ? (one.failurePayload ?? "null") : undefined);
    });
  },
  mergeGroups: regroups(async (recovery, id, { from, reason }, actor) =>
    recovery.merge(id, await allNamed(recovery, from), reason, actor),
  ),
  async splitGroup(recovery, asked, actor) {
    const { words, reason } = asked.body;
    const { group, moved } = await recovery.split(await groupId(recovery, asked), words, reason, actor);
    return json(201, { ...shape.groupJson(group), moved }, { location: `/api/v1/recovery/groups/${group.groupId}` });
  },
  resolveGroup: regroups((recovery, id, body, actor) => recovery.resolveGroup(id, { ...body, ...actor })),
  async suggestGroup(recovery, asked, actor) {
    const { candidateId } = await recovery.suggest(await groupId(recovery, asked), actor);
    return json(200, shape.candidateDetailJson(await recovery.candidate(candidateId)));
  },
  releaseGroup: regroups((recovery, id, { reason }, actor) => recovery.release(id, { ...actor, reason })),
  listGroupRules: async (recovery) => page({ data: await recovery.groupRules() }, (one) => wireOf(groupRule, one)),
  deleteGroupRule: (recovery, { params: { id }, version }, actor) => gone(recovery.deleteGroupRule(id, version ?? null, actor)),
  async listProvenance(recovery, { query }) {
    const { limit, cursor, failureMatchId, ...of } = limited(query);
    const group = failureMatchId === undefined ? {} : { groupId: await named(recovery, failureMatchId) };
    return page(await recovery.provenance({ ...of, ...group }, { limit, cursor }), shape.provenanceJson);
  },
  getStats: async (recovery) => json(200, shape.statsJson(await recovery.stats())),
};

type Changing<B> = ById<B> & Pick<Asked<RouteId>, "version" | "named">;

const changedBy = <B>({ version, body }: Changing<B>, actor: Actor): B & Versioned => ({ ...body, ...actor, version });

type Change = "update" | "approve" | "reject" | "execute" | "claim" | "reportOutcome";
type ChangeOf<V extends Change> = Changing<Omit<Parameters<Recovery[V]>[1], keyof Versioned>>;

const changes = <V extends Change>(change: V) =>
  async function changeCandidate(recovery: Recovery, asked: ChangeOf<V>, actor: Actor) {
    const id = numbered("candidate", asked);
    await (recovery[change] as (id: number, by: object) => Promise<unknown>)(id, changedBy(asked, actor));
    return shownCandidate(recovery, asked, id);
  };
const approve = changes("approve");
const reject = changes("reject");

async function shownCandidate(recovery: Recovery, { named }: { named: boolean }, id: number, provenance = false): Promise<Reply> {
  const detail = await recovery.candidate(id, { provenance });
  const waits = detail.approvalsMissing > 0 && detail.candidate.approvals.length > 0 && !detail.lapsed;
  const hint = waits && !named ? { hint: `another person must approve; ${NAMES_HINT}` } : {};
  return tagged(200, { ...shape.candidateDetailJson(detail), ...hint }, detail.candidate.version);
}

type Edit = Pick<Asked<"putRule">, "params" | "version" | "body">;

type Shown = { readonly version: number };

const shown = <One extends Shown>(as: (one: One) => unknown, one: One): Reply => tagged(200, as(one), one.version);
const put = <One extends Shown>(as: (one: One) => unknown, one: One, { version = 0 }: Edit): Reply =>
  tagged(version === 0 ? 201 : 200, as(one), one.version);
const itself = <One>(one: One): One => one;
const actionOf = async (recovery: Recovery, id: string) => (await recovery.actions()).find((one) => one.actionCode === id);
const ruleOf = async (recovery: Recovery, id: string) => (await recovery.rules()).find((one) => one.id === id);
const causeOf = async (recovery: Recovery, id: string) => (await recovery.causes()).find((one) => one.id === id);

function found<One>(what: "rule" | "cause" | "action", id: string, one: One | undefined): One {
  if (one === undefined) throw notFound(what, id);
  return one;
}

function edited({ params, version: from = 0, body: { version: _, ...document } }: Edit, named: { id?: string } = params) {
  const { id } = params;
  if (named.id && document.id !== undefined && document.id !== id)
    throw refusalOf("invalid_request", "id", `is another one than that of the address, ${id}`);
  return [id, JSON.stringify({ ...document, ...named }), from] as const;
}

export const CANDIDATES: RecoveryHandlers<keyof typeof CANDIDATE_ROUTES> = {
  async listCandidates(recovery, { query }, _, kernel) {
    const { all = false, ...filter } = limited(inTime(query, kernel));
    return page(await recovery.candidates({ ...filter, current: !all }), shape.candidateJson);
  },
  getCandidate: (recovery, asked) => shownCandidate(recovery, asked, numbered("candidate", asked), asked.query.includeProvenance),
  updateCandidate: changes("update"),
  deleteCandidate: reject,
  approveCandidate: approve,
  rejectCandidate: reject,
  executeCandidate: changes("execute"),
  claimCandidate: changes("claim"),
  reportOutcome: changes("reportOutcome"),
  approve(recovery, asked, actor) {
    const { candidateId, decision } = asked.body;
    return (decision === "rejected" ? reject : approve)(recovery, { ...asked, params: { id: String(candidateId) } }, actor);
  },
  listRules: async (recovery) => page({ data: await recovery.rules() }, ruleToJson),
  getRule: async (recovery, { params: { id } }) => shown(ruleToJson, found("rule", id, await ruleOf(recovery, id))),
  putRule: async (recovery, asked, actor) => put(ruleToJson, await recovery.putRule(...edited(asked), actor), asked),
  whatIf: async (recovery, { body }) => json(200, wireOf(whatIf, await recovery.whatIf(body))),
  deleteRule: async (recovery, { params: { id }, version }, actor) =>
    gone(recovery.deleteRule(id, version ?? (await ruleOf(recovery, id))?.version ?? 0, actor)),
  async getRuleHistory(recovery, { params: { id } }) {
    const data = await recovery.ruleHistory(id);
    return page({ data }, ({ version, text, actor, at }) => ({ version, actor, at, rule: shape.parsedText(text || null) }));
  },
  listCauses: async (recovery) => page({ data: await recovery.causes() }, itself),
  getCause: async (recovery, { params: { id } }) => shown(itself, found("cause", id, await causeOf(recovery, id))),
  putCause: async (recovery, asked, actor) => put(itself, await recovery.putCause(...edited(asked), actor), asked),
  deleteCause: async (recovery, { params: { id }, version }, actor) =>
    gone(recovery.deleteCause(id, version ?? (await causeOf(recovery, id))?.version ?? 0, actor)),
  listActions: async (recovery, { query }) => page({ data: await recovery.actions(query) }, shape.actionJson),
  getAction: async (recovery, { params: { id } }) => shown(shape.actionJson, found("action", id, await actionOf(recovery, id))),
  putAction: async (recovery, asked, actor) => shown(shape.actionJson, await recovery.putAction(...edited(asked, {}), actor)),
};

const moves =
  (move: "pauseRedrive" | "resumeRedrive" | "cancelRedrive") =>
  async (recovery: Recovery, asked: Changing<unknown>, actor: Actor): Promise<Reply> =>
    shownRedrive(await recovery[move](identified("redrive", asked), changedBy(asked, actor)));

export const REDRIVES: RecoveryHandlers<keyof typeof REDRIVE_ROUTES | "editMessage"> = {
  listRedrives: async (recovery, { query }) => page(await recovery.redrives(limited(query)), shape.redriveJson),
  async startRedrive(recovery, asked, actor) {
    const idempotencyKey = asked.body.idempotencyKey ?? headerKey(asked);
    const { groupId: group, failureMatchId = group, groupIds, ...rest } = asked.body.select;
    const select = {
      ...rest,
      groupId: failureMatchId === undefined ? undefined : await named(recovery, failureMatchId),
      groupIds: groupIds && (await allNamed(recovery, groupIds)),
    };
    const { redrive, created } = await recovery.startRedrive({ ...asked.body, select, idempotencyKey }, actor);
    return shownRedrive(redrive, created ? 201 : 200);
  },
  getRedrive: async (recovery, asked) => shownRedrive(await recovery.redrive(identified("redrive", asked))),
  listRedriveItems: async (recovery, asked) =>
    page(await recovery.redriveItems(identified("redrive", asked), limited(asked.query)), (one) => wireOf(redriveItem, one)),
  pauseRedrive: moves("pauseRedrive"),
  resumeRedrive: moves("resumeRedrive"),
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

function shownRedrive(redrive: shape.Of<"redrive">, status = 200): Reply {
  return tagged(status, shape.redriveDetailJson(redrive), redrive.version, { location: `/api/v1/redrives/${redrive.redriveId}` });
}
