/**
 * The sink of what recovery sends again beside another store: it replays the primary's dead letter, once for each time it was asked to, and
 * says what became of it. While that is under way it asks again later, which spends no attempt.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { MessageView } from "../../message/message.ts";
import { DELIVERED, DUPLICATE, type Outcome } from "../../message/outcome.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Delivery, Sink } from "../../sink/sink.ts";
import type { Store } from "../../store/store.ts";
import type { Mirror, Mirrors } from "./mirror-sql.ts";

/** Who replays here because the primary's message was replayed there: nothing is to be done about it but to wait. */
export const PRIMARY = "primary store";

export interface ReplaySinkDeps {
  readonly primary: Pick<Store, "get" | "intervene" | "enqueue">;
  readonly here: Pick<Store, "history">;
  readonly mirrors: Pick<Mirrors, "ofMessage" | "died">;
  readonly origin: (messageId: string) => Promise<{ readonly replayOf: string } | null>;
  readonly clock: Clock;
}

const AGAIN_MS = { min: 200, max: 900_000, away: 5_000 } as const;

/** `outage`: no attempt is spent. The receiver is the primary store, and it answers: no breaker counts it. */
const wait = (error: string, retryAfterMs: number): Outcome => ({
  kind: "retry",
  code: "under_way",
  error,
  retryAfterMs,
  outage: true,
  receiver: "answers",
});

const failed = ({ lastCode, lastError }: MessageView): Outcome => ({
  kind: "reject",
  code: lastCode ?? "unknown",
  error: lastError ?? "",
});

export function createReplaySink({ primary, here, mirrors, origin, clock }: ReplaySinkDeps): Sink {
  /** The longer it takes, the less often it is asked for: a quarter of the time that has passed. */
  async function underWay(id: string, text: string): Promise<Outcome> {
    const { attempts, provenance } = await here.history(id);
    const sinceMs = Math.max(0, ...[...attempts.slice(0, 1), ...provenance.slice(-1)].map(({ at }) => at.getTime()));
    const passedMs = sinceMs === 0 ? 0 : clock.wallMs() - sinceMs;
    return wait(text, Math.min(Math.max(passedMs / 4, AGAIN_MS.min), AGAIN_MS.max));
  }

  /** What began here (under a new key, or for a failure that was reported) is accepted by the primary, which delivers it. */
  async function handOver(delivery: Delivery): Promise<Outcome> {
    const { id, topic, tenantId, key, payload, traceparent, schemaVersion } = delivery;
    const from = await origin(id);
    const original = from && (await primary.get(from.replayOf));
    const known = { id, topic, tenantId, key, payload, traceparent, schemaVersion };
    const orderingKey = original?.orderingKey ?? null;
    const priority = original?.priority ?? 0;
    const hash = key === null ? "" : payloadHash(payload);
    const [accepted] = await primary.enqueue([{ ...known, payloadHash: hash, delayMs: 0, priority, orderingKey }]);
    if (accepted?.kind === "conflict")
      return { kind: "reject", code: "key_conflict", error: `key ${key} belongs to message ${accepted.id} with another payload` };
    return accepted?.id === id ? underWay(id, "the primary store accepted it") : DUPLICATE;
  }

  /** The death that this message stands for: it is replayed, if that is what was asked for here. */
  async function replay(message: MessageView, id: string): Promise<Outcome> {
    const asked = (await here.history(id)).provenance.findLast(({ action }) => action === "replay");
    if (!asked || asked.actor === PRIMARY) return failed(message);
    const { actor, reason } = asked;
    // Fenced: of two that come at once one replays, and the other finds it under way.
    await primary.intervene({ id: message.id, action: "replay", actor, reason, revision: message.revision });
    return wait("replayed in the primary store", AGAIN_MS.min);
  }

  async function ofDead(message: MessageView, mirror: Mirror | null, id: string): Promise<Outcome> {
    if (message.resolution === "resolved") return DUPLICATE;
    if (message.resolution === "open" && mirror && message.attempts <= mirror.attempts) return replay(message, id);
    // Before it is dead here: a look in between finds it under way.
    await mirrors.died(message.id, id, message.attempts);
    return failed(message);
  }

  async function deliver(delivery: Delivery): Promise<Outcome> {
    const { id } = delivery;
    const mirror = await mirrors.ofMessage(id);
    const message = await primary.get(mirror?.primaryId ?? id);
    if (message?.status === "delivered") return DELIVERED;
    if (message?.status === "dead") return ofDead(message, mirror, id);
    if (message) return underWay(id, `${message.status} in the primary store`);
    if (!mirror) return handOver(delivery);
    return { kind: "reject", code: "message_gone", error: "the primary store no longer has this message" };
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
