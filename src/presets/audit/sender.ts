/**
 * The producer's topics, `audit-write/*`: each posts its records to an endpoint of the audit service. The audit client delivers
 * through them, and so does a worker that has no database of its own and is told where the service is (DATA_STORAGE_URL).
 */
import { type AnyTopic, topic } from "../../delivery/topic.ts";
import type { RetryConfig } from "../../message/retry-policy.ts";
import type { Sink } from "../../sink/sink.ts";
import { type ClientSinkOptions, clientQuarantineSink, clientSink } from "./client-sink.ts";
import { AUDIT_CLIENT_NAMESPACE, AUDIT_TYPES, QUARANTINE } from "./registry.ts";
import { createService } from "./service.ts";

export type SenderOptions = Omit<ClientSinkOptions, "service">;

/** Topic → sink. */
export function senderSinks(options: SenderOptions): ReadonlyMap<string, Sink> {
  const shared = { ...options, service: createService() };
  const types = AUDIT_TYPES.map((kind) => [`${AUDIT_CLIENT_NAMESPACE}/${kind.type}`, clientSink(kind, shared)] as const);
  const sinks = new Map<string, Sink>(types);
  const quarantine = clientQuarantineSink((type) => sinks.get(`${AUDIT_CLIENT_NAMESPACE}/${type}`));
  return sinks.set(`${AUDIT_CLIENT_NAMESPACE}/${QUARANTINE}`, quarantine);
}

export function senderTopics(sinks: ReadonlyMap<string, Sink>, retry: RetryConfig = { policy: "audit" }): AnyTopic[] {
  return [...sinks].map(([name, sink]) => topic(name, { sink, retry }));
}
