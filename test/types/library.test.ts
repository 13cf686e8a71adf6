/**
 * C6: what a caller sees of the library's types: what is wrong does not compile, and the compiler says what is wrong and nothing else. One
 * run of the compiler over one file; each line of it is wrong in one way, or right.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const ROOT = new URL("../../", import.meta.url).pathname;

const BEFORE = [
  `import { createMakegood, createMemoryStore, isTopicName, topic, type Makegood, type SinkConfig, type StandardSchemaV1, type Topic } from "${ROOT}src/index.ts";`,
  "declare const schema: StandardSchemaV1<{ amount: string }, { amount: number }>;",
  "declare const mg: Makegood;",
  "declare const text: string;",
  'const url = "https://example.com/in";',
  'const plain = topic<{ charge: string }>("billing/plain", { sink: { kind: "http", url } });',
  'const typed = topic("billing/typed", { schema, sink: ({ amount }) => void amount.toFixed(2) });',
  'const ofHandler = topic("billing/handler", { sink: (payload: { n: number }) => void payload.n });',
  'const untyped = topic("billing/untyped");',
];

const RIGHT = [
  'mg.enqueue(plain, { charge: "ch_1" }, { key: "k" });',
  'mg.enqueue(typed, { amount: "12" });',
  "mg.enqueue(ofHandler, { n: 1 });",
  'mg.enqueue(untyped, { anything: ["goes"] });',
  'mg.enqueue("billing/plain", { anything: ["goes"] });',
  "if (isTopicName(text)) mg.enqueue(text, 1);",
  'mg.enqueueMany(plain, [{ payload: { charge: "a" }, key: "k" }]);',
  'mg.deliver(typed, { amount: "12" });',
  'topic("a/b", { sink: { kind: "webhook", url, secrets: ["s"] }, retry: "settlement" });',
  'topic("a/b", { sink: { kind: "notify" }, retry: { policy: "table", tableMs: [1_000] } });',
  'mg.cancel({ topic: plain, key: "k", tenantId: "t" }, { actor: "a" });',
  'mg.reschedule("id", { actor: "a", delayMs: 5 });',
  'mg.list({ topic: plain, status: "pending" }).then(({ data }) => data[0]?.pendingReason?.code);',
  "const forAny = <In,>(any: Topic<In>, payload: In) => mg.enqueue(any, payload);",
  "forAny(plain, { charge: text });",
  "mg.tick({ budgetMs: 1_000 }).then(({ nextDueInMs }) => nextDueInMs?.toFixed());",
  "createMakegood({ store: createMemoryStore(), log: console });",
  'createMakegood({ store: createMemoryStore(), log: "silent" });',
];

/** Line → what the compiler must say of it. */
const WRONG: readonly (readonly [line: string, says: RegExp])[] = [
  ["mg.enqueue(plain, { charge: 7 });", /Type 'number' is not assignable to type 'string'/],
  ["mg.enqueue(plain, {});", /Property 'charge' is missing/],
  ["mg.enqueue(typed, { amount: 12 });", /Type 'number' is not assignable to type 'string'/],
  ['mg.enqueue(ofHandler, { n: "1" });', /Type 'string' is not assignable to type 'number'/],
  [
    'mg.enqueueMany(plain, [{ payload: { charge: "a" } }, { payload: { charge: 7 } }]);',
    /Type 'number' is not assignable to type 'string'/,
  ],
  ["mg.deliver(plain, { charge: 7 });", /Type 'number' is not assignable to type 'string'/],
  ['mg.enqueue("billing", {});', /'"billing"' is not assignable/],
  ["mg.enqueue(text, {});", /'string' is not assignable/],
  ['topic("billing");', /'"billing"' is not assignable to parameter of type '`\$\{string\}\/\$\{string\}`'/],
  ['topic("a/b", { sink: { kind: "http" } });', /Property 'url' is missing/],
  ['topic("a/b", { sink: { kind: "htp", url } });', /'url' does not exist in type 'Sink/],
  ['const sink: SinkConfig = { kind: "htp", url };', /'"htp"' is not assignable to type '"function" \| "http" \|/],
  ['topic("a/b", { sink: { kind: "webhook", url } });', /Property 'secrets' is missing/],
  ['topic("a/b", { sink: { kind: "function", url } });', /url|function/],
  ['topic("a/b", { schema, sink: { kind: "http" } });', /Property 'url' is missing/],
  ['const other: SinkConfig = { kind: "http" };', /Property 'url' is missing/],
  ['topic("a/b", { retry: "expnential" });', /'"expnential"' is not assignable to type .*"exponential"/],
  [
    'topic("a/b", { retry: { policy: "expnential" } });',
    /'"expnential"' is not assignable to type .*"exponential"|Did you mean '"exponential"'/,
  ],
  [
    'topic("a/b", { schema, sink: (payload) => void payload.amount.toUpperCase() });',
    /'toUpperCase' does not exist on type 'number'/,
  ],
  ['mg.cancel({ topic: plain }, { actor: "a" });', /Property 'key' is missing/],
  ['mg.reschedule("id", { actor: "a" });', /Property 'delayMs' is missing/],
  ['mg.cancel("id", {});', /Property 'actor' is missing/],
  ["mg.tick({});", /Property 'budgetMs' is missing/],
  [
    'createMakegood({ store: createMemoryStore(), log: "loud" });',
    /'"loud"' is not assignable to type 'LogSetting \| undefined'/,
  ],
];

let folder: string;
/** Line number → everything that was said of it. */
const said = new Map<number, string[]>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "makegood-types-"));
  const lines = [...BEFORE, ...RIGHT, ...WRONG.map(([line]) => line)];
  await writeFile(join(folder, "library.ts"), `${lines.join("\n")}\n`);
  const options = { strict: true, noEmit: true, target: "ES2022", lib: ["ES2023", "ESNext.Disposable"], module: "NodeNext" };
  const how = {
    ...options,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [`${ROOT}node_modules/@types`],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: how, files: ["library.ts"] }));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { cwd: folder }, (_error, stdout) => resolve(stdout));
  });
  let line = 0;
  for (const text of output.split("\n")) {
    const at = /^library\.ts\((\d+),\d+\): (.*)$/.exec(text);
    if (at) line = Number(at[1]);
    else if (text.startsWith("error") || /^\S/.test(text)) throw new Error(`the compiler stopped elsewhere: ${text}`);
    if (text !== "") said.set(line, [...(said.get(line) ?? []), at?.[2] ?? text]);
  }
}, 60_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

const saidOf = (index: number): string[] => said.get(index + 1) ?? [];

it.each(RIGHT.map((line, i) => [line, i] as const))("C6: compiles: %s", (_line, i) => {
  expect(saidOf(BEFORE.length + i)).toEqual([]);
});

it.each(WRONG.map(([line, says], i) => [line, says, i] as const))(
  "C6: does not compile, and the reason is named: %s",
  (_line, says, i) => {
    const words = saidOf(BEFORE.length + RIGHT.length + i);
    expect(words.join("\n")).toMatch(says);
    expect(words.join("\n")).not.toMatch(/overload/i);
    expect(words.filter((text) => text.startsWith("error"))).toHaveLength(1);
  },
);

it("C6: what comes before them compiles", () => {
  expect(BEFORE.flatMap((_line, i) => saidOf(i))).toEqual([]);
});
