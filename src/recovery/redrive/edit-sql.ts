/**
 * EDIT and ORIGIN: a dead letter again with another payload, as a new message that remembers what it was made from. The original stays,
 * resolved; a key that both share leads to the new one.
 */

import { MakegoodError } from "../../message/errors.ts";
import type { MessageView } from "../../message/message.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import { record } from "../provenance-sql.ts";
import { carriedAmong } from "./carried.ts";
import type { MessageEdit, MessageEdited, MessageOrigin } from "./redrive.ts";

/** Frees the key for the new message if the original holds it; the id of another holder, if there is one. */
async function freeKey(s: string, run: Run, { id, message }: MessageEdit): Promise<string | null> {
  if (message.key === null) return null;
  const [row] = await run(
    `select k.id::text, k.topic_id::text from ${s}.dedupe k join ${s}.topic t on t.id = k.topic_id
      where t.name = $1 and k.tenant = $2 and k.key = $3 for update of k`,
    [message.topic, message.tenantId ?? "", message.key],
  );
  if (!row) return null;
  const [holder, topicId] = row;
  if (holder !== id) return holder as string;
  await run(`delete from ${s}.dedupe where topic_id = $1::int and tenant = $2 and key = $3`, [
    topicId,
    message.tenantId ?? "",
    message.key,
  ]);
  return null;
}

async function edit({ s, messages }: Home, inside: Inside, request: MessageEdit): Promise<MessageEdited> {
  const { run } = inside;
  const viewOf = async (which: string) => (await messages(run, [which]))[0];
  const { id, message, revision } = request;
  // Another call that edits, replays or resolves it at the same time waits here.
  await run(`select 1 from ${s}.dead_letter where id = $1::uuid for no key update`, [id]);
  const original = await viewOf(id);
  if (!original) return { kind: "not_found" };
  const [made] = await run(`select 1 from ${s}.message_origin where message_id = $1::uuid and replay_of = $2::uuid`, [
    message.id,
    id,
  ]);
  if (made) return { kind: "done", message: (await viewOf(message.id)) as MessageView };
  if (revision !== undefined && revision !== original.revision) return { kind: "revision_conflict", revision: original.revision };
  if (original.status !== "dead" || original.resolution !== "open") return { kind: "wrong_state", message: original };
  const [carried] = request.force ? [] : await carriedAmong(s, run, [id]);
  if (carried) return { kind: "carried", ...carried };
  if (message.topic !== original.topic || message.tenantId !== original.tenantId) {
    const text = `an edited message keeps topic and tenant of the one it replaces: ${id} is of ${original.topic}`;
    throw new MakegoodError("invalid_request", text, { id });
  }
  const holder = await freeKey(s, run, request);
  if (holder !== null) return { kind: "key_conflict", id: holder };
  await inside.enqueue([message], { now: request.now });
  await run(
    `insert into ${s}.message_origin (message_id, replay_of, redrive_id, edited) values ($1::uuid, $2::uuid, null, true)`,
    [message.id, id],
  );
  await inside.intervene("resolve", [original], request, request);
  await record(s, run, request.provenance ?? [], request);
  return { kind: "done", message: (await viewOf(message.id)) as MessageView };
}

export function createEdit(home: Home) {
  const { s } = home;
  return {
    /** Resolves the original with actor and reason; `revision` is asked before the state, and whether it is carried after it. */
    async edit(request: MessageEdit): Promise<MessageEdited> {
      if (!isUuid(request.id)) return { kind: "not_found" };
      return home.transaction("edit a message", (inside) => edit(home, inside, request));
    },
    /** What a message was made from; null: it stands for itself, also where it became a carrier by its key. */
    async origin(messageId: string): Promise<MessageOrigin | null> {
      if (!isUuid(messageId)) return null;
      const text = `select replay_of::text, redrive_id::text, edited::text from ${s}.message_origin where message_id = $1::uuid`;
      const [row] = await home.read("read a message's origin")(text, [messageId]);
      return row ? { replayOf: row[0] as string, redriveId: row[1] as string | null, edited: row[2] === "true" } : null;
    },
  };
}
