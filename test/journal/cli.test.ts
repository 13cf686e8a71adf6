/**
 * `makegood journal list|export|import`, now and then as real processes: directories and log lines go into the store if absent, with exit codes and JSON.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { systemRandom } from "../../src/platform/random.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { readSegment } from "../../src/store/journal/record.ts";
import { entryLine } from "../../src/store/ladder/format/error-line.ts";
import { createSealer } from "../../src/store/ladder/format/seal.ts";
import { definition } from "../../src/testing/store-conformance/fixtures.ts";
import { makegood, removeWorkspaces, workspace } from "../cli/support.ts";
import { makegoodHere, terminal } from "../cli/terminal.ts";
import { databaseUrl, dropSchema, openStore } from "../support/postgres.ts";
import { entry, freshDirectory, openJournal } from "./support.ts";

afterAll(removeWorkspaces);

async function scene() {
  const store = await openStore();
  await store.topics.put(definition("test/ladder"), "code");
  const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: store.schema };
  const close = async () => {
    await store.close();
    await dropSchema(store.schema);
  };
  return { store, env, cwd: await workspace(), [Symbol.asyncDispose]: close };
}

async function filled(directory: string, entries: readonly ReturnType<typeof entry>[], sealKey?: string): Promise<void> {
  const { journal } = await openJournal(directory, { sealKey });
  for (const one of entries) await journal.append(one);
  await journal.close();
}

describe("makegood journal", () => {
  it("list shows what waits, in words and as JSON, and touches nothing", async () => {
    const [directory, cwd] = [await freshDirectory(), await workspace()];
    const one = entry({ key: "k\u202e" });
    await filled(directory, [one]);
    const before = await readdir(directory);
    const shown = await makegood(cwd, ["journal", "list", "--directory", directory]);
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout).toContain(one.message.id);
    expect(shown.stdout).not.toContain("\u202e");
    const asJson = await makegoodHere(cwd, ["journal", "list", "--json", "--directory", directory]);
    expect(JSON.parse(asJson.stdout).data).toMatchObject([
      { id: one.message.id, state: "waiting", topic: "test/ladder", key: "k\u202e" },
    ]);
    expect(await readdir(directory)).toEqual(before);
  });

  it("says what is missing: no directory (2), one that is not there (3)", async () => {
    const cwd = await workspace();
    expect((await makegoodHere(cwd, ["journal", "list"])).code).toBe(2);
    expect((await makegoodHere(cwd, ["journal", "list", "--directory", "/nowhere/at/all"])).code).toBe(3);
    expect((await makegoodHere(cwd, ["journal", "import"])).code).toBe(2);
  });

  it("import moves a directory into the store; a second time there is nothing left; export reads back", async () => {
    await using one = await scene();
    const directory = await freshDirectory();
    const entries = [entry({ key: "a" }), entry(), entry({ directTry: { code: "http_422", error: "no", rejected: true } })];
    await filled(directory, entries);
    const exported = await makegoodHere(one.cwd, ["journal", "export", "--directory", directory]);
    expect(exported.stdout.trim().split("\n")).toHaveLength(3);
    const imported = await makegood(one.cwd, ["journal", "import", "--json", directory], one.env);
    expect(imported).toMatchObject({ code: 0 });
    expect(JSON.parse(imported.stdout)).toEqual({ moved: 3, duplicates: 0, conflicts: 0, left: 0, unreadable: 0 });
    for (const { message } of entries) expect((await one.store.get(message.id))?.payload).toBe(message.payload);
    expect(await one.store.get(entries[2]?.message.id as string)).toMatchObject({ status: "dead", resolution: "open" });
    const again = await makegoodHere(one.cwd, ["journal", "import", "--json", directory], one.env);
    expect(JSON.parse(again.stdout)).toMatchObject({ moved: 0, left: 0 });
    // What was exported is the same messages: importing it adds nothing.
    const fromExport = await makegoodHere(one.cwd, ["journal", "import", "--json", "-"], one.env, exported.stdout);
    expect(JSON.parse(fromExport.stdout)).toMatchObject({ moved: 3, conflicts: 0, unreadable: 0 });
    expect((await one.store.list({ limit: 10 })).data).toHaveLength(3);
  });

  it("damage is named by export and import, and counts as left: exit code 1, and the file stays", async () => {
    await using one = await scene();
    const directory = await freshDirectory();
    await filled(directory, [entry(), entry(), entry()]);
    const [name = ""] = (await readdir(directory)).filter((file) => file.endsWith(".journal"));
    const bytes = await readFile(join(directory, name));
    const { offset = 0 } = readSegment(bytes).records[1] ?? {};
    bytes.writeUInt8(bytes.readUInt8(offset + 30) ^ 0x41, offset + 30);
    await writeFile(join(directory, name), bytes);
    const exported = await terminal(["journal", "export", "--directory", directory], one);
    expect(exported).toMatchObject({ code: 1, stderr: expect.stringContaining(`at ${offset}`) });
    expect(exported.stdout.trim().split("\n")).toHaveLength(2);
    const imported = await terminal(["--json", "journal", "import", directory], one);
    expect(imported).toMatchObject({ code: 1, stderr: expect.stringContaining(`at ${offset}`) });
    expect(JSON.parse(imported.stdout)).toMatchObject({ moved: 2, left: 1 });
    expect((await readJournal({ directory })).damage).toMatchObject([{ kind: "corrupt_record", offset }]);
  });

  it("DF-30: import reads the lines of the memory rung out of a log, sealed ones with the key", async () => {
    await using one = await scene();
    const sealKey = "a key of sixteen or more";
    const [plain, sealed] = [entry(), entry({ payload: '{"card":"4111"}' })];
    const form = { sealer: createSealer(sealKey, systemRandom), maskFields: ["card"] };
    const file = join(one.cwd, "app.log");
    await writeFile(
      file,
      ["a line of another program", entryLine(plain, "why", {}), `{"x":1}`, entryLine(sealed, "why", form), ""].join("\n"),
    );
    const without = await makegoodHere(one.cwd, ["journal", "import", "--json", file], one.env);
    expect(without.code).toBe(1);
    expect(JSON.parse(without.stdout)).toMatchObject({ moved: 1, unreadable: 1 });
    expect(without.stderr).toContain("line 4: its payload is sealed");
    const withKey = await makegoodHere(one.cwd, ["journal", "import", "--json", file], {
      ...one.env,
      MAKEGOOD_SEAL_KEY: sealKey,
    });
    expect(withKey.code).toBe(0);
    expect((await one.store.get(sealed.message.id))?.payload).toBe('{"card":"4111"}');
    expect((await one.store.list({ limit: 10 })).data).toHaveLength(2);
  });

  it("CON-8: a contradiction is never imported: exit code 4, kept in quarantine, the store unchanged", async () => {
    await using one = await scene();
    const first = entry({ key: "k", payload: '{"cost":1}' });
    await one.store.enqueue([first.message]);
    const directory = await freshDirectory();
    await filled(directory, [entry({ key: "k", payload: '{"cost":2}' })]);
    const imported = await makegood(one.cwd, ["journal", "import", "--json", directory], one.env);
    expect(imported.code).toBe(4);
    expect(JSON.parse(imported.stdout)).toMatchObject({ moved: 0, conflicts: 1 });
    expect((await one.store.list({ limit: 10 })).data).toMatchObject([{ id: first.message.id, payload: '{"cost":1}' }]);
    const listed = await makegoodHere(one.cwd, ["journal", "list", "--json", "--directory", directory]);
    expect(JSON.parse(listed.stdout).data).toMatchObject([{ state: "quarantined" }]);
  });

  it("DF-29: work in memory mode refuses to start while the journal holds entries", async () => {
    const [directory, cwd] = [await freshDirectory(), await workspace()];
    await filled(directory, [entry()]);
    const env = { MAKEGOOD_STORE: "memory", MAKEGOOD_JOURNAL_DIR: directory };
    const refused = await makegood(cwd, ["work"], env);
    expect(refused.code).toBe(1);
    expect(refused.stdout + refused.stderr).toContain("despite-durable-entries");
  });
});
