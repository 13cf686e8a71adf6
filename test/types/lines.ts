/**
 * C6: lines that a caller of the library may write: what is right compiles, and of what is wrong the compiler says what is wrong, once.
 * They are compiled against the sources here and against the installed package in test/package, by the oldest compiler that we support and by our own.
 */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const NAMES = [
  "createMakegood",
  "createMemoryStore",
  "isTopicName",
  "topic",
  "type Makegood",
  "type RetryConfig",
  "type RetryPolicyName",
  "type SinkConfig",
  "type StandardSchemaV1",
  "type Topic",
  "type TopicName",
];

const before = (from: string): string[] => [
  `import { ${NAMES.join(", ")} } from "${from}";`,
  "declare const schema: StandardSchemaV1<{ amount: string }, { amount: number }>;",
  "declare const mg: Makegood;",
  "declare const text: string;",
  'const url = "https://example.com/in";',
  'const plain = topic<{ charge: string }>("billing/plain", { sink: { kind: "http", url } });',
  'const typed = topic("billing/typed", { schema, sink: ({ amount }) => void amount.toFixed(2) });',
  'const ofHandler = topic("billing/handler", { sink: (payload: { n: number }) => void payload.n });',
  'const untyped = topic("billing/untyped");',
];

export const RIGHT = [
  'mg.enqueue(plain, { charge: "ch_1" }, { key: "k" });',
  'mg.enqueue(typed, { amount: "12" });',
  "mg.enqueue(ofHandler, { n: 1 });",
  'mg.enqueue(untyped, { anything: ["goes"] });',
  'mg.enqueue("billing/plain", { anything: ["goes"] });',
  "if (isTopicName(text)) mg.enqueue(text, 1);",
  'mg.enqueueMany(plain, [{ payload: { charge: "a" }, key: "k" }]);',
  'mg.deliver(typed, { amount: "12" });',
  "createMakegood({ store: createMemoryStore(), topics: [plain, typed, ofHandler, untyped] }).then((made) => made.close());",
  'topic("a/b", { sink: { kind: "webhook", url, secrets: ["s"] }, retry: "settlement" });',
  'topic("a/b", { sink: { kind: "notify" }, retry: { policy: "table", tableMs: [1_000] } });',
  'mg.cancel({ topic: plain, key: "k", tenantId: "t" }, { actor: "a" });',
  'mg.reschedule("id", { actor: "a", delayMs: 5 });',
  'mg.pause(plain).then(() => mg.resume("billing/plain"));',
  'mg.get("id").then((message) => message?.pendingReason?.code);',
  'mg.list({ topic: plain, status: "pending" }).then(({ data }) => data[0]?.pendingReason?.code);',
  "const forAny = <In,>(any: Topic<In>, payload: In) => mg.enqueue(any, payload);",
  "forAny(plain, { charge: text });",
  "mg.tick({ budgetMs: 1_000 }).then(({ nextDueInMs }) => nextDueInMs?.toFixed());",
  "createMakegood({ store: createMemoryStore(), log: console });",
  'createMakegood({ store: createMemoryStore(), log: "silent" });',
];

const NUMBER_FOR_STRING = /Type 'number' is not assignable to type 'string'/;
const UNKNOWN_POLICY = /'"expnential"' is not assignable to type .*"exponential"|Did you mean '"exponential"'/;

/** Line → what the compiler must say of it. */
export const WRONG: readonly (readonly [line: string, says: RegExp])[] = [
  ["mg.enqueue(plain, { charge: 7 });", NUMBER_FOR_STRING],
  ["mg.enqueue(plain, {});", /Property 'charge' is missing/],
  ['mg.enqueue(plain, { charge: "a", other: 1 });', /'other' does not exist in type '\{ charge: string; \}'/],
  ['mg.enqueue(plain, { charge: "a" }, { ky: "k" });', /'ky' does not exist|did you mean to write 'key'/],
  ["mg.enqueue(typed, { amount: 12 });", NUMBER_FOR_STRING],
  ['mg.enqueue(ofHandler, { n: "1" });', /Type 'string' is not assignable to type 'number'/],
  ['mg.enqueueMany(plain, [{ payload: { charge: "a" } }, { payload: { charge: 7 } }]);', NUMBER_FOR_STRING],
  ['mg.enqueueMany(plain, [{ charge: "a" }]);', /'charge' does not exist in type 'BatchMessage/],
  ["mg.deliver(plain, { charge: 7 });", NUMBER_FOR_STRING],
  ['mg.enqueue("billing", {});', /'"billing"' is not assignable/],
  ["mg.enqueue(text, {});", /'string' is not assignable/],
  ['mg.pause("billing");', /'"billing"' is not assignable/],
  ["const name: TopicName = text;", /'string' is not assignable to type '`\$\{string\}\/\$\{string\}`'/],
  ['topic("billing");', /'"billing"' is not assignable to parameter of type '`\$\{string\}\/\$\{string\}`'/],
  ['topic("a/b", { sink: { kind: "http" } });', /Property 'url' is missing/],
  ['topic("a/b", { sink: { kind: "htp", url } });', /'url' does not exist in type 'Sink/],
  ['const sink: SinkConfig = { kind: "htp", url };', /'"htp"' is not assignable to type '"function" \| "http" \|/],
  ['topic("a/b", { sink: { kind: "webhook", url } });', /Property 'secrets' is missing/],
  ['topic("a/b", { sink: { kind: "function", url } });', /url|function/],
  ['topic("a/b", { schema, sink: { kind: "http" } });', /Property 'url' is missing/],
  ['const other: SinkConfig = { kind: "http" };', /Property 'url' is missing/],
  ['topic("a/b", { retry: "expnential" });', UNKNOWN_POLICY],
  ['topic("a/b", { retry: { policy: "expnential" } });', UNKNOWN_POLICY],
  ['const policy: RetryPolicyName = "expnential";', UNKNOWN_POLICY],
  ['const config: RetryConfig = { policy: "expnential" };', UNKNOWN_POLICY],
  [
    'topic("a/b", { schema, sink: (payload) => void payload.amount.toUpperCase() });',
    /'toUpperCase' does not exist on type 'number'/,
  ],
  ['mg.list({ status: "pendng" });', /'"pendng"' is not assignable to type|Did you mean '"pending"'/],
  ['mg.cancel({ topic: plain }, { actor: "a" });', /Property 'key' is missing/],
  ['mg.reschedule("id", { actor: "a" });', /Property 'delayMs' is missing/],
  ['mg.cancel("id", {});', /Property 'actor' is missing/],
  ["mg.tick({});", /Property 'budgetMs' is missing/],
  [
    'createMakegood({ store: createMemoryStore(), log: "loud" });',
    /'"loud"' is not assignable to type 'LogSetting \| undefined'/,
  ],
];

const MARK = /^(.*)\.ts\((\d+),\d+\): (.*)$/;

/** What a compiler says of each of them, and of the lines before them. */
export interface Said {
  readonly before: readonly string[];
  right(line: string): readonly string[];
  wrong(line: string): readonly string[];
}

/** Writes `library.ts` and its settings into the folder and compiles it. `from`: how the front door is imported there. */
export async function compileLines(tsc: string, folder: string, from: string, options: object): Promise<Said> {
  const first = before(from);
  const lines = [...first, ...RIGHT, ...WRONG.map(([line]) => line)];
  await writeFile(join(folder, "library.ts"), `${lines.join("\n")}\n`);
  const config = join(folder, "tsconfig.library.json");
  await writeFile(config, JSON.stringify({ compilerOptions: { strict: true, noEmit: true, ...options }, files: ["library.ts"] }));
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [tsc, "-p", config, "--pretty", "false"], { cwd: folder }, (_error, stdout) => resolve(stdout));
  });
  /** Line number → everything that was said of it. */
  const said = new Map<number, string[]>();
  let line = 0;
  for (const text of output.split("\n")) {
    const at = MARK.exec(text);
    if (at?.[1] === "library") line = Number(at[2]);
    else if (at || /^\S/.test(text)) throw new Error(`the compiler stopped elsewhere: ${text}`);
    if (text !== "") said.set(line, [...(said.get(line) ?? []), at?.[3] ?? text]);
  }
  const of = (index: number): string[] => said.get(index + 1) ?? [];
  return {
    before: first.flatMap((_line, i) => of(i)),
    right: (right) => of(first.length + RIGHT.indexOf(right)),
    wrong: (wrong) => of(first.length + RIGHT.length + WRONG.findIndex(([one]) => one === wrong)),
  };
}

/** What is wrong with what was said of a wrong line; null: it is named, once, and nothing else is. */
export function misjudged(words: readonly string[], says: RegExp): string | null {
  const text = words.join("\n");
  if (words.filter((word) => word.startsWith("error")).length !== 1) return `not one error: ${text}`;
  if (/overload/i.test(text)) return `speaks of overloads: ${text}`;
  return says.test(text) ? null : `does not name it: ${text}`;
}
