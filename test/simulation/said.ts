/**
 * What producers and people said, kept before the code under test hears of it: what arrives at the store must be that and nothing else.
 */
import type { NewMessage } from "../../src/message/message.ts";
import type { MessageFields } from "../../src/message/validate.ts";
import type { Intervention } from "../../src/store/store.ts";

interface Sent {
  readonly topic: string;
  readonly fields: MessageFields;
}

export class Said {
  /** By the payload's bytes: each operation has its own. */
  readonly #sent = new Map<string, Sent>();
  readonly #direct = new Set<string>();

  send(payload: string, topic: string, fields: MessageFields, direct = false): void {
    this.#sent.set(payload, { topic, fields });
    if (direct && fields.id !== undefined) this.#direct.add(fields.id);
  }

  /** Whether it was given to deliver(), which may attempt it under no claim of the store's. */
  isDirect(id: string): boolean {
    return this.#direct.has(id);
  }

  /** What is wrong with a message that arrives; null: nothing is. */
  wrong(message: NewMessage): string | null {
    const sent = this.#sent.get(message.payload);
    if (!sent) return "has bytes that nobody sent";
    const { topic, fields } = sent;
    // deliver() waits by its own rules. By id: the same bytes may be given to enqueue() as well, which has to keep its delay.
    const direct = this.isDirect(message.id);
    const { tenantId = null, key = null, orderingKey = null, priority: asked = 0, delayMs = 0 } = fields;
    // Order stands above priority, and a store below has dropped it already.
    const priority = direct && orderingKey !== null ? message.priority : asked;
    const arrived = [message.topic, message.tenantId, message.key, message.orderingKey, message.priority];
    const given = [topic, tenantId, key, orderingKey, priority];
    if (JSON.stringify(arrived) !== JSON.stringify(given)) return `was sent as ${given.join()} and arrives as ${arrived.join()}`;
    return direct || message.delayMs === delayMs ? null : `was to wait ${delayMs} ms and waits ${message.delayMs}`;
  }
}

/** A person's reason says what they saw, so that a fence which gets lost on the way is noticed. */
export const reasonFor = (revision: number | undefined): string => `simulated, seen as ${revision ?? "whatever it is"}`;

export const asSaid = ({ actor, reason, revision }: Intervention): boolean =>
  actor === "person" && reason === reasonFor(revision ?? undefined);
