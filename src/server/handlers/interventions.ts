/**
 * What people do to a message, and what they say about the store: each with a reason and under the name of who asked. Not found, wrong state
 * and a moved revision are thrown by the kernel and become their problems in the app.
 */
import { standingOf } from "../../client/standing.ts";
import type { MessageView } from "../../message/message.ts";
import { isUuid } from "../../platform/ids.ts";
import { json, jsonText } from "../http.ts";
import { messageJson, withPayload } from "../json/message-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import type { Handlers } from "./handlers.ts";
import { noSuchMessage } from "./messages.ts";

type Routes = "replayMessage" | "resolveMessage" | "discardMessage" | "cancelMessage" | "rescheduleMessage" | "acknowledgeLoss";

export function interventionHandlers({ mg, clock }: Kernel): Handlers<Routes> {
  const changed = async (id: string, change: () => Promise<MessageView>): Promise<Reply> => {
    if (!isUuid(id)) return noSuchMessage(id);
    const message = await change();
    const standing = await standingOf(mg.store, clock, message.topic);
    return jsonText(200, withPayload(messageJson(message, standing), message.payload));
  };
  return {
    replayMessage: ({ params, body, actor }) => changed(params.id, () => mg.replay(params.id, { ...body, actor })),
    resolveMessage: ({ params, body, actor }) => changed(params.id, () => mg.resolve(params.id, { ...body, actor })),
    discardMessage: ({ params, body, actor }) => changed(params.id, () => mg.discard(params.id, { ...body, actor })),
    cancelMessage: ({ params, body, actor }) => changed(params.id, () => mg.cancel(params.id, { ...body, actor })),
    rescheduleMessage: ({ params, body: { delay_ms: delayMs, ...body }, actor }) =>
      changed(params.id, () => mg.reschedule(params.id, { ...body, delayMs, actor })),
    async acknowledgeLoss({ body, actor }) {
      await mg.watch.acknowledge(actor, body.reason);
      return json(200, { acknowledged: true });
    },
  };
}
