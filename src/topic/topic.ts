/**
 * A topic as code declares it: the definition every worker shares, and what lives only in this process (schema, function,
 * sink). Declaring does nothing by itself; createMakegood checks its sinks and stores it, and work() delivers it.
 */
import { DEFAULTS } from "../message/limits.ts";
import type { Ordering } from "../message/message.ts";
import type { DeclaredRetry, RetryConfig, RetryPolicyName } from "../message/retry-policy.ts";
import type { InferInput, InferOutput, StandardSchemaV1 } from "../message/standard-schema.ts";
import { CARRIERS, type Carrier, type SinkConfig, type TopicDefinition, type TopicName } from "../message/topic.ts";
import { checkTopic } from "../message/validate-topic.ts";
import type { DeclaredSink } from "../sink/kinds.ts";
import type { DeliverContext, Delivery, Sink } from "../sink/sink.ts";

/** Returning is delivered, throwing is a retry; an Outcome that is returned or thrown is taken at its word. */
export type TopicHandler<Out> = (payload: Out, delivery: Delivery, context: DeliverContext) => unknown;

/** `In` is what may be enqueued, `Out` what the handler gets: the schema's two sides. */
export interface Topic<In = unknown, Out = In> {
  readonly name: TopicName;
  readonly definition: TopicDefinition;
  readonly schema: StandardSchemaV1<In, Out> | null;
  readonly handler: TopicHandler<Out> | null;
  /** A sink object of this process; null: made from the handler, else from `definition.sink`. */
  readonly sink: Sink | null;
  /** Declared without a sink: only sends from here, and never replaces a definition that another process stored. */
  readonly sendsOnly: boolean;
  /** The other sinks of the topic that are functions or objects of this process. */
  readonly carriers?: Readonly<Partial<Record<Carrier, Pick<Topic<In, Out>, "handler" | "sink">>>> | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: a list of topics holds handlers of different payloads; only `any` is both above and below each
export type AnyTopic = Topic<any, any>;

/** Whatever its handler gets, `In` may be enqueued to it. */
// biome-ignore lint/suspicious/noExplicitAny: who enqueues does not care what the handler gets
export type TopicFor<In> = Topic<In, any>;

export interface TopicOptions<Out = unknown> {
  // `Sink` stands first: TypeScript 5.4 explains what does not fit by the last kind that might have been meant.
  /** Absent: the topic only sends from here; another process or the API gives it its sink. */
  readonly sink?: Sink | DeclaredSink | TopicHandler<Out> | undefined;
  readonly retry?: RetryPolicyName | DeclaredRetry | undefined;
  readonly schemaVersion?: number | undefined;
  readonly leaseMs?: number | undefined;
  /** One total deadline per attempt. With a handler it may be longer than the lease. */
  readonly timeoutMs?: number | undefined;
  readonly concurrency?: number | undefined;
  readonly tenantConcurrency?: number | undefined;
  /** How many attempts are begun in a second over all workers, one second's worth at once; likewise for one tenant. */
  readonly ratePerSecond?: number | undefined;
  readonly tenantRatePerSecond?: number | undefined;
  /** How many attempts at once over all processes. */
  readonly concurrencyTotal?: number | undefined;
  /** Which field of the payload is an amount that `makegood verify` sums: `amount_micro`, `turn.cost`. */
  readonly moneyField?: string | undefined;
  /** `key` (default): messages that carry an ordering key are delivered in order; others are not affected. */
  readonly ordering?: Ordering | undefined;
  readonly onUnknown?: "retry" | "hold" | undefined;
  /** Where the recovery engine may bring a dead letter instead. */
  readonly fallback?: Sink | DeclaredSink | TopicHandler<Out> | undefined;
  /** What the recovery engine may call to undo the effect of a dead letter. */
  readonly compensation?: Sink | DeclaredSink | TopicHandler<Out> | undefined;
}

type Schema = StandardSchemaV1 | undefined;
/** What may be enqueued, and what the handler gets: the schema's two sides, without one both are `P`. */
type InOf<P, S extends Schema> = S extends StandardSchemaV1 ? InferInput<S> : P;
type OutOf<P, S extends Schema> = S extends StandardSchemaV1 ? InferOutput<S> : P;

/** One signature, not two: what does not fit is then said of the setting that is wrong, and of nothing else. */
export function topic<P = unknown, S extends Schema = undefined>(
  name: TopicName,
  options: TopicOptions<OutOf<P, S>> & { readonly schema?: S } = {},
): Topic<InOf<P, S>, OutOf<P, S>> {
  return declare(name, options as TopicOptions, options.schema) as Topic<InOf<P, S>, OutOf<P, S>>;
}

function declare(name: TopicName, options: TopicOptions, schema: Schema): Topic {
  const { sink } = options;
  const { config, handler, object } = readSink(sink);
  const carriers = CARRIERS.flatMap((name) => (options[name] === undefined ? [] : [{ name, ...readSink(options[name]) }]));
  const definition: TopicDefinition = {
    name,
    sink: withDefined(config, { timeoutMs: options.timeoutMs, onUnknown: options.onUnknown }),
    retry: retryConfig(options.retry),
    schemaVersion: options.schemaVersion ?? null,
    leaseMs: options.leaseMs ?? DEFAULTS.leaseMs,
    concurrency: options.concurrency ?? null,
    tenantConcurrency: options.tenantConcurrency ?? null,
    ...limitsOf(options),
    ordering: options.ordering ?? "key",
    ...Object.fromEntries(carriers.map((carrier) => [carrier.name, carrier.config])),
  };
  checkTopic(definition);
  return Object.freeze({
    name,
    definition,
    schema: schema ?? null,
    handler,
    sink: object,
    sendsOnly: sink === undefined,
    carriers: Object.fromEntries(
      carriers
        .filter(({ config: { kind } }) => kind === "function")
        .map((own) => [own.name, { handler: own.handler, sink: own.object }]),
    ),
  });
}

/** Only those that are set: absent and undefined must not make two definitions out of one. */
function limitsOf({ ratePerSecond, tenantRatePerSecond, concurrencyTotal, moneyField }: TopicOptions): Partial<TopicDefinition> {
  const limits = Object.entries({ ratePerSecond, tenantRatePerSecond, concurrencyTotal, moneyField });
  return Object.fromEntries(limits.filter(([, value]) => value !== undefined));
}

interface ReadSink {
  /** As every process sees it. */
  readonly config: SinkConfig;
  readonly handler: TopicHandler<unknown> | null;
  readonly object: Sink | null;
}

function readSink(sink: TopicOptions["sink"]): ReadSink {
  const handler = typeof sink === "function" ? sink : null;
  const object = sink !== undefined && typeof sink === "object" && "deliver" in sink ? sink : null;
  // What code declares may use private addresses: its author could have called them directly.
  const config: SinkConfig =
    sink === undefined || handler || object ? { kind: "function" } : { trusted: true, ...(sink as DeclaredSink) };
  return { config, handler, object };
}

function retryConfig(retry: TopicOptions["retry"]): RetryConfig {
  if (typeof retry === "string") return { policy: retry };
  return { ...retry, policy: retry?.policy ?? "exponential" };
}

function withDefined(config: SinkConfig, extra: Partial<SinkConfig>): SinkConfig {
  return { ...config, ...Object.fromEntries(Object.entries(extra).filter(([, value]) => value !== undefined)) };
}
