/**
 * What a caller does to a message that was accepted: replay, resolve, discard, cancel, reschedule. By its id, or by the key it was given;
 * fenced by state and revision in the store, and what is refused is thrown with what stands in the way.
 */
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import type { InterventionAction, MessageView } from "../message/message.ts";
import type { TopicName } from "../message/topic.ts";
import { checkNumber } from "../message/validate.ts";
import type { Events } from "../observe/events.ts";
import type { Store } from "../store/store.ts";
import type { AnyTopic } from "../topic/topic.ts";

export interface InterveneOptions {
  /** Who does it: kept with the message. */
  readonly actor: string;
  readonly reason?: string | null | undefined;
  /** The revision that was seen; refused as `revision_conflict` when the message has moved on since. */
  readonly revision?: number | undefined;
}

export interface ReplayOptions extends InterveneOptions {
  /** Also while a copy of it is on its way to another receiver: both may get it. Else that is refused as `carried`. */
  readonly force?: boolean | undefined;
}

export interface RescheduleOptions extends InterveneOptions {
  /** From now, by the store's clock; 0: at once. */
  readonly delayMs: number;
}

/** A message by what its caller knows of it: the key that it was enqueued with. */
export interface KeyedMessage {
  readonly topic: AnyTopic | TopicName;
  readonly key: string;
  readonly tenantId?: string | null | undefined;
}

export interface Interventions {
  /** A dead letter or a held message is pending again, due now, with a new budget and the same key. */
  replay(id: string, options: ReplayOptions): Promise<MessageView>;
  /** A dead letter or a held message was settled by other means. */
  resolve(id: string, options: InterveneOptions): Promise<MessageView>;
  /** It shall not happen: a dead letter, a held message or a pending one. */
  discard(id: string, options: InterveneOptions): Promise<MessageView>;
  /** It shall not happen any more: only a pending message, so that what is being attempted or dead is never taken for cancelled. */
  cancel(message: string | KeyedMessage, options: InterveneOptions): Promise<MessageView>;
  /** Moves the moment that a pending message is due. One that is held waits for a person, and is refused. */
  reschedule(message: string | KeyedMessage, options: RescheduleOptions): Promise<MessageView>;
}

/** As the store's own; throws where a copy of the message is on its way to another receiver. */
export type ReplayUncarried = Store["intervene"];

export function createInterventions(store: Store, events: Events, replayUncarried?: ReplayUncarried): Interventions {
  async function intervene(
    action: InterventionAction,
    id: string,
    { actor, reason = null, revision }: InterveneOptions,
    delayMs?: number,
    write: Store["intervene"] = (one) => store.intervene(one),
  ): Promise<MessageView> {
    const result = await write({ id, action, actor, reason, revision, delayMs });
    if (result.kind !== "done") throw refusal(action, id, result);
    events.emit({ type: "intervened", id, action, actor, reason });
    return result.message;
  }

  const idOf = (message: string | KeyedMessage): string | Promise<string> =>
    typeof message === "string" ? message : idOfKey(store, message);

  return {
    replay: (id, call) => intervene("replay", id, call, undefined, call.force ? undefined : replayUncarried),
    resolve: (id, call) => intervene("resolve", id, call),
    discard: (id, call) => intervene("discard", id, call),
    cancel: async (message, call) => intervene("cancel", await idOf(message), call),
    async reschedule(message, call) {
      const { delayMs } = call;
      // Undefined would pass as the default of an option that has none.
      checkNumber("delayMs", delayMs ?? null, 0, LIMITS.delayMsMax, false);
      return intervene("reschedule", await idOf(message), call, delayMs);
    },
  };
}

/** A key belongs to one message of its topic and tenant; what became of that one, the intervention finds out. */
async function idOfKey(store: Store, { topic, key, tenantId = null }: KeyedMessage): Promise<string> {
  const name = typeof topic === "string" ? topic : topic.name;
  const asked = { topic: name, key, tenantId: tenantId ?? undefined, payload: false, limit: LIMITS.pageMax };
  for (let cursor: string | undefined; ; ) {
    const page = await store.list({ ...asked, cursor });
    const found = page.data.find((message) => message.tenantId === tenantId);
    if (found) return found.id;
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  const whose = tenantId === null ? "" : ` and tenant ${JSON.stringify(tenantId)}`;
  const text = `there is no message with key ${JSON.stringify(key)} of topic ${name}${whose}`;
  throw new MakegoodError("message_not_found", text, { topic: name, key, tenantId });
}

type Refused = Exclude<Awaited<ReturnType<Store["intervene"]>>, { kind: "done" }>;

function refusal(action: InterventionAction, id: string, result: Refused): MakegoodError {
  switch (result.kind) {
    case "not_found":
      return new MakegoodError("message_not_found", `there is no message ${id}`, { id });
    case "wrong_state": {
      const { status, resolution } = result;
      const text = `message ${id} is ${stateWords(action, result)}: ${action} does not apply`;
      return new MakegoodError("wrong_state", text, { id, status, resolution });
    }
    case "revision_conflict": {
      const text = `message ${id} has moved on to revision ${result.revision}: look again before you ${action} it`;
      return new MakegoodError("revision_conflict", text, { id, revision: result.revision });
    }
  }
}

function stateWords(action: InterventionAction, { status, resolution }: Extract<Refused, { kind: "wrong_state" }>): string {
  // Of what is pending only a held message is not rescheduled.
  if (status === "pending" && action === "reschedule") return "held until a person replays, resolves or discards it";
  return resolution ? `${status} (${resolution})` : status;
}
