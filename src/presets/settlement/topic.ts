/**
 * The topic `billing/finalize`: its sink, which is the same transport in the direct try and in every replay, and its retry policy.
 */
import { readObject } from "../../message/json.ts";
import type { DeclaredRetry } from "../../message/retry-policy.ts";
import type { Sink } from "../../sink/sink.ts";
import { TOPIC } from "../../store/redis/dlq-port/entry.ts";
import { type AnyTopic, topic } from "../../topic/topic.ts";
import type { Lines } from "./lines.ts";
import { type Obligation, readRequest } from "./request.ts";
import type { Transport } from "./transport.ts";

export { TOPIC };

export interface TopicParts {
  readonly transport: Transport;
  readonly lines: Lines;
  readonly retry: DeclaredRetry;
  readonly timeoutMs: number;
  readonly leaseMs: number;
}

export function settlementTopic({ transport, lines, retry, timeoutMs, leaseMs }: TopicParts): AnyTopic {
  const sink: Sink = {
    kind: "function",
    async deliver({ payload, key, id }, { signal, timeoutMs: withinMs }) {
      const { request, problem } = readStored(payload, key ?? id);
      if (problem !== null) return { kind: "reject", code: "invalid_request", error: problem };
      const outcome = await transport.send(request, { signal, timeoutMs: withinMs });
      lines.alert(request.reservation_id, outcome);
      return outcome;
    },
  };
  return topic(TOPIC, { sink, retry, timeoutMs, leaseMs, ordering: "none", onUnknown: "retry" });
}

/** What a message of the topic asks for; what cannot be read is a problem like any other, and never sent. */
function readStored(payload: string, id: string): Obligation {
  const value = readObject(payload);
  const { request, problem } = readRequest(value, () => id);
  if (value === null) return { request, problem: "its payload cannot be read" };
  return { request, problem: typeof value.problem === "string" ? value.problem : problem };
}
