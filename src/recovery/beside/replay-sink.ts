/**
 * The sink of what recovery sends again beside another store: it replays the primary's dead letter, once for each time it was asked to, and
 * says what became of it. While that is under way it asks again later, which spends no attempt.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import { DELIVERED, DUPLICATE, type Outcome } from "../../message/outcome.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Delivery, Sink } from "../../sink/sink.ts";
import type { Store } from "../../store/store.ts";
import type { Recovery } from "../recovery.ts";
import type { Mirrors } from "./mirror-sql.ts";

/** Who replays here because the primary's message was replayed there: nothing is to be done about it but to wait. */
export const PRIMARY = "primary store";

const AGAIN_MS = { min: 200, max: 900_000, away: 5_000 } as const;

/** The same message for the other store. */
export function copyOf(message: Delivery | MessageView): NewMessage {
  const { id, topic, tenantId, key, payload, traceparent, schemaVersion } = message;
  const fixed = { payloadHash: key === null ? "" : payloadHash(payload), delayMs: 0, priority: 0, orderingKey: null };
  return { id, topic, tenantId, key, payload, traceparent, schemaVersion, ...fixed };
}

/** `outage`: no attempt is spent. The receiver is the primary store, and it answers: no breaker counts it. */
const UNDER_WAY = { kind: "retry", code: "under_way", outage: true, receiver: "answers" } as const;
const wait = (error: string, retryAfterMs: number): Outcome => ({ ...UNDER_WAY, error, retryAfterMs });
const reject = (code: string, error: string): Outcome => ({ kind: "reject", code, error });

export function createReplaySink(primary: Store, here: Store, mirrors: Mirrors, origin: Recovery["origin"]): Sink {
  /** The longer it takes, the less often it is asked for: a quarter of the time that had passed at the last asking, by the clock here. */
  async function underWay(id: string, text: string): Promise<Outcome> {
    const { attempts, provenance } = await here.history(id);
    const since = provenance.at(-1) ?? attempts[0];
    const passedMs = Number(attempts.at(-1)?.at ?? 0) - Number(since?.at ?? 0);
    return wait(text, Math.min(Math.max(passedMs / 4, AGAIN_MS.min), AGAIN_MS.max));
  }

  /** What began here (under a new key, or for a failure that was reported) is accepted by the primary, which delivers it. */
  async function handOver(delivery: Delivery): Promise<Outcome> {
    const { id, key } = delivery;
    const from = await origin(id);
    const { orderingKey = null, priority = 0 } = (from && (await primary.get(from.replayOf))) ?? {};
    const [accepted] = await primary.enqueue([{ ...copyOf(delivery), orderingKey, priority }]);
    if (accepted?.kind === "conflict")
      return reject("key_conflict", `key ${key} belongs to message ${accepted.id} with another payload`);
    return accepted?.id === id ? underWay(id, "the primary store accepted it") : DUPLICATE;
  }

  async function deliver(delivery: Delivery): Promise<Outcome> {
    const { id } = delivery;
    const mirror = await mirrors.ofMessage(id);
    const message = await primary.get(mirror?.primaryId ?? id);
    if (!message) return mirror ? reject("message_gone", "the primary store no longer has this message") : handOver(delivery);
    if (message.status === "delivered") return DELIVERED;
    if (message.status !== "dead") return underWay(id, `${message.status} in the primary store`);
    if (message.resolution === "resolved") return DUPLICATE;
    if (message.resolution === "open" && mirror && message.attempts <= mirror.attempts) {
      const asked = (await here.history(id)).provenance.findLast(({ action }) => action === "replay");
      if (asked && asked.actor !== PRIMARY) {
        const { actor, reason } = asked;
        // Fenced: of two that come at once one replays, and the other finds it under way.
        await primary.intervene({ id: message.id, action: "replay", actor, reason, revision: message.revision });
        return wait("replayed in the primary store", AGAIN_MS.min);
      }
    } else {
      // Before it is dead here: a look in between finds it under way.
      await mirrors.died(message.id, id, message.attempts);
    }
    return reject(message.lastCode ?? "unknown", message.lastError ?? "");
  }

  return {
    kind: "function",
    onDemand: true,
    async deliver(delivery) {
      try {
        return await deliver(delivery);
      } catch (error) {
        if (!isMakegoodError(error) || !error.retryable) throw error;
        return wait(errorText(error), AGAIN_MS.away);
      }
    },
  };
}
