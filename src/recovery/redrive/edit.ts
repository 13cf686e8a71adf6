/**
 * Edit and retry one dead letter: a new message with another payload, checked like any that comes in; the original is kept, resolved, and
 * says why.
 */
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { MessageView } from "../../message/message.ts";
import { checkFields, parsePayloadText } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import { copyOf } from "./carriers.ts";
import type { RedriveDeps } from "./deps.ts";
import { carriedError, type MessageEdited } from "./redrive.ts";
import { refuseUndelivered } from "./start.ts";

export interface EditRequest extends Actor {
  readonly payload: string;
  /** Absent: the original's key, which leads to the new message from then on. Null: none. */
  readonly key?: string | null | undefined;
  /** The revision that was seen. */
  readonly revision?: number | undefined;
  readonly reason: string;
  /** Also while a copy of it is on its way to another receiver: both may get it. */
  readonly force?: boolean | undefined;
  /** The group it was counted in, for the record. */
  readonly groupId?: number | null | undefined;
}

export async function editMessage(deps: RedriveDeps, messageId: string, edit: EditRequest): Promise<MessageView> {
  const { actor, reason, payload, revision, force } = edit;
  if (typeof reason !== "string" || reason.trim() === "" || Buffer.byteLength(reason) > LIMITS.reasonBytesMax) {
    const detail = `must be a text of 1 to ${LIMITS.reasonBytesMax} bytes`;
    throw new MakegoodError("invalid_request", `reason ${detail}`, { errors: [{ field: "reason", detail }] });
  }
  const original = isUuid(messageId) ? await deps.store.get(messageId) : null;
  if (!original) throw notFound(messageId);
  const key = edit.key === undefined ? original.key : edit.key;
  checkFields({ key });
  parsePayloadText(payload);
  await deps.checkPayload(original.topic, payload);
  await refuseUndelivered(deps, [original.topic], true);
  const schemaVersion = (await deps.store.topics.get(original.topic))?.schemaVersion ?? null;
  const message = { ...copyOf(original, deps.ids(), original.topic, key, payload), schemaVersion };
  const details = { message: messageId, edited_as: message.id };
  const provenance = [line("message_edited", edit, { groupId: edit.groupId ?? null, reason, details })];
  const result = await deps.recovery.redrives.edit({ id: messageId, revision, message, actor, reason, force, provenance });
  if (result.kind !== "done") throw refusal(messageId, key, result);
  deps.events.emit({ type: "intervened", id: messageId, action: "edit", actor, reason });
  return result.message;
}

const notFound = (id: string): MakegoodError => new MakegoodError("message_not_found", `there is no message ${id}`, { id });

function refusal(id: string, key: string | null, result: Exclude<MessageEdited, { kind: "done" }>): MakegoodError {
  switch (result.kind) {
    case "not_found":
      return notFound(id);
    case "wrong_state": {
      const { status, resolution } = result.message;
      const state = resolution ? `${status} (${resolution})` : status;
      const text = `message ${id} is ${state}: only an open dead letter can be edited and retried`;
      return new MakegoodError("wrong_state", text, { id, status, resolution });
    }
    case "revision_conflict": {
      const text = `message ${id} has moved on to revision ${result.revision}: look again before you edit it`;
      return new MakegoodError("revision_conflict", text, { id, revision: result.revision });
    }
    case "key_conflict": {
      const text = `key ${JSON.stringify(key)} belongs to message ${result.id}: choose another key`;
      return new MakegoodError("key_conflict", text, { id: result.id, key });
    }
    case "carried":
      return carriedError(result);
  }
}
