/** Whether a copy carries a message's effect at this moment, so that sending the message as well would bring it to two receivers. */
import type { CarriedBy } from "../../redrive.ts";
import type { ItemRow, Memory } from "./records.ts";

export function carriedBy(memory: Memory, messageId: string): CarriedBy | null {
  for (const [redriveId, items] of memory.items) {
    if (memory.redrives.get(redriveId)?.mode !== "copy") continue;
    for (const item of items.values()) {
      const { carrierId } = item;
      if (item.messageId === messageId && carrierId !== null && underWay(memory, item))
        return { messageId, carrierId, redriveId };
    }
  }
  return null;
}

/** Delivered counts until the original is resolved, which happens only to one that stands as it was copied. */
function underWay({ kernel }: Memory, { messageId, carrierId, revision }: ItemRow): boolean {
  const status = kernel.messages.get(carrierId ?? "")?.status;
  if (status === "pending" || status === "processing") return true;
  const original = kernel.messages.get(messageId);
  return status === "delivered" && original?.resolution === "open" && original.revision === revision;
}
