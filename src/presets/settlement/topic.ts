/**
 * The topic `billing/finalize` of a kernel store: what its payload is, its sink, and its retry policy. The sink is the same
 * transport that the direct try uses.
 */
import { type AnyTopic, topic } from "../../delivery/topic.ts";
import type { RetryConfig } from "../../message/retry-policy.ts";
import { isTraceparent } from "../../message/validate.ts";
import type { Sink } from "../../sink/sink.ts";
import type { Lines } from "./lines.ts";
import { type Obligation, readRequest } from "./request.ts";
import type { Transport } from "./transport.ts";

export const TOPIC = "billing/finalize";

export interface TopicParts {
  readonly transport: Transport;
  readonly lines: Lines;
  readonly retry: RetryConfig;
  readonly timeoutMs: number;
  readonly leaseMs: number;
}

export function settlementTopic({ transport, lines, retry, timeoutMs, leaseMs }: TopicParts): AnyTopic {
  return topic(TOPIC, {
    sink: settlementSink(transport, lines),
    retry,
    timeoutMs,
    leaseMs,
    ordering: "none",
    onUnknown: "retry",
  });
}

/** The transport as the kernel sees it. What it cannot send it rejects, in the first try as in every replay. */
function settlementSink(transport: Transport, lines: Lines): Sink {
  return {
    kind: "function",
    async deliver({ payload, key, id }, { signal, timeoutMs }) {
      const { request, problem } = readRequest(JSON.parse(payload), () => key ?? id);
      const marked = (JSON.parse(payload) as { problem?: unknown }).problem;
      const why = typeof marked === "string" ? marked : problem;
      if (why !== null) return { kind: "reject", code: "invalid_request", error: why };
      const { outcome } = await transport.send(request, { signal, timeoutMs });
      lines.alert(request.reservation_id, outcome);
      return outcome;
    },
  };
}

/** A trace that travels as `traceparent` is no part of the payload: the same obligation told again is a duplicate, not a conflict. */
export function payloadOf({ request, problem }: Obligation): Record<string, string> {
  const { trace_id, ...payload } = request;
  const traced = trace_id === "" || isTraceparent(trace_id) ? payload : { ...payload, trace_id };
  return problem === null ? traced : { ...traced, problem };
}
