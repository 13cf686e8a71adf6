/**
 * Redrives over HTTP, and a dead letter again with another payload. Starting twice under one idempotency key is one redrive: 201 it was
 * started (or planned, in a dry run), 200 it was there already.
 */
import { editBody } from "../../contract/messages.ts";
import type { REDRIVE_ROUTES } from "../../contract/recovery/redrives.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Actor, Recovery } from "../../recovery/recovery.ts";
import type { Redrive } from "../../store/redrive.ts";
import { page, tagged } from "../http.ts";
import { itemJson, redriveJson } from "../json/redrive-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import { readExact } from "../read-exact.ts";
import type { Asked } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";
import { limited } from "./limited.ts";
import { headerKey, noSuchMessage, shownMessage } from "./messages.ts";
import { recoveryHandlers, redriveId } from "./recovery-request.ts";

type Routes = keyof typeof REDRIVE_ROUTES | "editMessage";

export function redriveHandlers(kernel: Kernel): Handlers<Routes> {
  const moves =
    (move: "pauseRedrive" | "resumeRedrive" | "cancelRedrive") =>
    async (recovery: Recovery, asked: Asked<"pauseRedrive">, actor: Actor) => {
      const by = { ...actor, version: asked.version, reason: asked.body.reason ?? null };
      return shown(await recovery[move](redriveId(asked), by), 200);
    };
  return recoveryHandlers<Routes>(kernel, {
    listRedrives: async (recovery, { query }) => page(await recovery.redrives(limited(query)), redriveJson),
    async startRedrive(recovery, asked, actor) {
      const idempotencyKey = asked.body.idempotencyKey ?? headerKey(asked);
      const { redrive, created } = await recovery.startRedrive({ ...asked.body, idempotencyKey }, actor);
      return shown(redrive, created ? 201 : 200);
    },
    getRedrive: async (recovery, asked) => shown(await recovery.redrive(redriveId(asked)), 200),
    listRedriveItems: async (recovery, asked) =>
      page(await recovery.redriveItems(redriveId(asked), limited(asked.query)), itemJson),
    pauseRedrive: moves("pauseRedrive"),
    resumeRedrive: moves("resumeRedrive"),
    cancelRedrive: moves("cancelRedrive"),
    /** I8: the new payload is cut out as text; whether it fits the topic's schema is the engine's question. */
    async editMessage(recovery, { params: { id }, body }, actor) {
      const { value, text: payload } = readExact(editBody, body, "payload", "invalid_request");
      if (!isUuid(id)) return noSuchMessage(id);
      const message = await recovery.edit(id, { ...value, payload, ...actor });
      const origin = await recovery.origin(message.id);
      const location = `/api/v1/messages/${message.id}`;
      return shownMessage(kernel, message, 201, { replay_of: origin?.replayOf ?? id, edited: true }, { location });
    },
  });
}

function shown(redrive: Redrive, status: number): Reply {
  return tagged(status, redriveJson(redrive), redrive.version, { location: `/api/v1/redrives/${redrive.redriveId}` });
}
