/**
 * Redrives over HTTP, and a dead letter again with another payload. Starting twice under one idempotency key is one redrive: 201 it was
 * started (or planned, in a dry run), 200 it was there already.
 */
import { standingOf } from "../../client/standing.ts";
import { editBody } from "../../contract/messages.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Actor, Recovery, Versioned } from "../../recovery/recovery.ts";
import type { RedrivePlan } from "../../recovery/redrive/request.ts";
import type { Redrive } from "../../store/redrive.ts";
import { json, jsonText } from "../http.ts";
import { messageJson, withPayload } from "../json/message-json.ts";
import { itemJson, redriveJson } from "../json/redrive-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import { readExact } from "../read-exact.ts";
import type { Asked } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";
import { limitOf } from "./limit-of.ts";
import { headerKey, noSuchMessage } from "./messages.ts";
import { notFound, recoveryHandlers } from "./recovery-request.ts";

type Routes =
  | "listRedrives"
  | "startRedrive"
  | "getRedrive"
  | "listRedriveItems"
  | "pauseRedrive"
  | "resumeRedrive"
  | "cancelRedrive"
  | "editMessage";

export function redriveHandlers(kernel: Kernel): Handlers<Routes> {
  const moves =
    (move: (recovery: Recovery, id: string, by: Versioned) => Promise<Redrive>) =>
    async (recovery: Recovery, asked: Asked<"pauseRedrive">, actor: Actor) => {
      const by = { ...actor, version: asked.version, reason: asked.body.reason ?? null };
      return shown(await move(recovery, idOf(asked), by), 200);
    };
  return recoveryHandlers<Routes>(kernel, {
    async listRedrives(recovery, { query }) {
      const { data, nextCursor } = await recovery.redrives({ ...query, limit: limitOf(query.limit) });
      return json(200, { data: data.map(redriveJson), next_cursor: nextCursor });
    },
    startRedrive: start,
    getRedrive: async (recovery, asked) => shown(await recovery.redrive(idOf(asked)), 200),
    async listRedriveItems(recovery, asked) {
      const { query } = asked;
      const { data, nextCursor } = await recovery.redriveItems(idOf(asked), { ...query, limit: limitOf(query.limit) });
      return json(200, { data: data.map(itemJson), next_cursor: nextCursor });
    },
    pauseRedrive: moves((recovery, id, by) => recovery.pauseRedrive(id, by)),
    resumeRedrive: moves((recovery, id, by) => recovery.resumeRedrive(id, by)),
    cancelRedrive: moves((recovery, id, by) => recovery.cancelRedrive(id, by)),
    editMessage: (recovery, asked, actor) => edit(kernel, recovery, asked, actor),
  });
}

async function start(recovery: Recovery, asked: Asked<"startRedrive">, actor: Actor): Promise<Reply> {
  const { select, dry_run: dryRun, generation_max: generationMax, ...body } = asked.body;
  const { group_id: groupId, tenant_id: tenantId, error_code: errorCode, ...chosen } = select;
  const request = {
    select: { ...chosen, groupId, tenantId, errorCode },
    mode: body.mode,
    reason: body.reason,
    idempotencyKey: body.idempotency_key ?? headerKey(asked),
    dryRun,
    confirm: body.confirm,
    generationMax,
    elsewhere: body.elsewhere,
    ...planOf(body),
  };
  const { redrive, created } = await recovery.startRedrive(request, actor);
  return shown(redrive, created ? 201 : 200);
}

type Plan = NonNullable<Asked<"executeCandidate">["body"]["redrive"]>;

/** Absent members are left to the defaults. */
export function planOf(given: Omit<Plan, "confirm" | "seen">): Partial<RedrivePlan> {
  const plan = {
    canary: given.canary,
    ratePerSecond: given.rate_per_second,
    rampFrom: given.ramp_from,
    failureShareMax: given.failure_share_max,
    failureMin: given.failure_min,
    delayMs: given.delay_ms,
  };
  return Object.fromEntries(Object.entries(plan).filter(([, value]) => value !== undefined));
}

function shown(redrive: Redrive, status: number): Reply {
  return json(status, redriveJson(redrive), { etag: `"${redrive.version}"`, location: `/api/v1/redrives/${redrive.redriveId}` });
}

function idOf({ params: { id } }: Pick<Asked<"getRedrive">, "params">): string {
  if (!isUuid(id)) throw notFound("redrive", id);
  return id;
}

/** I8: the new payload is cut out as text; whether it fits the topic's schema is the engine's question. */
async function edit(kernel: Kernel, recovery: Recovery, asked: Asked<"editMessage">, actor: Actor): Promise<Reply> {
  const { id } = asked.params;
  const { value, text: payload } = readExact(editBody, asked.body, "payload", "invalid_request");
  if (!isUuid(id)) return noSuchMessage(id);
  const { key, revision, reason, force } = value;
  const message = await recovery.edit(id, { payload, key, revision, reason, force, ...actor });
  const [standing, origin] = await Promise.all([
    standingOf(kernel.mg.store, kernel.clock, message.topic),
    recovery.origin(message.id),
  ]);
  const object = { ...messageJson(message, standing), replay_of: origin?.replayOf ?? id, edited: true };
  return jsonText(201, withPayload(object, message.payload), { location: `/api/v1/messages/${message.id}` });
}
