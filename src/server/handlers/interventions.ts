/**
 * What people do to a message, and what they say about the store: each with a reason and under the name of who asked. Not found, wrong state
 * and a moved revision are thrown by the kernel and become their problems in the app.
 */
import type { MessageView } from "../../message/message.ts";
import { isUuid } from "../../platform/ids.ts";
import { json } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import type { Asked } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";
import { noSuchMessage, shownMessage } from "./messages.ts";

type Verb = "replay" | "resolve" | "discard" | "cancel" | "reschedule";

export function interventionHandlers(kernel: Kernel): Handlers<`${Verb}Message` | "acknowledgeLoss"> {
  const { mg } = kernel;
  const does =
    <V extends Verb>(verb: V): Handler<`${V}Message`> =>
    async (asked) => {
      const { params, body, actor } = asked as unknown as Asked<"rescheduleMessage">;
      if (!isUuid(params.id)) return noSuchMessage(params.id);
      const message: MessageView = await mg[verb](params.id, { ...body, actor });
      return shownMessage(kernel, message);
    };
  return {
    replayMessage: does("replay"),
    resolveMessage: does("resolve"),
    discardMessage: does("discard"),
    cancelMessage: does("cancel"),
    rescheduleMessage: does("reschedule"),
    async acknowledgeLoss({ body, actor }) {
      await mg.watch.acknowledge(actor, body.reason);
      return json(200, { acknowledged: true });
    },
  };
}
