/** Fault 32, TLS: certificates made by openssl on the spot. A certificate that does not verify is never accepted. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { certificateOf } from "../../src/sink/address-guard.ts";
import { httpSink } from "../../src/sink/http.ts";
import { findTool } from "../support/find-tool.mjs";
import { listen, loopbackGuard, send } from "./receiver.ts";

const CONFIG = `
[ca]
default_ca = here
[here]
new_certs_dir = .
database = index.txt
serial = serial
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
`;

describe("fault 32: TLS", () => {
  let dir: string;
  let program: string;
  const openssl = (...args: string[]) => execFileSync(program, args, { cwd: dir, stdio: "pipe" });
  const read = (name: string) => readFileSync(join(dir, name));

  beforeAll(async () => {
    program = await findTool({ files: ["openssl"], packages: ["openssl"], need: "the tests of TLS make certificates with it" });
    dir = mkdtempSync(join(tmpdir(), "makegood-tls-"));
    writeFileSync(join(dir, "ca.conf"), CONFIG);
    writeFileSync(join(dir, "index.txt"), "");
    writeFileSync(join(dir, "serial"), "01");
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test ca");
    const name = ["-subj", "/CN=receiver", "-addext", "subjectAltName=IP:127.0.0.1"];
    openssl("req", ...key, "-keyout", "key.pem", "-out", "csr.pem", ...name);
    openssl(
      "req",
      ...key,
      "-keyout",
      "other.key",
      "-out",
      "other.csr",
      "-subj",
      "/CN=x",
      "-addext",
      "subjectAltName=DNS:other.example",
    );
    const sign = (csr: string, out: string, start: string, end: string) =>
      openssl(
        "ca",
        "-batch",
        "-notext",
        "-config",
        "ca.conf",
        "-cert",
        "ca.pem",
        "-keyfile",
        "ca.key",
        "-in",
        csr,
        "-out",
        out,
        "-startdate",
        start,
        "-enddate",
        end,
      );
    sign("csr.pem", "good.pem", "20200101000000Z", "20991231000000Z");
    sign("other.csr", "other.pem", "20200101000000Z", "20991231000000Z");
    writeFileSync(join(dir, "index.txt"), "");
    sign("csr.pem", "expired.pem", "20200101000000Z", "20200102000000Z");
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  async function deliverTo(cert: string, key: string, ca: string | null) {
    let served = 0;
    const server = createServer({ cert: read(cert), key: read(key) }, (_request, response) => {
      served++;
      response.end("ok");
    });
    const receiver = await listen(server, "https");
    const sink = httpSink({ url: receiver.url, tls: ca === null ? undefined : { ca: read(ca) } }, { guard: loopbackGuard });
    const { outcome } = await send(sink);
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
    return { outcome, served, url: receiver.url };
  }

  it("delivers where the certificate verifies", async () => {
    const { url, ...rest } = await deliverTo("good.pem", "key.pem", "ca.pem");
    expect(rest).toEqual({ outcome: { kind: "delivered" }, served: 1 });
    expect(certificateOf(loopbackGuard, url)).toBe(Date.UTC(2099, 11, 31));
    // Another port is another receiver, and what is no URL has none.
    expect([`https://127.0.0.1:1/`, "nowhere"].map((other) => certificateOf(loopbackGuard, other))).toEqual([null, null]);
  });

  it.each([
    ["expired", "expired.pem", "key.pem", "ca.pem", /expired/],
    ["of an unknown authority", "good.pem", "key.pem", null, /certificate/],
    ["self-signed", "ca.pem", "ca.key", null, /self-signed/],
    ["for another host", "other.pem", "other.key", "ca.pem", /IP/],
  ])("a certificate that is %s: retried with an alert, nothing sent", async (_name, cert, key, ca, why) => {
    const { outcome, served, url } = await deliverTo(cert, key, ca);
    expect(certificateOf(loopbackGuard, url), "what did not verify is not believed").toBeNull();
    expect(outcome).toMatchObject({ kind: "retry", code: "tls", alert: true, error: expect.stringMatching(why) });
    expect(served).toBe(0);
  });
});
