// An application with the SDK of OpenTelemetry: it enqueues in a span of its own, or delivers, and then says all spans and metrics that
// reached its exporters.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";

const options = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(options.dist, path)).href);
const { createMakegood, topic } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");

const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);
const spans = new InMemorySpanExporter();
const metered = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: metered })] });

const topics = [
  topic("shop/orders", { sink: { kind: "http", url: options.url } }),
  topic("shop/inner", { sink: () => trace.getTracer("app").startSpan("inner").end() }),
  topic("shop/broken", {
    sink: () => {
      throw new Error(`refused by https://user:${options.secret}@host/ with password=${options.secret}`);
    },
    retry: { attemptsMax: 1 },
  }),
];
const store = createPostgresStore({ url: options.database, schema: options.schema });
const mg = await createMakegood({ log: "silent", store, topics, pollMs: 50, recovery: false, tracing: options.tracing });
// After it, as an application may.
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
metrics.setGlobalMeterProvider(meters);

if (options.enqueue) {
  const checkout = trace.getTracer("app").startSpan("checkout");
  const baggage = propagation.createBaggage({ canary: { value: options.secret } });
  const active = propagation.setBaggage(trace.setSpan(context.active(), checkout), baggage);
  await context.with(active, async () => {
    for (const { topic, payloads, ...rest } of options.enqueue) {
      const messages = payloads.map((payload) => ({ ...rest, payload }));
      if (messages.length > 1) say({ ids: (await mg.enqueueMany(topic, messages)).map(({ id }) => id) });
      else say({ id: (await mg.enqueue(topic, payloads[0], rest)).id });
    }
    if (options.deliver) say({ delivered: await mg.deliver("shop/orders", { direct: true }) });
  });
  checkout.end();
} else {
  // Whatever is active where a worker is started is no parent of its attempts.
  await context.with(trace.setSpan(context.active(), trace.getTracer("app").startSpan("start")), () => mg.workOff());
}
await mg.close();
await meters.forceFlush();
const shown = spans.getFinishedSpans().map((span) => ({
  ...{ name: span.name, kind: span.kind, attributes: span.attributes, status: span.status, events: span.events },
  ...{ ...span.spanContext(), parent: span.parentSpanContext?.spanId ?? null, links: span.links.map((link) => link.context) },
}));
const last =
  metered
    .getMetrics()
    .at(-1)
    ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
say({
  spans: shown,
  metrics: last.map(({ descriptor, dataPoints }) => ({
    ...{ name: descriptor.name, unit: descriptor.unit },
    points: dataPoints.map(({ attributes, value }) => ({ attributes, value: value.count ?? value })),
  })),
});
process.exit(0);
