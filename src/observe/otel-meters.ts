/** The metrics of OpenTelemetry's messaging conventions: durations of calls and attempts, messages sent and consumed, by topic. */
import type { Attributes, Meter } from "@opentelemetry/api";
import type { NewMessage } from "../message/message.ts";
import { ATTRIBUTES as A, INSTRUMENTS, type Operation, SCOPE, SECONDS } from "./otel-names.ts";

export interface OtelMeters {
  operation(operation: Operation, messages: readonly Pick<NewMessage, "topic">[], seconds: number, error?: string): void;
  processed(topic: string, seconds: number, error?: string): void;
}

export function createOtelMeters(meter: Meter): OtelMeters {
  const histogram = ({ name, unit, about }: { name: string; unit: string; about: string }) =>
    meter.createHistogram(name, { unit, description: about, advice: { explicitBucketBoundaries: [...SECONDS] } });
  const counter = ({ name, unit, about }: { name: string; unit: string; about: string }) =>
    meter.createCounter(name, { unit, description: about });
  const duration = histogram(INSTRUMENTS.operationDuration);
  const process = histogram(INSTRUMENTS.processDuration);
  const counts = { send: counter(INSTRUMENTS.sent), receive: counter(INSTRUMENTS.consumed) };
  return {
    operation(operation, messages, seconds, error) {
      const byTopic = new Map<string, number>();
      for (const { topic } of messages) byTopic.set(topic, (byTopic.get(topic) ?? 0) + 1);
      const [only] = byTopic.size === 1 ? byTopic.keys() : [];
      duration.record(seconds, attributesOf(operation, only, error));
      const count = operation === "send" || operation === "receive" ? counts[operation] : undefined;
      for (const [topic, number] of byTopic) count?.add(number, attributesOf(operation, topic, error));
    },
    processed: (topic, seconds, error) => process.record(seconds, attributesOf("process", topic, error)),
  };
}

function attributesOf(operation: Operation, topic: string | undefined, error: string | undefined): Attributes {
  return {
    [A.system]: SCOPE,
    [A.operationName]: operation,
    [A.operationType]: operation,
    ...(topic === undefined ? {} : { [A.destination]: topic }),
    ...(error === undefined ? {} : { [A.errorType]: error }),
  };
}
