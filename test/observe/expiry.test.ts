/**
 * When the certificate of a receiver ends: learned by a real server from a real https receiver, exported by topic, and told by doctor.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { findTool } from "../support/find-tool.mjs";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startCli, until, workspace } from "../support/processes.ts";
import { scrape } from "./scrape.ts";

const schema = freshSchema();
afterAll(() => dropSchema(schema));

it("of a receiver that was connected to, by topic; of one that was not, nothing; doctor names it two weeks before", {
  timeout: 60_000,
}, async () => {
  const openssl = await findTool({
    files: ["openssl"],
    packages: ["openssl"],
    need: "certificates of receivers are made with it",
  });
  const folder = await workspace();
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const made = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-keyout",
    key,
    "-out",
    cert,
    "-days",
    "10",
    "-subj",
    "/CN=receiver",
  ];
  execFileSync(openssl, [...made, "-addext", "subjectAltName=IP:127.0.0.1"], { stdio: "pipe" });
  const receiver = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => response.end("ok"));
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  const receiverUrl = `https://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

  const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_POLL_MS: "50", NODE_EXTRA_CA_CERTS: cert };
  const server = await startCli(["serve", "--port", "0"], env);
  const url = String((await server.fact(({ message }) => message === "listening")).url);
  const send = async (method: string, path: string, body: unknown): Promise<void> => {
    const answer = await fetch(url + path, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect([path, answer.ok]).toEqual([path, true]);
  };
  for (const [topic, to] of [
    ["shop/safe", receiverUrl],
    ["shop/never", `https://127.0.0.1:${await freePort()}/`],
  ] as const)
    await send("PUT", `/api/v1/topics/${topic}`, { sink: { kind: "http", url: to } });
  await send("POST", "/api/v1/messages", { topic: "shop/safe", payload: {} });

  const name = "makegood_certificate_expires_timestamp_seconds";
  await until("its end is known", async () => (await scrape(url)).value(name, '{topic="shop/safe"}') !== undefined);
  const found = await scrape(url);
  const ends = execFileSync(openssl, ["x509", "-in", cert, "-noout", "-enddate"], { encoding: "utf8" })
    .trim()
    .replace("notAfter=", "");
  expect(found.value(name, '{topic="shop/safe"}')).toBe(Date.parse(ends) / 1_000);
  expect(found.value(name, '{topic="shop/never"}')).toBeUndefined();

  const doctor = await startCli(["doctor", "--json", "--sinks"], env);
  await doctor.ended;
  const { checks } = JSON.parse(doctor.facts.map((fact) => fact.line ?? JSON.stringify(fact)).join("\n")) as {
    checks: { name: string; status: string; detail: string }[];
  };
  const told = checks.filter((check) => check.name === "receivers").map(({ status, detail }) => `${status} ${detail}`);
  expect(told).toHaveLength(2);
  expect(told.join("\n")).toMatch(/warn https:\/\/127.0.0.1:\d+ \(shop\/safe\): its certificate expires at /);
  await server.end("SIGTERM");
  receiver.closeAllConnections();
  receiver.close();
});
