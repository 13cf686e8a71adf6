/**
 * The front door: exports only.
 */
export type { TextMessage } from "./client/build-message.ts";
export type {
  BatchMessage,
  CallOptions,
  Enqueued,
  EnqueueMessageOptions,
  MessageFilter,
  MessagePage,
} from "./client/client.ts";
export type { DeliverOptions, DeliverResult } from "./client/deliver.ts";
export type { InterveneOptions, KeyedMessage, ReplayOptions, RescheduleOptions } from "./client/intervene.ts";
export type { ShownMessage } from "./client/standing.ts";
export {
  createMakegood,
  type Makegood,
  type MakegoodOptions,
} from "./create.ts";
export { type ErrorCode, isMakegoodError, MakegoodError } from "./message/errors.ts";
export type { AttemptRecord, MessageView, ProvenanceRecord } from "./message/message.ts";
export { DELIVERED, DUPLICATE, type Outcome } from "./message/outcome.ts";
export type { DeclaredRetry as RetryConfig, RetryPolicyName } from "./message/retry-policy.ts";
export type { InferInput, InferOutput, StandardSchemaV1 } from "./message/standard-schema.ts";
export type { TopicDefinition, TopicName, TopicRecord } from "./message/topic.ts";
export { isTopicName } from "./message/validate.ts";
export type { LogSetting } from "./observe/default-log.ts";
export type { EventListener, MakegoodEvent } from "./observe/events.ts";
export type { Log, LogFields, LogLevel } from "./observe/log.ts";
export type { TracingOptions } from "./observe/spans.ts";
export type { Clock, Timer } from "./platform/clock.ts";
export type { ActionContext, ActionPlan, RecoveryAction } from "./recovery/actions/action.ts";
export type { HookName, HookOptions, RecoveryHooks } from "./recovery/hooks.ts";
export type { Recovery } from "./recovery/recovery.ts";
export type { RedriveRequest } from "./recovery/redrive/request.ts";
export { evaluateRules } from "./recovery/rules/evaluate.ts";
export type { RecoveryOptions } from "./recovery/settings.ts";
export { type FunctionSinkOptions, functionSink, reject, retry, unserved } from "./sink/function.ts";
export { type HttpSinkOptions, httpSink } from "./sink/http.ts";
export type { DeclaredSink as SinkConfig } from "./sink/kinds.ts";
export type { DeliverContext, Delivery, Sink } from "./sink/sink.ts";
export type { Drained, Holding, LadderStatus } from "./store/fallback.ts";
export { createMemoryStore } from "./store/memory/memory-store.ts";
export { createMemoryUsageStore } from "./store/memory/usage.ts";
export type { Store, Transaction } from "./store/store.ts";
export { type AnyTopic, type Topic, type TopicHandler, type TopicOptions, topic } from "./topic/topic.ts";
export type { Ticked, TickOptions, WorkedOff, Worker, WorkOffOptions, WorkOptions } from "./worker/worker.ts";
