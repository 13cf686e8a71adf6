/**
 * `serve` and `work` as processes: what they print, how they stop, and how they refuse to start.
 */

import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { makegood, removeWorkspaces, running, workspace } from "./support.ts";

const TIMEOUT = 120_000;

afterAll(removeWorkspaces);

describe("serve", () => {
  it(
    "logs one JSON object a line, tells its address and a first message, and drains on SIGTERM",
    async () => {
      const cwd = await workspace();
      await writeFile(
        join(cwd, "makegood.config.json"),
        JSON.stringify({ topics: { "from/file": { sink: { kind: "notify" } } } }),
      );
      const server = await running(cwd, ["serve"], { MAKEGOOD_PORT: "0" });
      const listening = JSON.parse(await server.line(/"listening"/)) as { url: string; first_message: string[] };
      expect(listening.first_message.join("\n")).toContain(`curl -X POST ${listening.url}/api/v1/messages`);
      expect(await server.line(/"starting"/)).toContain('"sink_allow":["127.0.0.0/8","::1/128"]');
      const send = (path: string, method: string, body: unknown) =>
        fetch(listening.url + path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
      expect((await send("/api/v1/topics/from/file", "PUT", { sink: { kind: "notify" } })).status).toBe(409);
      expect((await send("/api/v1/messages", "POST", { topic: "from/file", payload: { text: "hello\u001b[31m" } })).status).toBe(
        201,
      );
      await server.line(/notify from\/file/);

      const second = await makegood(cwd, ["serve"], { MAKEGOOD_PORT: new URL(listening.url).port });
      expect(second.code).toBe(1);
      expect(second.stderr.trim().split("\n")).toEqual([expect.stringMatching(/^makegood: port \d+ on 127\.0\.0\.1 is in use/)]);

      expect(await server.stop()).toBe(0);
      for (const line of server.output.stdout.trim().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
      expect(server.output.stdout).not.toContain("\u001b");
      expect(server.output.stderr).toBe("");
    },
    TIMEOUT,
  );

  it(
    "greets a person in text, and a second signal ends it at once",
    async () => {
      const cwd = await workspace({ prepared: true });
      const stuck = createServer(() => {}).listen(0, "127.0.0.1");
      const asked = once(stuck, "request");
      const server = await running(cwd, ["serve"], { MAKEGOOD_PORT: "0", MAKEGOOD_LOG: "text", MAKEGOOD_POLL_MS: "50" });
      const url = (await server.line(/^Makegood .* listens on /)).replace(/.* /, "");
      await server.line(/curl -X PUT/);
      const send = (path: string, method: string, body: unknown) =>
        fetch(url + path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
      const sink = { kind: "http", url: `http://127.0.0.1:${(stuck.address() as AddressInfo).port}/`, timeout_ms: 20_000 };
      await send("/api/v1/topics/stuck/sink", "PUT", { sink });
      await send("/api/v1/messages", "POST", { topic: "stuck/sink", payload: 1 });
      await asked;
      server.child.kill("SIGTERM");
      await server.line(/a signal asks to stop/);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(server.child.exitCode).toBeNull();
      expect(await server.stop("SIGTERM")).toBe(143);
      stuck.closeAllConnections();
      stuck.close();
      // Ended at once, it left its database running: the next process takes it over and stops it.
      expect((await makegood(cwd, ["migrate", "status"])).code).toBe(0);
    },
    TIMEOUT,
  );

  it("refuses to start with every reason, exit code 2 (fault 48, attack 12)", async () => {
    const cwd = await workspace();
    const topics = {
      "a/b": { sink: { kind: "http", url: "http://x.example/", timeout_ms: 99_000 } },
      "c/d": { sink: { kind: "webhook", url: "http://x.example/" } },
    };
    await writeFile(join(cwd, "makegood.config.json"), JSON.stringify({ topics, nonsense: 1 }));
    const env = { MAKEGOOD_HOST: "0.0.0.0", MAKEGOOD_PORT: "-1", MAKEGOOD_CONCURENCY: "5" };
    const refused = await makegood(cwd, ["serve"], env);
    expect(refused.code).toBe(2);
    expect(refused.stdout).toBe("");
    for (const word of [
      "MAKEGOOD_TOKENS",
      "MAKEGOOD_PORT",
      "did you mean MAKEGOOD_CONCURRENCY?",
      "a/b",
      "c/d",
      "nonsense",
      "6 mistakes",
    ]) {
      expect(refused.stderr).toContain(word);
    }
  });
});

describe("work", () => {
  it(
    "delivers what others enqueue, only its topics, and stops with exit code 0",
    async () => {
      const cwd = await workspace({ prepared: true });
      const worker = await running(cwd, ["work", "--topics", "mine/*"], { MAKEGOOD_POLL_MS: "100" });
      await worker.line(/"working"/);
      for (const topic of ["mine/one", "yours/one"]) {
        expect((await makegood(cwd, ["topics", "set", topic, "--kind", "notify"])).code).toBe(0);
        expect((await makegood(cwd, ["enqueue", topic, "--payload", '{"text":"hello"}'])).code).toBe(0);
      }
      await worker.line(/notify mine\/one/);
      const left = await makegood(cwd, ["messages", "list", "--status", "pending", "--json"]);
      expect((JSON.parse(left.stdout) as { data: { topic: string }[] }).data.map(({ topic }) => topic)).toEqual(["yours/one"]);
      expect(await worker.stop("SIGINT")).toBe(0);
    },
    TIMEOUT,
  );

  it(
    "REC-55: --once delivers what is due and ends, as a timer would have it",
    async () => {
      const cwd = await workspace();
      const schema = freshSchema();
      const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
      await writeFile(
        join(cwd, "makegood.config.json"),
        JSON.stringify({ topics: { "mine/one": { sink: { kind: "notify" } }, "yours/one": { sink: { kind: "notify" } } } }),
      );
      const once = (...more: string[]) =>
        makegood(cwd, ["work", "--once", "--topics", "mine/*", "--batch-size", "1", ...more], env);
      try {
        expect([(await once()).stdout, (await once()).code]).toEqual([
          expect.stringContaining("0 attempts: 0 delivered, 0 dead"),
          0,
        ]);
        await withClient(async (client) => {
          for (const [topic, delayMs] of [
            ["mine/one", 0],
            ["mine/one", 0],
            ["mine/one", 3_600_000],
            ["yours/one", 0],
          ] as const)
            await client.query(`select "${schema}".enqueue($1, '{}', delay_ms => $2)`, [topic, delayMs]);
        });
        const { code, stdout } = await once("--json");
        expect([code, JSON.parse(stdout.trim().split("\n").at(-1) as string)]).toEqual([
          0,
          { attempts: 2, delivered: 2, dead: 0 },
        ]);
      } finally {
        await dropSchema(schema);
      }
    },
    TIMEOUT,
  );
});
