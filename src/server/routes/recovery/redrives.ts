/**
 * Redrives over HTTP, and a dead letter again with another payload. Starting twice under one idempotency key is one redrive: 201 it was
 * started (or planned, in a dry run), 200 it was there already.
 */

import { standingOf } from "../../../client/standing.ts";
import { isUuid } from "../../../platform/ids.ts";
import type { Actor, Recovery, Versioned } from "../../../recovery/recovery.ts";
import type { ItemState, Redrive, RedriveStatus } from "../../../store/redrive.ts";
import { BODY_BYTES, readText } from "../../body.ts";
import { messageJson, withPayload } from "../../contract/contract.ts";
import { keyFault } from "../../contract/contract-message.ts";
import { itemJson, redriveJson } from "../../contract/contract-redrive.ts";
import { type FieldFault, readFields } from "../../contract/fields.ts";
import { cursorOn, eachMember, expectEnd, takeValue } from "../../contract/payload-scanner.ts";
import type { Reply } from "../../contract/problem.ts";
import { type ApiRequest, type Handler, json, jsonText } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";
import { headerKey, noSuchMessage } from "../messages.ts";
import { invalidRequest, noteOf, readBody, reasonOf, versionOf } from "./body.ts";
import { readQuery } from "./query.ts";
import { readRedrive } from "./read-redrive.ts";
import { notFound, type RecoveryHandler, recoveryHandler } from "./recovery-request.ts";

const STATUSES: readonly RedriveStatus[] = ["planned", "running", "paused", "stopped", "cancelled", "done"];
const STATES: readonly ItemState[] = ["waiting", "sent", "healed", "failed", "skipped"];

export type RedriveHandlers = Readonly<
  Record<"list" | "start" | "get" | "items" | "pause" | "resume" | "cancel" | "edit", Handler>
>;

export function redriveHandlers(kernel: Kernel): RedriveHandlers {
  const make = (handle: RecoveryHandler): Handler => recoveryHandler(kernel, handle);
  const moves = (move: (recovery: Recovery, id: string, by: Versioned) => Promise<Redrive>): Handler =>
    make((recovery, request, actor) =>
      withRedrive(request, async (id) => {
        const read = await readBody(
          request,
          (fields) => ({ ...actor, version: versionOf(request, fields), reason: noteOf(fields, "reason") ?? null }),
          { optional: true },
        );
        return read.ok ? shown(await move(recovery, id, read.value), 200) : read.reply;
      }),
    );
  return {
    list: make(list),
    start: make(start),
    get: make((recovery, request) => withRedrive(request, async (id) => shown(await recovery.redrive(id), 200))),
    items: make((recovery, request) => withRedrive(request, (id) => items(recovery, request, id))),
    pause: moves((recovery, id, by) => recovery.pauseRedrive(id, by)),
    resume: moves((recovery, id, by) => recovery.resumeRedrive(id, by)),
    cancel: moves((recovery, id, by) => recovery.cancelRedrive(id, by)),
    edit: make((recovery, request, actor) => edit(kernel, recovery, request, actor)),
  };
}

async function list(recovery: Recovery, request: ApiRequest): Promise<Reply> {
  const query = readQuery(request.query, (read) => ({ status: read.oneOf("status", STATUSES), ...read.page() }));
  if (!query.ok) return query.reply;
  const { data, nextCursor } = await recovery.redrives(query.value);
  return json(200, { data: data.map(redriveJson), next_cursor: nextCursor });
}

async function start(recovery: Recovery, request: ApiRequest, actor: Actor): Promise<Reply> {
  const key = headerKey(request);
  if (!key.ok) return key.reply;
  const asked = await readBody(request, (fields) => readRedrive(fields, key.value));
  if (!asked.ok) return asked.reply;
  const { redrive, created } = await recovery.startRedrive(asked.value, actor);
  return shown(redrive, created ? 201 : 200);
}

async function items(recovery: Recovery, request: ApiRequest, id: string): Promise<Reply> {
  const query = readQuery(request.query, (read) => ({ state: read.oneOf("state", STATES), ...read.page() }));
  if (!query.ok) return query.reply;
  const { data, nextCursor } = await recovery.redriveItems(id, query.value);
  return json(200, { data: data.map(itemJson), next_cursor: nextCursor });
}

function shown(redrive: Redrive, status: number): Reply {
  return json(status, redriveJson(redrive), { etag: `"${redrive.version}"`, location: `/api/v1/redrives/${redrive.id}` });
}

async function withRedrive(request: ApiRequest, use: (id: string) => Promise<Reply>): Promise<Reply> {
  const id = request.params.get("id") ?? "";
  return isUuid(id) ? use(id) : notFound("redrive", id);
}

async function edit(kernel: Kernel, recovery: Recovery, request: ApiRequest, actor: Actor): Promise<Reply> {
  const text = await readText(request, BODY_BYTES.edit(kernel.payloadBytesMax));
  if (!text.ok) return text.reply;
  const read = readEdit(text.value);
  if (!read.ok) return invalidRequest(read.faults);
  const id = request.params.get("id") ?? "";
  if (!isUuid(id)) return noSuchMessage(id);
  const message = await recovery.edit(id, { ...read.value, ...actor });
  const [standing, origin] = await Promise.all([
    standingOf(kernel.mg.store, kernel.clock, message.topic),
    recovery.origin(message.id),
  ]);
  const object = { ...messageJson(message, standing), replay_of: origin?.replayOf ?? id, edited: true };
  return jsonText(201, withPayload(object, message.payload), { location: `/api/v1/messages/${message.id}` });
}

interface Edit {
  readonly payload: string;
  readonly key: string | undefined;
  readonly revision: number | undefined;
  readonly reason: string;
  readonly force: boolean | undefined;
}

type EditRead = { readonly ok: true; readonly value: Edit } | { readonly ok: false; readonly faults: readonly FieldFault[] };

/** I8: the new payload is cut out as text; whether it fits the topic's schema is the engine's question. */
function readEdit(text: string): EditRead {
  const faults: FieldFault[] = [];
  const members: [string, unknown][] = [];
  const seen = new Set<string>();
  let payload: string | undefined;
  const cursor = cursorOn(text, "invalid_request");
  const isObject = eachMember(cursor, (name) => {
    const value = takeValue(cursor);
    if (seen.has(name)) faults.push({ field: name.slice(0, 100), detail: "is given twice" });
    seen.add(name);
    if (name === "payload") payload = value;
    else members.push([name, JSON.parse(value)]);
  });
  if (!isObject) takeValue(cursor);
  expectEnd(cursor);
  const fields = readFields(isObject ? Object.fromEntries(members) : null, "", faults);
  if (fields === undefined) return { ok: false, faults };
  const key = fields.raw("key");
  const keyWrong = key === undefined ? null : keyFault(key);
  if (keyWrong !== null) fields.fault("key", keyWrong.detail.replace("`key` ", ""));
  const revision = fields.integer("revision", 0, Number.MAX_SAFE_INTEGER);
  const reason = reasonOf(fields);
  const force = fields.boolean("force");
  fields.refuseUnknown();
  if (payload === undefined) fields.fault("payload", "is missing");
  if (faults.length > 0 || payload === undefined) return { ok: false, faults };
  return { ok: true, value: { payload, key: key as string | undefined, revision, reason, force } };
}
