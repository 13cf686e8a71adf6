/**
 * Fault 47 and attacks 22 and 23: every hostile payload is delivered and read back byte for byte, or refused with a 4xx at
 * the edge; no body, however large, deep, slow or compressed, harms the server.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { rawExchange, STORES, startTestServer, type TestServer } from "./support.ts";

let server: TestServer;
let receiver: Server;
const received = new Map<string, Buffer>();

describe.each(STORES)("on the $name store", ({ make }) => {
  let drop: () => Promise<void>;

  beforeAll(async () => {
    receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        received.set(String(request.headers["idempotency-key"]), Buffer.concat(chunks));
        response.writeHead(204).end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const made = await make();
    drop = made.drop;
    server = await startTestServer(
      { MAKEGOOD_POLL_MS: "20" },
      { headersTimeoutMs: 300, requestTimeoutMs: 600, store: made.store },
    );
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const put = await server.send("PUT", "/api/v1/topics/zoo/cage", { sink: { kind: "http", url } });
    expect(put.status).toBe(201);
  });
  afterAll(async () => {
    await server.close({ drainMs: 100 });
    await drop();
    receiver.close();
    receiver.closeAllConnections();
  });

  const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
    server.api("/api/v1/messages", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: body as string,
    });

  const depth = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const text = (bytes: number): string => `"${"x".repeat(bytes - 2)}"`;

  describe("delivered byte for byte", () => {
    it.each<[string, string]>([
      ["NUL as an escape", '"a\\u0000b"'],
      ["a lone surrogate as an escape", '{"s":"\\ud800"}'],
      ["2^64", "18446744073709551616"],
      ["an integer beyond 2^53", '{"id":9007199254740993}'],
      ["1e400", '{"n":1e400,"m":-1E-400}'],
      ["duplicate keys", '{"a":1,"a":2,"\\u0061":3}'],
      ["__proto__ and constructor", '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'],
      ["inner whitespace", '{ "a" :\r\n\t[ 1 ,  2 ] }'],
      ["escapes spelled out", '"\\/\\u00e9\\n\\"\\\\"'],
      ["an empty string", '""'],
      ["an empty object", "{}"],
      ["null", "null"],
      ["false", "false"],
      ["a negative zero with an exponent", "-0.0e-0"],
      ["characters of four bytes, and separators", '"\u{1f600}\u2028\u2029\u007f\u009b"'],
      ["escape sequences of a terminal", '"\\u001b[31mred\\u0007"'],
      ["the depth limit", depth(200)],
      ["the size limit", text(1_048_576)],
    ])("%s", async (name, payload) => {
      const key = encodeURIComponent(name).replaceAll("%", "_").slice(0, 200);
      const answer = await post(`{"topic":"zoo/cage","key":"${key}","payload": ${payload} }`);
      expect(answer.status).toBe(201);
      const { id } = (await answer.json()) as { id: string };
      const shown = await (await server.api(`/api/v1/messages/${id}`)).text();
      // Compared as booleans: a mebibyte in a failure's message helps nobody.
      expect(shown.endsWith(`"payload":${payload}}`)).toBe(true);
      await vi.waitFor(() => expect(received.get(key)?.equals(Buffer.from(payload))).toBe(true), { timeout: 15_000 });
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });

    it("lists all of them with their payloads as one JSON text", async () => {
      const page = await (await server.api("/api/v1/messages?topic=zoo/cage&payload=true")).text();
      expect(page).toContain('{"a":1,"a":2,"\\u0061":3}');
      expect(() => JSON.parse(page)).not.toThrow();
    });
  });

  describe("refused at the edge", () => {
    const around = (payload: string): string => `{"topic":"zoo/cage","payload":${payload}}`;
    const invalidUtf8 = Buffer.concat([
      Buffer.from('{"topic":"zoo/cage","payload":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}'),
    ]);

    it.each<[string, string | Buffer, number, string]>([
      ["one byte over the limit", around(text(1_048_577)), 413, "payload_too_large"],
      ["depth 201", around(depth(201)), 400, "invalid_payload"],
      ["depth 200,000", around(depth(200_000)), 400, "invalid_payload"],
      ["depth 200,000, never closed", around("[".repeat(200_000)), 400, "invalid_payload"],
      ["depth in another field", `{"topic":${depth(200_000)},"payload":1}`, 400, "invalid_payload"],
      ["invalid UTF-8", invalidUtf8, 400, "invalid_request"],
      ["UTF-16", Buffer.from(around("1"), "utf16le"), 400, "invalid_message"],
      ["a byte order mark", `\ufeff${around("1")}`, 400, "invalid_message"],
      ["a raw NUL", around('"\u0000"'), 400, "invalid_payload"],
      ["a raw newline in a string", around('"\n"'), 400, "invalid_payload"],
      ["an empty payload", around(""), 400, "invalid_payload"],
      ["NaN", around("NaN"), 400, "invalid_payload"],
      ["text after the end", `${around("1")} x`, 400, "invalid_message"],
    ])("%s", async (_name, body, status, code) => {
      const answer = await post(body);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toMatchObject({ code });
    });

    it("a body over 16 MiB, by its declared length and in chunks", async () => {
      const declared = await rawExchange(server.port, [
        "POST /api/v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{",
      ]);
      expect(declared).toMatch(/^HTTP\/1\.1 413 .*body_too_large/s);
      const head =
        "POST /api/v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
      const chunk = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(0x10_0000, " "), Buffer.from("\r\n")]);
      const chunked = await rawExchange(server.port, [head, ...Array.from({ length: 20 }, () => chunk)], 3_000);
      expect(chunked).toMatch(/^HTTP\/1\.1 413 .*body_too_large/s);
    });

    it("a compressed body (attack 23)", async () => {
      const bomb = gzipSync(Buffer.alloc(50_000_000, " "));
      for (const encoding of ["gzip", "br", "x-none", "gzip, identity"]) {
        expect((await post(bomb, { "content-encoding": encoding })).status).toBe(415);
      }
      expect((await post(around("1"), { "content-encoding": "identity" })).status).toBe(201);
    });

    it("anything that is not declared as JSON (attack 14)", async () => {
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/json; charset=latin1",
      ]) {
        const answer = await post(around("1"), { "content-type": type });
        expect(answer.status).toBe(415);
        expect(await answer.json()).toMatchObject({ code: "unsupported_media_type" });
      }
      expect((await post(around("1"), { "content-type": "Application/JSON; charset=utf-8" })).status).toBe(201);
    });

    it("a slow sender: 408 for slow headers and for a slow body", async () => {
      expect(await rawExchange(server.port, ["GET /livez HTTP/1.1\r\nhost: loc"], 5_000)).toMatch(/^HTTP\/1\.1 408 /);
      const slow =
        "POST /api/v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
      expect(await rawExchange(server.port, [slow], 5_000)).toMatch(/^HTTP\/1\.1 408 /);
    });

    it("headers of 100 kB, and what is not HTTP at all, in problem+json", async () => {
      const long = await rawExchange(server.port, [
        `GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
      ]);
      expect(long).toMatch(/^HTTP\/1\.1 431 .*application\/problem\+json/s);
      expect(await rawExchange(server.port, ["\u0016\u0003\u0001 not http\r\n\r\n"])).toMatch(/^HTTP\/1\.1 400 .*problem\+json/s);
    });

    it("and the server still works", async () => {
      expect((await server.api("/readyz")).status).toBe(200);
      expect((await post(around('"after"'))).status).toBe(201);
    });
  });
});
