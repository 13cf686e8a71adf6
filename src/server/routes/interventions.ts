/**
 * What people do to a message over HTTP: replay, resolve, discard, each with a reason and under the name of who asked.
 */

import { standingOf } from "../../client/standing.ts";
import { LIMITS } from "../../message/limits.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Intervention } from "../../store/store.ts";
import { BODY_BYTES, readText } from "../body.ts";
import { messageJson, withPayload } from "../contract/contract.ts";
import { type FieldFault, type Fields, readFields } from "../contract/fields.ts";
import { checkJson } from "../contract/payload-scanner.ts";
import { problem } from "../contract/problem.ts";
import { type Handler, jsonText, type Parsed, parsed, refused } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import { noSuchMessage } from "./messages.ts";

/** Not found, wrong state and a moved revision are thrown by the kernel and become their problems in the app. */
export function interventionHandler(kernel: Kernel, action: Intervention["action"]): Handler {
  return async (request) => {
    const text = await readText(request, BODY_BYTES.intervention);
    if (!text.ok) return text.reply;
    const asked = readAsked(text.value, action);
    if (!asked.ok) return asked.reply;
    const id = request.params.get("id") ?? "";
    if (!isUuid(id)) return noSuchMessage(id);
    const message = await kernel.mg[action](id, { actor: request.actor, ...asked.value });
    return jsonText(
      200,
      withPayload(messageJson(message, await standingOf(kernel.mg.store, kernel.clock, message.topic)), message.payload),
    );
  };
}

interface Asked {
  readonly reason: string;
  readonly revision: number | undefined;
  readonly force: boolean | undefined;
}

function readAsked(text: string, action: Intervention["action"]): Parsed<Asked> {
  checkJson(text, "invalid_message");
  const faults: FieldFault[] = [];
  const fields = readFields(JSON.parse(text), "", faults);
  const reason = reasonOf(fields);
  const revision = fields?.integer("revision", 0, Number.MAX_SAFE_INTEGER);
  const force = action === "replay" ? fields?.boolean("force") : undefined;
  fields?.refuseUnknown();
  if (faults.length === 0 && reason !== undefined) return parsed({ reason, revision, force });
  return refusedFor(faults);
}

/** The reason that the caller gives; what is wrong with it becomes a fault. */
export function reasonOf(fields: Fields | undefined): string | undefined {
  const reason = fields?.text("reason")?.trim();
  if (fields && !fields.has("reason")) fields.fault("reason", "is missing: say why, it becomes part of the history");
  else if (reason === "") fields?.fault("reason", "must not be blank");
  else if (reason !== undefined && (Buffer.byteLength(reason) > LIMITS.reasonBytesMax || /\0|\p{Surrogate}/u.test(reason))) {
    fields?.fault("reason", `may have at most ${LIMITS.reasonBytesMax} bytes, without NUL or lone surrogates`);
  }
  return reason;
}

export function refusedFor(faults: readonly FieldFault[]): Parsed<never> {
  const errors = faults.map((fault) => ({ ...fault, code: "invalid_message" as const }));
  const detail = faults.map((fault) => `${fault.field} ${fault.detail}`).join("; ");
  return refused(problem("invalid_message", detail, { errors }));
}
