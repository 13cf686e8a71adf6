/**
 * Traces and metrics of OpenTelemetry between real processes, read from the exporters of the real SDK: who is linked to whom, what is kept
 * with a message, what leaves with it, and what never does.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ATTRIBUTES as A, INSTRUMENTS } from "../../src/observe/otel-names.ts";
import { builtDist } from "../support/build.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { type Fact, startScript, workspace } from "../support/processes.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";

interface Span {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: SpanStatusCode; readonly message?: string };
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, string>> }[];
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | null;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

interface Exported {
  readonly facts: readonly Fact[];
  readonly spans: readonly Span[];
  readonly metrics: readonly {
    readonly name: string;
    readonly unit: string;
    readonly points: readonly { readonly attributes: Readonly<Record<string, unknown>>; readonly value: number }[];
  }[];
  named(name: string): Span[];
}

const CHILD = fileURLToPath(new URL("./traced-child.mjs", import.meta.url));
const SECRET = "hunter2-canary";
const GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const schema = freshSchema();
let receiver: Receiver;
let produced: Exported;
let consumed: Exported;

async function traced(options: Fact): Promise<Exported> {
  const shared = { database: databaseUrl(), schema, url: receiver.url, secret: SECRET };
  const child = await startScript(CHILD, { ...shared, ...options });
  const told = (await child.fact((fact) => "spans" in fact)) as unknown as Omit<Exported, "facts" | "named">;
  expect(await child.ended).toMatchObject({ code: 0 });
  return { ...told, facts: child.facts, named: (name) => told.spans.filter((span) => span.name === name) };
}

const ids = ({ facts }: Exported): string[] => facts.flatMap(({ id, ids: many }) => (many ?? (id ? [id] : [])) as string[]);
const the = (spans: readonly Span[]): Span => {
  expect(spans).toHaveLength(1);
  return spans[0] as Span;
};
const processOf = (id: string | undefined): Span =>
  the(consumed.spans.filter(({ attributes }) => attributes[A.messageId] === id));

beforeAll(async () => {
  receiver = await startReceiver();
  const payloads = [{ secret: SECRET }];
  const enqueue = [
    { topic: "shop/orders", payloads, key: SECRET },
    { topic: "shop/inner", payloads: [1, 2, 3] },
    { topic: "shop/broken", payloads },
    { topic: "shop/inner", payloads, traceparent: GIVEN },
  ];
  produced = await traced({ tracing: { propagate: true }, enqueue, deliver: true });
  consumed = await traced({ tracing: { propagate: true } });
}, 120_000);

afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await dropSchema(schema);
});

it("an attempt in another process is linked to the span that enqueued, and is the parent of what its receiver does", async () => {
  const send = the(produced.named("send shop/orders").filter(({ attributes }) => attributes[A.messageId] === ids(produced)[0]));
  const checkout = the(produced.named("checkout"));
  expect(send).toMatchObject({ kind: SpanKind.PRODUCER, parent: checkout.spanId, traceId: checkout.traceId });
  const attempt = processOf(ids(produced)[0]);
  expect(attempt).toMatchObject({ name: "process shop/orders", kind: SpanKind.CONSUMER, parent: null });
  expect(attempt.links).toMatchObject([{ traceId: send.traceId, spanId: send.spanId }]);
  expect(attempt.attributes).toMatchObject({ [A.system]: "makegood", [A.operationType]: "process", [A.outcome]: "delivered" });
  const [arrival] = receiver.of(ids(produced)[0] as string);
  expect(arrival?.headers).toMatchObject({ traceparent: `00-${attempt.traceId}-${attempt.spanId}-01` });
  expect(Object.keys(arrival?.headers ?? {})).not.toContain("baggage");
});

it("each message of a batch has a span of its own, a trace that was given stays, and what a handler does stands below its attempt", () => {
  const [, first, second, third, , given] = ids(produced);
  const batch = the(produced.named("send shop/inner").filter(({ attributes }) => attributes[A.batchCount] === 3));
  expect(batch.kind).toBe(SpanKind.CLIENT);
  for (const id of [first, second, third]) {
    const create = the(produced.named("create shop/inner").filter(({ attributes }) => attributes[A.messageId] === id));
    expect(create).toMatchObject({ kind: SpanKind.PRODUCER, parent: batch.spanId });
    expect(processOf(id).links).toMatchObject([{ spanId: create.spanId }]);
  }
  expect(processOf(given).links).toMatchObject([{ traceId: GIVEN.split("-")[1], spanId: GIVEN.split("-")[2] }]);
  const attempts = consumed.named("process shop/inner").map(({ spanId }) => spanId);
  expect(
    consumed
      .named("inner")
      .map(({ parent }) => parent)
      .sort(),
  ).toEqual(attempts.sort());
});

it("deliver() tries the sink in the caller's trace", () => {
  expect(produced.facts).toContainEqual({ delivered: expect.objectContaining({ kind: "delivered" }) });
  const attempt = the(produced.named("process shop/orders"));
  const send = the(produced.spans.filter(({ spanId }) => spanId === attempt.parent));
  expect(send).toMatchObject({ name: "send shop/orders", parent: the(produced.named("checkout")).spanId });
});

it("claims and settlements are calls of a client, with links to what their messages were made in", () => {
  for (const operation of ["receive", "settle"]) {
    const spans = consumed.spans.filter(({ attributes }) => attributes[A.operationType] === operation);
    const counted = spans.reduce((sum, { attributes }) => sum + Number(attributes[A.batchCount]), 0);
    expect([operation, counted]).toEqual([operation, 6]);
    expect(spans.flatMap(({ links }) => links)).toHaveLength(6);
    for (const { kind, parent } of spans) expect({ kind, parent }).toEqual({ kind: SpanKind.CLIENT, parent: null });
  }
});

it("the metrics of the conventions, by topic", () => {
  const sum = ({ metrics }: Exported, { name, unit }: { name: string; unit: string }, topic: string) => {
    const found = metrics.find((metric) => metric.name === name);
    expect(found?.unit).toBe(unit);
    const points = found?.points.filter(({ attributes }) => attributes[A.destination] === topic) ?? [];
    return points.reduce((total, { value }) => total + value, 0);
  };
  expect(sum(produced, INSTRUMENTS.sent, "shop/inner")).toBe(4);
  expect(sum(produced, INSTRUMENTS.operationDuration, "shop/inner")).toBe(2);
  expect(sum(consumed, INSTRUMENTS.consumed, "shop/inner")).toBe(4);
  expect(sum(consumed, INSTRUMENTS.processDuration, "shop/inner")).toBe(4);
  const failed = consumed.metrics.find(({ name }) => name === INSTRUMENTS.processDuration.name)?.points;
  expect(failed).toContainEqual({ attributes: expect.objectContaining({ [A.errorType]: "handler_error" }), value: 1 });
});

it("an error's text comes out masked, and no payload, key or baggage at all", () => {
  const broken = the(consumed.named("process shop/broken"));
  expect(broken.status).toMatchObject({ code: SpanStatusCode.ERROR, message: expect.stringContaining("password=[redacted]") });
  expect(broken.events.map(({ name }) => name)).toEqual(["exception"]);
  expect(broken.attributes[A.errorType]).toBe("handler_error");
  for (const { spans, metrics } of [produced, consumed]) expect(JSON.stringify([spans, metrics])).not.toContain(SECRET);
});

it("unless asked nothing is kept with a message or sent on; what was given links, and a key is shown only if asked", async () => {
  const enqueue = [
    { topic: "shop/orders", payloads: [1], key: "shown" },
    { topic: "shop/orders", payloads: [2], traceparent: GIVEN },
  ];
  const sent = await traced({ enqueue });
  const store = await openStore({ schema });
  const kept = await Promise.all(ids(sent).map(async (id) => (await store.get(id))?.traceparent));
  await store.close();
  expect(kept).toEqual([null, GIVEN]);
  const done = await traced({ tracing: { keys: true } });
  const spans = done.named("process shop/orders").sort((a, b) => a.links.length - b.links.length);
  expect(spans.map(({ links }) => links.length)).toEqual([0, 1]);
  expect(spans[0]?.attributes[A.key]).toBe("shown");
  expect(receiver.of(ids(sent)[1] as string)[0]?.headers.traceparent).toBe(GIVEN);
});

it("the guide names every attribute and metric", async () => {
  const page = await readFile(new URL("../../docs/guide/tracing.md", import.meta.url), "utf8");
  const names = [...Object.values(A), ...Object.values(INSTRUMENTS).map(({ name }) => name)];
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

it("without the package of the API everything works, and no step has anybody to tell", async () => {
  const home = await workspace();
  const modules = join(home, "node_modules");
  const ours = join(modules, "makegood");
  await mkdir(ours, { recursive: true });
  await cp(await builtDist(), join(ours, "dist"), { recursive: true });
  const repo = dirname(dirname(dirname(CHILD)));
  const manifest = JSON.parse(await readFile(join(repo, "package.json"), "utf8"));
  await writeFile(join(ours, "package.json"), JSON.stringify(manifest));
  for (const name of Object.keys(manifest.dependencies)) await symlink(join(repo, "node_modules", name), join(modules, name));
  const program = `
    import { createMakegood, topic } from "makegood";
    import { createMemoryStore } from "./node_modules/makegood/dist/store/memory/memory-store.js";
    const missing = await import("@opentelemetry/api").catch(({ code }) => code);
    const got = [];
    const mg = await createMakegood({ log: "silent", store: createMemoryStore(), topics: [topic("a/b", { sink: (n) => void got.push(n) })] });
    await mg.enqueue("a/b", 1);
    await mg.workOff();
    await mg.close();
    console.log(JSON.stringify({ missing, got, spans: mg.events.spans }));
  `;
  await writeFile(join(home, "app.mjs"), program);
  const { stdout } = await promisify(execFile)(process.execPath, ["app.mjs"], { cwd: home });
  expect(JSON.parse(stdout)).toEqual({ missing: "ERR_MODULE_NOT_FOUND", got: [1], spans: null });
});
