/**
 * What the command line did wrong, each under its number: it deleted what code serves (C2), wrote when it was only asked to look (C3), took one
 * id for another (C4) and said things that mislead (C7). Real processes and a real server where those matter.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { connectRedis } from "../../src/store/redis/index.ts";
import { type RecoveryServer, startRecoveryServer, TOKENS } from "../server/recovery-support.ts";
import { startTestServer } from "../server/support.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";
import { startWorker } from "../support/processes.ts";
import { startRedis } from "../support/redis-server.ts";
import { makegood, removeWorkspaces, workspace } from "./support.ts";
import { makegoodHere, terminal } from "./terminal.ts";

vi.setConfig({ testTimeout: 60_000 });
afterAll(removeWorkspaces);

/** A schema of its own that goes again; nothing is made in it. */
function database() {
  const schema = freshSchema();
  const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
  const rows = (text: string) => withClient(async (client) => (await client.query(text)).rows as Record<string, unknown>[]);
  const tables = () => rows(`select 1 from information_schema.tables where table_schema = '${schema}'`);
  return { schema, env, rows, tables, [Symbol.asyncDispose]: () => dropSchema(schema) };
}

describe("C2: what code declares", () => {
  it("C2: is not deleted from the database while a worker serves it, and may be cleared away afterwards", async () => {
    await using one = database();
    const cwd = await workspace();
    const worker = await startWorker({ url: databaseUrl(), schema: one.schema, topics: [{ name: "code/live", handler: "ok" }] });
    const run = (...args: string[]) => makegood(cwd, args, one.env);
    await vi.waitFor(async () => expect((await run("topics", "show", "code/live")).stdout).toContain('"held": null'), 20_000);
    const refused = await run("topics", "delete", "code/live", "--yes");
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringMatching(/topic_read_only/) });
    expect(refused.stderr).toMatch(/no worker serves it/);
    expect(await run("topics", "set", "code/live", "--kind", "notify")).toMatchObject({ code: 4 });
    expect(await run("enqueue", "code/live", "--payload", "1")).toMatchObject({ code: 0 });
    await vi.waitFor(async () => {
      expect((await run("messages", "list", "--topic", "code/live")).stdout).toContain(" delivered ");
    }, 20_000);
    await worker.end("SIGTERM");
    await vi.waitFor(async () => {
      expect(await run("topics", "delete", "code/live", "--yes")).toMatchObject({ code: 0, stdout: "code/live is deleted\n" });
    }, 40_000);
  });

  it("C2: deletes show what they touch and ask; without a terminal they need --yes and exit 2", async () => {
    const server = await startTestServer();
    const env = { MAKEGOOD_URL: server.url };
    try {
      await terminal(["topics", "set", "ask/me", "--kind", "notify"], { env });
      const nobody = await terminal(["topics", "delete", "ask/me"], { env });
      expect([nobody.code, nobody.stderr]).toEqual([2, expect.stringContaining("--yes")]);
      const no = await terminal(["topics", "delete", "ask/me"], { env, answers: ["n"] });
      expect([no.code, no.asked]).toEqual([2, [expect.stringContaining("Delete topic ask/me?")]]);
      expect(no.stdout).toMatch(/ask\/me +notify/);
      expect((await terminal(["topics", "show", "ask/me"], { env })).code).toBe(0);
      expect(await terminal(["topics", "delete", "ask/me"], { env, answers: ["y"] })).toMatchObject({ code: 0 });
      expect((await terminal(["topics", "show", "ask/me"], { env })).code).toBe(3);
    } finally {
      await server.close();
    }
  });
});

describe("C3: reads write nothing", () => {
  it.each([
    "messages list",
    "topics list",
    "topics delete a/b --yes",
    "messages discard 018f0000-0000-7000-8000-000000000000 --reason x",
    "groups",
    "evaluate --error-code X",
  ])("C3: `%s` on an empty database says that it is not set up, and makes no table", async (command) => {
    await using one = database();
    const told = await terminal(command.split(" "), { env: one.env });
    expect([told.code, told.stdout]).toEqual([1, ""]);
    expect(told.stderr).toMatch(/has not been set up.*makegood migrate up/);
    expect(await one.tables()).toEqual([]);
  });

  it("C3: a process that lists messages of an existing database leaves every row as it was", async () => {
    await using one = database();
    const cwd = await workspace();
    expect((await makegood(cwd, ["migrate", "up"], one.env)).code).toBe(0);
    const state = async () => [
      await one.rows(
        `select relname, n_tup_ins, n_tup_upd, n_tup_del from pg_stat_user_tables where schemaname = '${one.schema}' order by 1`,
      ),
      await one.rows(`select name from "${one.schema}".topic`),
      (await one.tables()).length,
    ];
    const before = await state();
    for (const command of ["messages list", "topics list", "groups list", "rules list", "doctor", "migrate status"]) {
      expect([command, (await makegood(cwd, command.split(" "), one.env)).code]).toEqual([command, 0]);
    }
    expect(await state()).toEqual(before);
    expect((await makegoodHere(cwd, ["--init", "messages", "list"], one.env)).code).toBe(0);
    expect((await one.tables()).length).toBeGreaterThan(before[2] as number);
  });

  it("C3: an empty Redis stays empty", async () => {
    const redis = await startRedis();
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url };
    const port = await connectRedis(redis.url);
    try {
      const told = await terminal(["messages", "list"], { env });
      expect([told.code, told.stdout, told.stderr]).toEqual([
        1,
        "",
        expect.stringMatching(/has not been set up.*makegood serve/),
      ]);
      expect(Number(await port.send(null, ["DBSIZE"]))).toBe(0);
      expect((await terminal(["topics", "set", "a/b", "--kind", "notify"], { env })).code).toBe(0);
      const before = Number(await port.send(null, ["DBSIZE"]));
      expect((await terminal(["messages", "list"], { env })).code).toBe(0);
      expect(Number(await port.send(null, ["DBSIZE"]))).toBe(before);
    } finally {
      await port.close();
      await redis.stop();
    }
  });

  it("C3: with nothing configured no server is made in this folder, and it says what to set", async () => {
    const cwd = await workspace();
    for (const command of ["messages list", "migrate status", "topics show a/b"]) {
      const told = await makegood(cwd, command.split(" "));
      expect([command, told.code, told.stdout]).toEqual([command, 2, ""]);
      for (const word of ["MAKEGOOD_URL", "DATABASE_URL", "MAKEGOOD_DATA_DIR", "--init"]) expect(told.stderr).toContain(word);
    }
    const doctor = await makegood(cwd, ["doctor"]);
    expect([doctor.code, doctor.stdout]).toEqual([0, expect.stringMatching(/warn +store +there is no store to ask/)]);
    expect(await readdir(cwd)).toEqual([]);
  });

  it("C3: a config file of this folder is not executed by a command that asks a server, unless it is named", async () => {
    const cwd = await workspace();
    const server = await startTestServer();
    const mark = join(cwd, "executed");
    await writeFile(
      join(cwd, "makegood.config.mjs"),
      `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark)}, "");\nexport default {};\n`,
    );
    try {
      expect((await makegood(cwd, ["messages", "list"], { MAKEGOOD_URL: server.url })).code).toBe(0);
      expect(existsSync(mark)).toBe(false);
      const named = ["--config", "makegood.config.mjs", "messages", "list"];
      expect((await makegood(cwd, named, { MAKEGOOD_URL: server.url })).code).toBe(0);
      expect(existsSync(mark)).toBe(true);
    } finally {
      await server.close();
    }
  });
});

describe("C4: groups and candidates", () => {
  let scene: RecoveryServer;
  beforeAll(async () => {
    scene = await startRecoveryServer();
  });
  afterAll(() => scene.close());
  const words = (text: string, answers: readonly string[] | null = null) =>
    terminal(text.split(" "), { env: { MAKEGOOD_URL: scene.server.url, MAKEGOOD_TOKEN: TOKENS.alice }, answers });

  it("C4: each command says which id it takes", async () => {
    for (const [command, takes] of [
      ["groups show", "<group>"],
      ["groups occurrences", "<group>"],
      ["suggest", "<group>"],
      ["candidates show", "<candidate>"],
      ["approve", "<candidate>"],
      ["reject", "<candidate>"],
      ["execute", "[candidate]"],
    ] as const) {
      expect((await words(`${command} --help`)).stdout).toContain(`Usage: makegood ${command} [options] ${takes}`);
    }
    expect(await words("execute")).toMatchObject({ code: 2, stderr: expect.stringContaining("--group") });
    const uuid = await words("execute 018f0000-0000-7000-8000-000000000000 --yes");
    expect([uuid.code, uuid.stderr]).toEqual([2, expect.stringContaining("id of a candidate is a number")]);
  });

  it("C4: execute --group runs that group's current candidate after showing it; a group's number alone touches nothing", async () => {
    // The first groups and candidates count alike: only from here on the numbers of one kind are not those of the other.
    const { group: first } = await scene.deadGroup("cli/c4-a", 1);
    await scene.as("alice", "POST", `/api/v1/recovery/candidates/${String(first.group_id)}/reject`, {});
    const { group, candidate } = await scene.deadGroup("cli/c4-b", 2);
    const path = `/api/v1/recovery/candidates/${candidate.candidate_id}`;
    await scene.as("alice", "PATCH", path, { selected_action: "retry_exponential" });
    const no = await words(`execute --group ${group.group_id}`, ["n"]);
    expect(no.stdout).toMatch(
      new RegExp(`candidate ${candidate.candidate_id} of group ${group.group_id}: .* in cli/c4-b\\n.*touches 2 messages`),
    );
    expect([no.code, no.asked]).toEqual([2, ["Run retry_exponential on 2 messages? [y/N] "]]);
    expect(await words(`execute --group ${group.group_id}`)).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
    expect(await scene.candidate(candidate.candidate_id)).toMatchObject({ execution_status: "pending" });
    scene.receiver.status = 200;
    const yes = await words(`execute --group ${group.group_id} --yes --canary 0 --rate 1000 --wait`);
    expect([yes.code, yes.stdout]).toEqual([0, expect.stringContaining("2 of 2 messages healed")]);
    expect(await words("execute --group 999999 --yes")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("group_not_found"),
    });
    const shown = await words("execute 999999 --yes");
    expect(shown.stderr).toMatch(/999999 is the number of a candidate.*--group/);
  });
});

describe("C7: what is said", () => {
  it("C7: a program that exits does not say that it tries again, and names the remedy", async () => {
    const cwd = await workspace();
    const told = await makegood(cwd, ["messages", "list"], { DATABASE_URL: "postgres://127.0.0.1:1/none" });
    expect([told.code, told.stdout]).toEqual([1, ""]);
    expect(told.stderr).not.toContain("tried again");
    expect(told.stderr).toMatch(/DATABASE_URL.*makegood doctor/);
    const gone = await makegood(cwd, ["messages", "list"], { MAKEGOOD_URL: "http://127.0.0.1:1" });
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringMatching(/cannot reach .*makegood serve.*MAKEGOOD_URL/)]);
  });

  it("C7: refusals name the option, the topic's form, the token and what to do, once", async () => {
    const server = await startTestServer({ MAKEGOOD_TOKENS: "alice:alice-secret-0123456789" });
    const env = { MAKEGOOD_URL: server.url };
    try {
      const told = async (text: string) =>
        (await terminal(text.split(" "), { env: { ...env, MAKEGOOD_TOKEN: "alice-secret-0123456789" } })).stderr;
      expect(await told("messages list --limit 0")).toMatch(
        /'--limit <n>' argument '0' is invalid. It must be an integer from 1 to/,
      );
      expect((await told("messages list --limit 0")).match(/limit/g)).toHaveLength(1);
      expect(await told("topics show a")).toMatch(/namespace\/name, such as billing\/finalize/);
      expect((await terminal(["messages", "list"], { env })).stderr).toContain("MAKEGOOD_TOKEN");
      const wrong = await told("topics set a/b --kind carrier-pigeon");
      expect(wrong.match(/sink\.kind/g)).toHaveLength(1);
    } finally {
      await server.close();
    }
  });

  it("C7: nobody_delivers names its remedy", async () => {
    const schema = freshSchema();
    const store = await openStore({ schema });
    const mg = await createMakegood({
      store,
      topics: [
        topic("c7/function", {
          retry: { attemptsMax: 1 },
          sink: () => {
            throw new Error("no");
          },
        }),
      ],
    });
    try {
      await mg.enqueue("c7/function", { n: 1 });
      await using _worker = mg.work();
      await vi.waitFor(
        async () => expect((await mg.store.list({ topic: "c7/function", limit: 1 })).data).toMatchObject([{ status: "dead" }]),
        20_000,
      );
      const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
      const start = ["redrive", "start", "--topic", "c7/function", "--reason", "x", "--yes"];
      const refused = await terminal(start, { env });
      expect([refused.code, refused.stderr]).toEqual([4, expect.stringMatching(/--elsewhere\).*\(nobody_delivers\)/)]);
      expect(await terminal([...start, "--elsewhere"], { env })).toMatchObject({ code: 0, stderr: "" });
    } finally {
      await mg.close();
      await dropSchema(schema);
    }
  });

  it("C7: tables fit the terminal with whole ids, a pipe gets full values, and colours follow NO_COLOR", async () => {
    const server = await startTestServer();
    const env = { MAKEGOOD_URL: server.url };
    const run = (text: string, more = {}) => terminal(text.split(" "), { env, ...more });
    const name = "namespace-that-is-long/name-that-is-even-longer";
    const key = `key-${"x".repeat(100)}`;
    try {
      await run(`topics set ${name} --kind http --url https://receiver.example/${"path/".repeat(20)}`);
      await run(`topics pause ${name}`);
      const { id } = JSON.parse((await run(`enqueue ${name} --payload 1 --key ${key} --json`)).stdout) as { id: string };
      for (const width of [40, 60, 80, 100, 170]) {
        for (const command of ["messages list", "topics list", "rules list", "actions"]) {
          const { stdout } = await run(command, { answers: [], width });
          const most = command === "topics list" ? Math.max(width, name.length) : width;
          expect(stdout.split("\n").filter((line) => line.length > most)).toEqual([]);
        }
        expect((await run("messages list", { answers: [], width })).stdout).toContain(id);
      }
      const piped = await run("messages list");
      expect(piped.stdout).toMatch(new RegExp(`${id} +${name} +pending \\(topic_paused\\) +0 +\\d{4}-.*Z +${key}`));
      const colored = await run("messages list", { answers: [], color: true });
      expect(colored.stdout).toContain("\u001b[33mpending");
      expect((await run("messages list", { answers: [] })).stdout).not.toContain("\u001b");
    } finally {
      await server.close();
    }
  });

  it("C7: our own topics are hidden unless asked for, and how many is said; their dead letters are not", async () => {
    await using one = database();
    const cwd = await workspace();
    await mkdir(join(cwd, "empty"));
    const run = (text: string) => terminal(text.split(" "), { env: one.env, cwd });
    await run("topics set mine/one --kind notify");
    const listed = await run("topics list");
    expect(listed.stdout).toMatch(/mine\/one/);
    expect(listed.stdout).not.toMatch(/audit\//);
    expect(listed.stdout).toMatch(/7 of Makegood's own topics are hidden: --all shows them/);
    expect((await run("topics list --all")).stdout).toMatch(/audit\/orchestration/);
    expect((JSON.parse((await run("topics list --json")).stdout) as { data: unknown[] }).data).toHaveLength(8);
  });
});

describe("by key", () => {
  it("a pending message is cancelled or moved by id or key, and its payload is printed byte for byte", async () => {
    const server = await startTestServer();
    const env = { MAKEGOOD_URL: server.url };
    const run = (...args: string[]) => terminal(args, { env });
    const payload = '{"n":18446744073709551616,"a":1,"a":2,"e":1e400}';
    try {
      await run("topics", "set", "key/one", "--kind", "notify");
      await run("topics", "pause", "key/one");
      const { id } = JSON.parse((await run("enqueue", "key/one", "--payload", payload, "--key", "k", "--json")).stdout) as {
        id: string;
      };
      expect(await run("messages", "payload", id)).toMatchObject({ code: 0, stdout: payload });
      const by = ["--topic", "key/one", "--key", "k", "--reason", "x"];
      expect(await run("messages", "reschedule", ...by, "--delay-ms", "3600000")).toMatchObject({
        code: 0,
        stdout: `${id} is now pending\n`,
      });
      expect(await run("messages", "cancel", "--reason", "x")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--key"),
      });
      expect(await run("messages", "cancel", ...by)).toMatchObject({ code: 0, stdout: `${id} is now dead (discarded)\n` });
      expect(await run("messages", "cancel", id, "--reason", "x")).toMatchObject({ code: 4 });
      const none = await run("messages", "cancel", "--topic", "key/one", "--key", "other", "--reason", "x");
      expect(none).toMatchObject({ code: 3, stderr: expect.stringContaining("key/one") });
    } finally {
      await server.close();
    }
  });
});
