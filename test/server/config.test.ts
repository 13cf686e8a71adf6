/**
 * Fault 48, the configuration zoo: every mistake is found, all of them are reported at once, and no secret is repeated.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig, shownConfig } from "../../src/server/config/config.ts";

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "makegood-config-"));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const read = (env: Record<string, string> = {}, flags = {}) => readConfig({ env, cwd, flags });
const faults = async (env: Record<string, string>) => {
  const found = await read(env);
  return found.ok ? [] : found.faults;
};
const config = async (env: Record<string, string> = {}, flags = {}) => {
  const found = await read(env, flags);
  if (!found.ok) throw new Error(found.faults.join("\n"));
  return found.config;
};
const file = (name: string, content: unknown) =>
  writeFile(join(cwd, name), typeof content === "string" ? content : JSON.stringify(content));

describe("defaults", () => {
  it("are those of the contract", async () => {
    expect(await config()).toMatchObject({
      port: 4600,
      host: "127.0.0.1",
      data_dir: join(cwd, ".makegood"),
      database_url: null,
      schema: "makegood",
      sink_allow: ["127.0.0.0/8", "::1/128"],
      tokens: [],
      concurrency: 50,
      poll_ms: 1_000,
      drain_ms: 30_000,
      kept_days: 7,
      dead_letters_max: 100,
      payload_bytes_max: 1_048_576,
      topics: [],
    });
  });

  it("let sinks dial loopback only while we are bound to it", async () => {
    const tokens = { MAKEGOOD_TOKENS: "a:0123456789abcdef" };
    expect((await config({ MAKEGOOD_HOST: "0.0.0.0", ...tokens })).sink_allow).toEqual([]);
    const both = { MAKEGOOD_HOST: "0.0.0.0", MAKEGOOD_SINK_ALLOW: "10.0.0.0/8, 192.168.0.1", ...tokens };
    expect((await config(both)).sink_allow).toEqual(["10.0.0.0/8", "192.168.0.1"]);
  });
});

describe("the environment", () => {
  it("reports every mistake together", async () => {
    const found = await faults({
      MAKEGOOD_PORT: "70000",
      MAKEGOOD_HOST: "no such host!",
      MAKEGOOD_CONCURRENCY: "0",
      MAKEGOOD_POLL_MS: "-5",
      MAKEGOOD_DRAIN_MS: "1e3",
      MAKEGOOD_KEPT_DAYS: "0",
      MAKEGOOD_PAYLOAD_BYTES_MAX: "lots",
      MAKEGOOD_SCHEMA: "pg_x; drop",
      MAKEGOOD_SINK_ALLOW: "10.0.0.0/33,nonsense",
      MAKEGOOD_LOG: "xml",
      MAKEGOOD_TOKENS: "a:short",
      MAKEGOOD_PROT: "1",
      MAKEGOOD_NONSENSE: "1",
      DATABASE_URL: "mysql://root:hunter2@db/x",
    });
    expect(found).toHaveLength(14);
    expect(found.join("\n")).toContain("MAKEGOOD_PROT is not a variable of Makegood (did you mean MAKEGOOD_PORT?)");
    expect(found.join("\n")).not.toContain("hunter2");
  });

  it.each([
    ["MAKEGOOD_PORT", ["-1", "4600.5", "0x10", " ", "NaN"]],
    ["MAKEGOOD_CONCURRENCY", ["0", "-1", "1.5", "999999999"]],
    ["MAKEGOOD_KEPT_DAYS", ["0", "-1", "seven"]],
    ["MAKEGOOD_SCHEMA", ["A", "1a", "a-b", 'a"b', "a".repeat(64), "pg_catalog"]],
  ])("%s refuses what is out of range", async (name, values) => {
    for (const value of values) expect(await faults({ [name]: value })).toHaveLength(1);
  });

  it("reads secrets from files, and not from both places", async () => {
    await file("tokens", "alice:0123456789abcdef\nbob:fedcba9876543210\n");
    await file("empty", "");
    expect((await config({ MAKEGOOD_TOKENS_FILE: "tokens" })).tokens.map(({ name }) => name)).toEqual(["alice", "bob"]);
    expect(await faults({ MAKEGOOD_TOKENS_FILE: "missing" })).toHaveLength(1);
    expect((await faults({ MAKEGOOD_TOKENS_FILE: "empty" })).length).toBeGreaterThan(0);
    expect(await faults({ MAKEGOOD_TOKENS_FILE: "tokens", MAKEGOOD_TOKENS: "c:0123456789abcdef" })).toHaveLength(1);
    await file("url", "postgres://u:p@h/db\n");
    expect((await config({ DATABASE_URL_FILE: "url" })).database_url).toBe("postgres://u:p@h/db");
  });

  it("takes an empty variable for an unset one, and flags before all", async () => {
    expect((await config({ MAKEGOOD_PORT: "", DATABASE_URL: "" })).port).toBe(4600);
    expect((await config({ MAKEGOOD_PORT: "1234" }, { port: "5678" })).port).toBe(5678);
  });

  it("is shown without secrets", async () => {
    const shown = JSON.stringify(
      shownConfig(await config({ DATABASE_URL: "postgres://u:hunter2@h:5433/db", MAKEGOOD_TOKENS: "a:0123456789abcdef" })),
    );
    expect(shown).toContain("postgres://h:5433/db");
    expect(shown).not.toMatch(/hunter2|0123456789abcdef/);
  });
});

describe("the config file", () => {
  const topic = { sink: { kind: "http", url: "http://10.1.2.3/in" } };

  it("declares settings and topics, in JSON or as a module; the environment wins", async () => {
    await file("makegood.config.json", { port: 4711, sink_allow: ["10.0.0.0/8"], topics: { "billing/finalize": topic } });
    const found = await config({ MAKEGOOD_CONCURRENCY: "9" });
    expect(found).toMatchObject({ port: 4711, concurrency: 9, sink_allow: ["10.0.0.0/8"] });
    expect(found.topics[0]?.definition).toMatchObject({ name: "billing/finalize", sink: { trusted: true } });
    expect((await config({ MAKEGOOD_PORT: "1" })).port).toBe(1);
    await file("other.mjs", `export default { topics: { "a/b": ${JSON.stringify(topic)} } };`);
    expect((await config({}, { config: "other.mjs" })).topics).toHaveLength(1);
  });

  it("refuses the whole zoo at once, by topic and field", async () => {
    await file("makegood.config.json", {
      prot: 4600,
      concurrency: -1,
      topics: {
        "lease/short": { sink: { kind: "http", url: "http://a.example/", timeout_ms: 60_000 }, lease_ms: 5_000 },
        "neg/ative": { sink: { kind: "http", url: "http://a.example/" }, concurrency: -1, retry: { base_ms: -1 } },
        "ze/ro": { sink: { kind: "http", url: "http://a.example/", timeout_ms: 0 }, retry: { attempts_max: 0 } },
        "no/secret": { sink: { kind: "webhook", url: "http://a.example/" } },
        "un/known": { sink: { kind: "http", url: "http://a.example/" }, retires: {} },
        "meta/data": { sink: { kind: "http", url: "http://169.254.169.254/" } },
        NotAName: topic,
      },
    });
    const found = (await faults({})).join("\n");
    for (const word of [
      "prot",
      "concurrency",
      "lease/short",
      "neg/ative",
      "ze/ro",
      "no/secret",
      "un/known",
      "meta/data",
      "NotAName",
    ]) {
      expect(found).toContain(word);
    }
    expect(found).toContain("retires unknown field");
    expect(found).toContain("did you mean port?");
  });

  it.each<[string, string, RegExp]>([
    ["makegood.config.json", "{", /makegood\.config\.json/],
    ["makegood.config.json", "[]", /must hold an object/],
    ["makegood.config.json", '{"topics":[]}', /must hold an object/],
    ["makegood.config.mjs", "export const x = 1;", /no default export/],
    ["makegood.config.mjs", "throw new Error('boom');", /boom/],
    ["makegood.config.json", '{"port":{}}', /port/],
  ])("refuses %s with %s", async (name, content, words) => {
    await file(name, content);
    expect((await faults({})).join("\n")).toMatch(words);
  });

  it("refuses two of them, and one that is not there", async () => {
    await file("makegood.config.json", {});
    await file("makegood.config.mjs", "export default {};");
    expect((await faults({}))[0]).toMatch(/several/);
    expect(await faults({ MAKEGOOD_CONFIG: "missing.json" })).toHaveLength(1);
  });

  it("says what to do about TypeScript where Node does not run it", async () => {
    await file("makegood.config.ts", "export default {};");
    const found = await faults({});
    if (!(process.features as { typescript?: unknown }).typescript) expect(found[0]).toMatch(/makegood\.config\.mjs/);
  });
});
