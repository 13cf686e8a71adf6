/**
 * When certificates end: of a real https receiver and of a PostgreSQL with TLS, learned by a real server as it connects, exported, and told
 * by doctor.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, chown, copyFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findTool } from "../support/find-tool.mjs";
import { freePort } from "../support/free-port.ts";
import { ownPostgres } from "../support/own-postgres.ts";
import { startCli, until, workspace } from "../support/processes.ts";
import { scrape } from "./scrape.ts";

const DAYS = 10;

/** For 127.0.0.1, its own authority. */
async function certificate() {
  const openssl = await findTool({ files: ["openssl"], packages: ["openssl"], need: "certificates are made with it" });
  const folder = await workspace();
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const named = ["-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1", "-days", String(DAYS)];
  execFileSync(openssl, ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...named], {
    stdio: "pipe",
  });
  const [, ends = ""] = execFileSync(openssl, ["x509", "-in", cert, "-noout", "-enddate"], { encoding: "utf8" }).split("=");
  return { folder, key, cert, endsMs: Date.parse(ends) };
}

/** Without a restart: the server reads both again when it is told to. */
async function postgresWithTls({ folder, key, cert }: Awaited<ReturnType<typeof certificate>>): Promise<string> {
  const server = await ownPostgres();
  const own = join(folder, "server.key");
  await copyFile(key, own);
  await chmod(own, 0o600);
  await chown(own, server.user.uid ?? process.getuid?.() ?? 0, server.user.gid ?? process.getgid?.() ?? 0);
  for (const [name, value] of Object.entries({ ssl_cert_file: cert, ssl_key_file: own, ssl: "on" }))
    await server.sql(`alter system set ${name} = '${value}'`);
  await server.sql("select pg_reload_conf()");
  await until("it speaks TLS", async () => (await server.sql("show ssl"))[0]?.ssl === "on");
  return `${server.url}?sslmode=verify-full`;
}

it("of a receiver that was connected to, by topic, and of the store; doctor names both two weeks before", async () => {
  const made = await certificate();
  const receiver = createServer({ key: readFileSync(made.key), cert: readFileSync(made.cert) }, (_request, response) =>
    response.end("ok"),
  );
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  const env = { DATABASE_URL: await postgresWithTls(made), MAKEGOOD_POLL_MS: "50", NODE_EXTRA_CA_CERTS: made.cert };
  const server = await startCli(["serve", "--port", "0"], env);
  const url = String((await server.fact(({ message }) => message === "listening")).url);
  const send = async (method: string, path: string, body: unknown): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
    expect([path, answer.ok]).toEqual([path, true]);
  };
  const topics = { "shop/safe": (receiver.address() as AddressInfo).port, "shop/never": await freePort() };
  for (const [topic, port] of Object.entries(topics))
    await send("PUT", `/api/v1/topics/${topic}`, { sink: { kind: "http", url: `https://127.0.0.1:${port}/` } });
  await send("POST", "/api/v1/messages", { topic: "shop/safe", payload: {} });

  const name = "makegood_certificate_expires_timestamp_seconds";
  await until("its end is known", async () => (await scrape(url)).value(name, '{topic="shop/safe"}') !== undefined);
  const found = await scrape(url);
  expect(found.value(name, '{topic="shop/safe"}')).toBe(made.endsMs / 1_000);
  expect(found.value(name, '{topic="shop/never"}')).toBeUndefined();
  expect(found.value("makegood_store_certificate_expires_timestamp_seconds")).toBe(made.endsMs / 1_000);

  const doctor = await startCli(["doctor", "--json", "--sinks"], env);
  await doctor.ended;
  const told = doctor.facts.map((fact) => fact.line ?? JSON.stringify(fact)).join("\n");
  const { checks } = JSON.parse(told) as { checks: { name: string; status: string; detail: string }[] };
  const said = (check: string) => checks.filter(({ name }) => name === check).map(({ status, detail }) => `${status} ${detail}`);
  expect(said("certificate")).toEqual([`warn the certificate of PostgreSQL expires at ${new Date(made.endsMs).toISOString()}`]);
  expect(said("receivers")).toHaveLength(2);
  expect(said("receivers").join("\n")).toMatch(/warn https:\/\/127.0.0.1:\d+ \(shop\/safe\): its certificate expires at /);
  await server.end("SIGTERM");
  receiver.closeAllConnections();
  receiver.close();
}, 60_000);
