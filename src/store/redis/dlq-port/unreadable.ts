/**
 * What the port cannot read any more, each named by one alarm: what the engine has quarantined (its payload is gone, or of another type), and
 * texts that another client has changed, which the engine can read: only here is it known what they should say.
 */
import type { MessageView } from "../../../message/message.ts";
import type { Store } from "../../store.ts";
import type { AlarmKind, Quarantined } from "./dlq-store.ts";
import { type Fields, fieldsOf, garbledOf, isGarbled, unreadableOf } from "./entry.ts";
import { bound } from "./obligations.ts";
import { isRedisStore } from "./persistence.ts";

interface UnreadableParts {
  readonly store: Store;
  readonly pending: () => Promise<MessageView[]>;
  readonly ring: (kind: AlarmKind, reservationId: string) => void;
}

export function createUnreadable({ store, pending, ring }: UnreadableParts) {
  /** By message. */
  const garbled = new Map<string, Quarantined>();
  const alarmed = new Set<string>();

  /** One that was read just now, with what its payload says. */
  function note(view: MessageView, fields: Fields): void {
    if (!isGarbled(fields)) return;
    garbled.set(view.id, garbledOf(view));
    bound(garbled);
  }

  /** `look`: everything is checked first. */
  async function read(look: boolean) {
    const { mended, found: unreadable } = isRedisStore(store) ? await store.quarantined(look) : { mended: 0, found: [] };
    if (look) {
      garbled.clear();
      for (const view of await pending()) note(view, fieldsOf(view.payload));
    }
    const found = [...unreadable.map(unreadableOf), ...garbled.values()];
    for (const { kind, reservation_id } of found) {
      if (!alarmed.has(reservation_id)) ring(kind, reservation_id);
      alarmed.add(reservation_id);
    }
    return { mended, found };
  }

  return { note, read, named: () => alarmed.size };
}
