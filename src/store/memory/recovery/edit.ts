/**
 * Edit and retry: a dead letter again with another payload. The original stays, resolved; a key that both share leads to the new one.
 */
import { MakegoodError } from "../../../message/errors.ts";
import type { MessageEdit, MessageEdited } from "../../redrive.ts";
import { dedupeScope, enqueue } from "../enqueue.ts";
import { intervene } from "../intervene.ts";
import { view } from "../read.ts";
import { nowMs, type Stored } from "../state.ts";
import { carriedBy } from "./carried.ts";
import { record } from "./provenance.ts";
import type { Memory } from "./records.ts";

export function edit(memory: Memory, request: MessageEdit): MessageEdited {
  const { kernel } = memory;
  const { id, message, actor, reason, revision } = request;
  const original = kernel.messages.get(id);
  if (!original) return { kind: "not_found" };
  if (memory.origins.get(message.id)?.replayOf === id) return done(memory, message.id);
  if (revision !== undefined && revision !== original.revision) return { kind: "revision_conflict", revision: original.revision };
  if (original.status !== "dead" || original.resolution !== "open") return { kind: "wrong_state", message: view(original) };
  const carried = request.force ? null : carriedBy(memory, id);
  if (carried) return { kind: "carried", ...carried };
  if (message.topic !== original.message.topic || message.tenantId !== original.message.tenantId) {
    throw new MakegoodError(
      "invalid_request",
      `An edited message keeps topic and tenant of the one it replaces: ${id} is of ${original.message.topic}.`,
      { id },
    );
  }
  const now = new Date(nowMs(kernel, request));
  const scope = dedupeScope(message);
  const holder = scope === null ? undefined : kernel.dedupe.get(scope);
  if (holder !== undefined && holder !== id) return { kind: "key_conflict", id: holder };
  // Free for the new one within this call, which nothing interrupts.
  if (scope !== null) kernel.dedupe.delete(scope);
  enqueue(kernel, [message], { now });
  memory.origins.set(message.id, { replayOf: id, redriveId: null, edited: true });
  intervene(kernel, { id, action: "resolve", actor, reason, now });
  record(memory, request.provenance ?? [], now);
  return done(memory, message.id);
}

function done(memory: Memory, id: string): MessageEdited {
  return { kind: "done", message: view(memory.kernel.messages.get(id) as Stored) };
}
