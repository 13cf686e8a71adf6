/** EDIT: one dead letter again with another payload, as a new message. The original is kept, resolved, and says why. */
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import { checkFields, parsePayloadText } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import type { At } from "../../store/store.ts";
import { copyOf } from "../carrier.ts";
import { columns, flag, text, textOrNull } from "../columns.ts";
import { line, type NewProvenance, record } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { RedriveDeps } from "./redrives.ts";
import { carriedAmong, carriedError } from "./select-sql.ts";
import { refuseUndelivered } from "./start.ts";

export interface EditRequest extends Actor {
  readonly payload: string;
  /** Absent: the original's key, which leads to the new message from then on. Null: none. */
  readonly key?: string | null | undefined;
  readonly revision?: number | undefined;
  readonly reason: string;
  /** Also while a copy of it is on its way to another receiver: both may get it. */
  readonly force?: boolean | undefined;
  /** The group it was counted in, for the record. */
  readonly groupId?: number | null | undefined;
}

export async function editMessage(deps: RedriveDeps, id: string, edit: EditRequest): Promise<MessageView> {
  const { actor, reason, payload, revision, force } = edit;
  if (typeof reason !== "string" || reason.trim() === "" || Buffer.byteLength(reason) > LIMITS.reasonBytesMax) {
    const detail = `must be a text of 1 to ${LIMITS.reasonBytesMax} bytes`;
    throw new MakegoodError("invalid_request", `reason ${detail}`, { errors: [{ field: "reason", detail }] });
  }
  const original = isUuid(id) ? await deps.store.get(id) : null;
  if (!original) throw notFound(id);
  const key = edit.key === undefined ? original.key : edit.key;
  checkFields({ key });
  parsePayloadText(payload);
  await deps.checkPayload(original.topic, payload);
  await refuseUndelivered(deps, [original.topic], true);
  const schemaVersion = (await deps.store.topics.get(original.topic))?.schemaVersion ?? null;
  const message = { ...copyOf(original, deps.ids(), original.topic, key, payload), schemaVersion };
  const details = { message: id, edited_as: message.id };
  const provenance = [line("message_edited", edit, { groupId: edit.groupId ?? null, reason, details })];
  const edited = await deps.recovery.redrives.edit({ id, revision, message, actor, reason, force, provenance });
  deps.events.emit({ type: "intervened", id, action: "edit", actor, reason });
  return edited;
}

const notFound = (id: string): MakegoodError => new MakegoodError("message_not_found", `there is no message ${id}`, { id });

export interface MessageEdit extends At, Pick<EditRequest, "actor" | "reason" | "revision" | "force"> {
  readonly id: string;
  /** Of the same topic and tenant. The same new id again is the same edit, and answered as the first time. */
  readonly message: NewMessage;
  readonly provenance?: readonly NewProvenance[] | undefined;
}

/** The key is the new message's, if the original holds it or nobody does. */
async function freeKey(s: string, run: Run, { id, message: { topic, tenantId, key } }: MessageEdit): Promise<void> {
  if (key === null) return;
  const held = "t.id = k.topic_id and t.name = $1 and k.tenant = $2 and k.key = $3";
  const values = [topic, tenantId ?? "", key];
  const [row] = await run(`select k.id::text from ${s}.dedupe k join ${s}.topic t on ${held} for update of k`, values);
  if (row && row[0] !== id) {
    const said = `key ${JSON.stringify(key)} belongs to message ${row[0]}: choose another key`;
    throw new MakegoodError("key_conflict", said, { id: row[0], key });
  }
  if (row) await run(`delete from ${s}.dedupe k using ${s}.topic t where ${held}`, values);
}

async function edit({ s, messages }: Home, { run, enqueue, intervene }: Inside, request: MessageEdit): Promise<MessageView> {
  const { id, message, revision } = request;
  const viewOf = async (which: string) => (await messages(run, [which]))[0];
  // Another call that edits, replays or resolves it at the same time waits here.
  await run(`select 1 from ${s}.dead_letter where id = $1::uuid for no key update`, [id]);
  const original = await viewOf(id);
  if (!original) throw notFound(id);
  const made = `select 1 from ${s}.message_origin where message_id = $1::uuid and replay_of = $2::uuid`;
  if ((await run(made, [message.id, id])).length > 0) return (await viewOf(message.id)) as MessageView;
  refuseMoved(original, revision);
  const [carried] = request.force ? [] : await carriedAmong(s, run, [id]);
  if (carried) throw carriedError(carried);
  if (message.topic !== original.topic || message.tenantId !== original.tenantId) {
    const said = `an edited message keeps topic and tenant of the one it replaces: ${id} is of ${original.topic}`;
    throw new MakegoodError("invalid_request", said, { id });
  }
  await freeKey(s, run, request);
  await enqueue([message], request);
  await run(`insert into ${s}.message_origin (message_id, replay_of, edited) values ($1::uuid, $2::uuid, true)`, [
    message.id,
    id,
  ]);
  await intervene("resolve", [original], request, request);
  await record(s, run, request.provenance ?? [], request);
  return (await viewOf(message.id)) as MessageView;
}

function refuseMoved({ id, status, resolution, revision }: MessageView, seen: number | undefined): void {
  if (seen !== undefined && seen !== revision) {
    const said = `message ${id} has moved on to revision ${revision}: look again before you edit it`;
    throw new MakegoodError("revision_conflict", said, { id, revision });
  }
  if (status === "dead" && resolution === "open") return;
  const state = resolution ? `${status} (${resolution})` : status;
  const said = `message ${id} is ${state}: only an open dead letter can be edited and retried`;
  throw new MakegoodError("wrong_state", said, { id, status, resolution });
}

const ORIGIN = columns({
  replayOf: text("replay_of::text"),
  redriveId: textOrNull("redrive_id::text"),
  edited: flag("edited"),
});

export function createEdit(home: Home) {
  const run = home.read("read a message's origin");
  return {
    edit: (request: MessageEdit) => home.transaction("edit a message", (inside) => edit(home, inside, request)),
    /** What a message was made from; null: it stands for itself, also where it became a carrier by its key. */
    async origin(messageId: string) {
      if (!isUuid(messageId)) return null;
      const [row] = await run(`select ${ORIGIN.list} from ${home.s}.message_origin where message_id = $1::uuid`, [messageId]);
      return row ? ORIGIN.of(row) : null;
    },
  };
}
