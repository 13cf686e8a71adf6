/**
 * Names that OpenTelemetry's messaging conventions give, as of version 1.44, where they are still "Development": what they are called next
 * is changed here and nowhere else. `docs/guide/tracing.md` lists them.
 */

export const SCOPE = "makegood";

export type Operation = "create" | "send" | "receive" | "process" | "settle";

export const ATTRIBUTES = {
  system: "messaging.system",
  operationName: "messaging.operation.name",
  operationType: "messaging.operation.type",
  destination: "messaging.destination.name",
  messageId: "messaging.message.id",
  batchCount: "messaging.batch.message_count",
  errorType: "error.type",
  // Ours: the conventions have no word for them.
  attempt: "makegood.attempt",
  outcome: "makegood.outcome",
  key: "makegood.key",
} as const;

/** Boundaries are those that the conventions advise. */
export const INSTRUMENTS = {
  operationDuration: { name: "messaging.client.operation.duration", unit: "s", about: "How long a call to the store took." },
  processDuration: { name: "messaging.process.duration", unit: "s", about: "How long an attempt took." },
  sent: { name: "messaging.client.sent.messages", unit: "{message}", about: "Messages handed to a store or a sink." },
  consumed: { name: "messaging.client.consumed.messages", unit: "{message}", about: "Messages claimed." },
} as const;

export const SECONDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
