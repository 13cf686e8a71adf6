/**
 * The shipped redis-durable.conf on real servers, a primary and its replica, with the users and the certificate that make-secrets.sh makes:
 * durable by our own strict check, closed to those without a password, TLS only, and enough for a store.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makegood, removeWorkspaces, running, workspace } from "../cli/support.ts";
import { freePort } from "../support/free-port.ts";
import { type Process, startShell, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { findRedis } from "../support/redis-server.ts";
import { DEPLOY } from "./kustomized.ts";

const run = promisify(execFile);
let folder = "";
let port = 0;
let primary: Process;
let password = "";
let cwd = "";
let env: Record<string, string> = {};

const text = async (name: string) => (await readFile(join(folder, name), "utf8")).trim();

/** The shipped file; only its places are others. */
async function start(name: string, more: readonly string[]): Promise<Process> {
  const data = join(folder, name);
  await mkdir(data);
  const shipped = await readFile(join(DEPLOY, "redis", "redis-durable.conf"), "utf8");
  const placed = shipped.replaceAll("/etc/redis/tls/", `${folder}/`).replaceAll("/etc/redis/", `${folder}/`);
  await writeFile(join(folder, `${name}.conf`), placed.replaceAll("/var/lib/redis", data));
  return startShell('exec "$0" "$@"', [await findRedis(), join(folder, `${name}.conf`), ...more]);
}

/** What Redis answers the user `makegood`, or without `as` a client that does not say who it is. */
async function asked(
  args: readonly string[],
  as: readonly string[] = ["--user", "makegood", "--pass", password],
): Promise<string> {
  const to = ["--tls", "--cacert", join(folder, "ca.crt"), "-h", "localhost", "-p", String(port), "--no-auth-warning"];
  return (await run("redis-cli", [...to, ...as, ...args])).stdout.trim();
}

/** What `makegood check-redis --strict` says. */
const strict = (url = env.REDIS_URL ?? "") => makegood(cwd, ["check-redis", "--strict", "--json"], { ...env, REDIS_URL: url });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "makegood-redis-conf-"));
  await run(join(DEPLOY, "make-secrets.sh"), [folder]);
  cwd = await workspace();
  port = await freePort();
  // A primary waits five seconds for a second replica before it sends.
  primary = await start("primary", ["--tls-port", String(port), "--repl-diskless-sync-delay", "0"]);
  password = await text("redis_password");
  const url = `rediss://makegood:${password}@localhost:${port}`;
  env = { REDIS_URL: url, NODE_EXTRA_CA_CERTS: join(folder, "ca.crt") };
  await until("the primary answers", async () => (await asked(["ping"]).catch(() => "")) === "PONG");
}, 60_000);
afterAll(async () => {
  await removeWorkspaces();
  await rm(folder, { recursive: true, force: true });
});

describe("redis-durable.conf", () => {
  it("REC-43: --strict finds one thing, that there is no replica; with one it passes", async () => {
    const alone = await strict();
    const failed = (stdout: string): string[] =>
      JSON.parse(stdout).nodes.flatMap((node: { findings: { name: string; verdict: string }[] }) =>
        node.findings.filter(({ verdict }) => verdict !== "verified").map(({ name }) => name),
      );
    expect([alone.code, failed(alone.stdout)]).toEqual([1, ["replication"]]);
    const of = [
      "--replicaof",
      "localhost",
      String(port),
      "--masteruser",
      "replica",
      "--masterauth",
      await text("replica_password"),
    ];
    await start("replica", ["--tls-port", String(await freePort()), ...of]);
    await until("the replica follows", async () => (await asked(["info", "replication"])).includes("state=online"));
    const followed = await strict();
    expect([followed.code, JSON.parse(followed.stdout)]).toMatchObject([0, { status: "ok", survives: "process-crash" }]);
  }, 60_000);

  it("DR-45: it is closed: no password, no plain text, no other address, no administration", async () => {
    const stranger = await strict(`rediss://localhost:${port}`);
    expect([stranger.code, stranger.stderr]).toEqual([2, expect.stringMatching(/NOAUTH/)]);
    expect(await asked(["ping"], [])).toMatch(/^NOAUTH/);
    expect(await asked(["config", "get", "save"])).toBe("save\n900 1 300 10");
    expect(await asked(["config", "get", "maxmemory"])).toBe("maxmemory\n2147483648");
    expect(await asked(["config", "set", "appendonly", "no"])).toMatch(/^NOPERM/);
    expect(await asked(["flushall"])).toMatch(/^NOPERM/);
    // Listens on loopback alone: every socket of the process is one of it.
    const { stdout } = await run("sh", [
      "-c",
      `cat /proc/${primary.pid}/net/tcp | grep -i ":${port.toString(16).padStart(4, "0")} 00000000:0000 0A"`,
    ]);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.trim().split(/\s+/)[1]?.slice(0, 8)),
    ).toEqual(["0100007F"]);
    await expect(plain(port)).resolves.toBe(true);
  }, 60_000);

  it("the user of its ACL may do all that a store does, and serve takes it for one", async () => {
    const receiver = await startReceiver();
    const server = await running(cwd, ["serve"], { ...env, MAKEGOOD_STORE: "redis", MAKEGOOD_PORT: "0", MAKEGOOD_LOG: "json" });
    const { url } = JSON.parse(await server.line(/"listening"/)) as { url: string };
    const put = (path: string, method: string, body: unknown) =>
      fetch(`${url}${path}`, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    const topic = { sink: { kind: "http", url: receiver.url } };
    expect((await put("/api/v1/topics/deploy/acl", "PUT", topic)).status).toBeLessThan(300);
    const made = (await (await put("/api/v1/messages", "POST", { topic: "deploy/acl", key: "one", payload: 1 })).json()) as {
      id: string;
    };
    await until("it is delivered", async () => {
      const one = (await (await fetch(`${url}/api/v1/messages/${made.id}`)).json()) as { status: string };
      return one.status === "delivered";
    });
    expect(server.output.stdout).not.toMatch(/NOPERM/);
    expect(await server.stop()).toBe(0);
  }, 60_000);

  it("make-secrets.sh keeps what it made, and keeps it to itself", async () => {
    const before = await text("users.acl");
    expect((await stat(folder)).mode & 0o077).toBe(0);
    await run(join(DEPLOY, "make-secrets.sh"), [folder]);
    expect(await text("users.acl")).toBe(before);
    expect(before).not.toContain(await text("redis_password"));
  });
});

/** Whether a connection without TLS is ended without an answer. */
function plain(to: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(to, "127.0.0.1", () => socket.write("PING\r\n"));
    let answered = "";
    socket.on("data", (data) => {
      answered += String(data);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(!answered.includes("PONG")));
  });
}
