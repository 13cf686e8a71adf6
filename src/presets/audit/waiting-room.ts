/**
 * Where records stay while the producer's own store cannot even be opened: in memory, bounded, each tried at the service directly
 * first. They move into the store as soon as it opens. It survives nothing and says so.
 */
import type { Makegood } from "../../create.ts";
import type { DeliverResult } from "../../delivery/deliver.ts";
import { errorText } from "../../message/errors.ts";
import type { Outcome } from "../../message/outcome.ts";
import { createIds } from "../../platform/ids.ts";
import type { Sink } from "../../sink/sink.ts";
import { redact } from "./redact.ts";

export interface WaitingRoom {
  readonly size: number;
  /** Never rejects. */
  write(topic: string, text: string, key: string): Promise<DeliverResult>;
  /** Hands everything over; what is refused stays. Never rejects. */
  moveTo(mg: Makegood): Promise<void>;
}

interface Waiting {
  readonly topic: string;
  readonly key: string;
  readonly id: string;
  readonly payloadText: string;
}

const BYTES_MAX = 64 * 1_048_576;
const BATCH = 200;

export function createWaitingRoom(
  sinks: ReadonlyMap<string, Sink>,
  timeoutMs: number,
  failed: (error: unknown) => void,
): WaitingRoom {
  const waiting = new Map<string, Waiting>();
  const ids = createIds();
  let bytes = 0;
  let moving: Promise<void> = Promise.resolve();

  async function move(mg: Makegood): Promise<void> {
    while (waiting.size > 0) {
      const batch = [...waiting.values()].slice(0, BATCH);
      for (const one of batch) {
        try {
          await mg.enqueueText([one]);
        } catch (error) {
          failed(error);
          return;
        }
        if (waiting.delete(one.id)) bytes -= one.payloadText.length;
      }
    }
  }

  return {
    get size() {
      return waiting.size;
    },
    async write(topic, text, key) {
      const id = ids();
      const outcome = await tryOnce(sinks.get(topic), { id, topic, key, text }, timeoutMs);
      if (outcome.kind === "delivered" || outcome.kind === "duplicate") return result(outcome.kind, id, key, null, null, null);
      const code = "code" in outcome ? outcome.code : outcome.kind;
      const error = "error" in outcome ? outcome.error : null;
      if (bytes + text.length > BYTES_MAX) {
        failed(new Error(`the waiting room is full and no store is open; the record is only here: ${text}`));
        return result("refused", id, key, code, error, null);
      }
      bytes += text.length;
      waiting.set(id, { id, topic, key, payloadText: text });
      return result(outcome.kind === "reject" ? "dead" : "queued", id, key, code, error, "memory");
    },
    moveTo(mg) {
      moving = moving.then(() => move(mg));
      return moving;
    },
  };
}

function result(
  kind: DeliverResult["kind"],
  id: string,
  key: string,
  code: string | null,
  error: string | null,
  stored: DeliverResult["stored"],
): DeliverResult {
  return { kind, id, key, code, error, status: null, stored, survives: "nothing", tries: 1 };
}

interface Draft {
  readonly id: string;
  readonly topic: string;
  readonly key: string;
  readonly text: string;
}

async function tryOnce(sink: Sink | undefined, { id, topic, key, text }: Draft, timeoutMs: number): Promise<Outcome> {
  const delivery = {
    id,
    topic,
    tenantId: null,
    idempotencyKey: key,
    key,
    payload: text,
    attempt: 0,
    traceparent: null,
    schemaVersion: null,
  };
  try {
    const outcome = await sink?.deliver(delivery, { signal: new AbortController().signal, timeoutMs });
    return outcome ?? { kind: "retry", code: "sink_missing", error: "no sink" };
  } catch (error) {
    return { kind: "retry", code: "handler_error", error: redact(errorText(error)) };
  }
}
