/** Messages over HTTP. Accepted means committed: a 201 is written after the store has answered, never before. */
import type { Enqueued } from "../../client/client.ts";
import { shown, standingOf, standings } from "../../client/standing.ts";
import { attempt, intervention, message as messageShape, PAYLOAD_PAGE_MAX } from "../../contract/messages.ts";
import type { ProblemItem } from "../../contract/route.ts";
import { isMakegoodError, type MakegoodError } from "../../message/errors.ts";
import type { MessageView } from "../../message/message.ts";
import { AUDIT_NAMESPACE } from "../../presets/audit/registry.ts";
import type { Store } from "../../store/store.ts";
import { identified, json, jsonText, notFound, pageText, problem, refused, spliced } from "../http.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { faultOf, type Posted, readPosted } from "../posted.ts";
import { type Asked, limited, traceparentOf } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";

type Request = Pick<Asked<"enqueue">, "header">;

export const MESSAGES: Handlers<"enqueue" | "getMessage" | "getPayload" | "listMessages"> = {
  async enqueue(request, kernel) {
    try {
      const posted = readPosted(request.body, kernel.payloadBytesMax, traceparentOf(request));
      if (request.named) nameWriter(request.actor, posted);
      return await (Array.isArray(posted) ? postBatch(kernel, request, posted) : postOne(kernel, request, posted));
    } catch (error) {
      return refusal(error);
    }
  },
  async getMessage(asked, kernel) {
    const { store, recovery } = kernel.mg;
    const message = await foundMessage(kernel, asked);
    const [history, origin] = await Promise.all([store.history(message.id), recovery?.origin(message.id) ?? null]);
    const beside = {
      ...(origin && { replay_of: origin.replayOf, redrive_id: origin.redriveId, edited: origin.edited }),
      timeline: history.attempts.map((one) => wireOf(attempt, one)),
      provenance: history.provenance.map((one) => wireOf(intervention, one)),
    };
    return jsonText(200, await shownMessage(kernel, message, beside));
  },
  getPayload: async (asked, kernel) => jsonText(200, (await foundMessage(kernel, asked)).payload),
  async listMessages({ query: { payload = false, ...filter } }, { mg, clock }) {
    const wanted = { ...limited(filter, payload ? PAYLOAD_PAGE_MAX : undefined), payload };
    const [page, standing] = await Promise.all([mg.store.list(wanted), standings(mg.store, clock)]);
    return pageText(page, (one) => {
      return spliced(wireOf(messageShape, shown(one, standing(one.topic))), "payload", payload ? one.payload : undefined);
    });
  },
};

/** EV-25: who wrote an audit record is the token on this way, too. */
function nameWriter(actor: string, posted: Posted | readonly Posted[]): void {
  for (const { message } of [posted].flat()) if (message?.topic.startsWith(`${AUDIT_NAMESPACE}/`)) message.tenantId = actor;
}

async function foundMessage({ mg }: Kernel, asked: Pick<Asked<"getMessage">, "params">): Promise<MessageView> {
  const id = identified("message", asked);
  const message = await mg.store.get(id);
  if (!message) throw notFound("message", id);
  return message;
}

type Verb = "replay" | "resolve" | "discard" | "cancel" | "reschedule";

const does =
  <V extends Verb>(verb: V): Handler<`${V}Message`> =>
  async (asked, kernel) => {
    const { body, actor, ...rest } = asked as unknown as Asked<"rescheduleMessage">;
    const message = await kernel.mg[verb](identified("message", rest), { ...body, actor });
    return jsonText(200, await shownMessage(kernel, message));
  };

export const INTERVENTIONS: Handlers<`${Verb}Message` | "acknowledgeLoss"> = {
  replayMessage: does("replay"),
  resolveMessage: does("resolve"),
  discardMessage: does("discard"),
  cancelMessage: does("cancel"),
  rescheduleMessage: does("reschedule"),
  async acknowledgeLoss({ body, actor }, { mg }) {
    await mg.watch.acknowledge(actor, body.reason);
    return json(200, { acknowledged: true });
  },
};

export async function shownMessage({ mg, clock }: Kernel, message: MessageView, beside: object = {}): Promise<string> {
  const standing = await standingOf(mg.store, clock, message.topic);
  const object = { ...wireOf(messageShape, shown(message, standing)), ...beside };
  return spliced(object, "payload", message.payload);
}

async function postOne({ mg }: Kernel, request: Request, { message, faults }: Posted) {
  if (!message) {
    const detail = faults.map((fault) => fault.detail).join("; ");
    return problem(faults[0]?.code ?? "invalid_message", detail, { errors: faults.length > 1 ? faults : [] });
  }
  // Not a copy with the key: that costs more than all else here.
  message.key ??= headerKey(request);
  const [accepted] = await mg.enqueueText([message]);
  const { id, inserted } = accepted as Enqueued;
  return json(inserted ? 201 : 200, { id, inserted }, { location: `/api/v1/messages/${id}` });
}

const ONE_KEY = "an Idempotency-Key header names one message: give each message of a batch a `key` of its own";

async function postBatch({ mg }: Kernel, request: Request, posted: readonly Posted[]) {
  if (request.header("idempotency-key") !== null) return problem("invalid_message", ONE_KEY);
  const messages = posted.flatMap(({ message }) => message ?? []);
  if (messages.length < posted.length) return refusedBatch(await allFaults(mg.store, posted));
  const data = await mg.enqueueText(messages);
  return json(data.some(({ inserted }) => inserted) ? 201 : 200, { data: data.map(({ id, inserted }) => ({ id, inserted })) });
}

/** A refused batch names every message that is wrong, those of unknown topics too, so that it is mended once. */
async function allFaults(store: Store, posted: readonly Posted[]): Promise<ProblemItem[]> {
  const topics = new Set((await store.topics.list()).map(({ name }) => name));
  return posted.flatMap(({ message, faults }, index): ProblemItem[] => {
    if (!message) return faults.map((fault) => ({ index, ...fault }));
    const detail = `there is no topic ${message.topic}: declare it first`;
    return topics.has(message.topic) ? [] : [{ index, code: "unknown_topic", detail }];
  });
}

function refusedBatch(all: readonly ProblemItem[]) {
  const wrong = new Set(all.map(({ index }) => index)).size;
  const words = wrong === 1 ? "one message is" : `${wrong} messages are`;
  return problem("batch_refused", `${words} refused, so none of the batch was accepted`, { errors: all });
}

type Indexed = Pick<MakegoodError, "code" | "message"> & { readonly index: number; readonly detail?: { readonly id?: string } };

/** An error that names elements refuses the batch; any other one is about the whole request. */
function refusal(error: unknown) {
  if (!isMakegoodError(error) || error.retryable) throw error;
  const { code, message, detail } = error;
  const { index, errors = typeof index === "number" ? [{ index, code, message }] : null } = detail;
  if (!Array.isArray(errors)) throw error;
  const all = (errors as Indexed[]).map(({ message: text, detail: of, ...one }) => ({ ...one, detail: text, id: of?.id }));
  return refusedBatch(all);
}

/** The key of the Idempotency-Key header, bare or quoted as the draft's structured-field string; null: there is none. */
export function headerKey(request: Request): string | null {
  const header = request.header("idempotency-key");
  if (header === null) return null;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header.trim());
  const key = quoted?.[1] === undefined ? header.trim() : quoted[1].replace(/\\(["\\])/g, "$1");
  if (!/^[\x20-\x7e]*$/.test(key)) throw refused("invalid_message", "the Idempotency-Key header must be ASCII");
  const fault = faultOf("key", key, "the Idempotency-Key header");
  if (fault) throw refused(fault.code, fault.detail);
  return key;
}
