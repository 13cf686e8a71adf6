/** Attacks 1 to 6: nothing that a stranger may save as a url makes this process talk to its own network. */
import { BlockList, type LookupFunction } from "node:net";
import fc from "fast-check";
import { Pool } from "undici";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { contains, parseAddress, parseCidr } from "../../src/sink/address.ts";
import { type AddressGuard, createAddressGuard, guardedConnector } from "../../src/sink/address-guard.ts";
import { checkUrl } from "../../src/sink/check-target.ts";
import { httpSink } from "../../src/sink/http.ts";
import { notifySink } from "../../src/sink/notify.ts";
import { webhookSink } from "../../src/sink/webhook.ts";
import { generateSecret } from "../../src/webhook/secret.ts";
import { httpReceiver, type Listening, rawReceiver, send } from "./receiver.ts";

const guard = createAddressGuard();

const LOOPBACKS = [
  "127.1",
  "0x7f.1",
  "0x7f000001",
  "2130706433",
  "017700000001",
  "0177.0.0.1",
  "0",
  "0.0.0.0",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "localhost",
  "LOCALHOST",
  "127.0.0.1.",
  "①②⑦.⓪.⓪.①",
  "127。0。0。1",
  "127.0.0.1",
  "[::1]",
  "[::]",
  "localhost.",
  "app.localhost",
];

const METADATA = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "169.254.42.42",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
  "::ffff:169.254.169.254",
  "::ffff:a9fe:a9fe",
  "64:ff9b::169.254.169.254",
  "64:ff9b::6464:64c8",
  "2002:a9fe:a9fe::1",
];

const RESERVED = [
  "0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.255.255.255 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1",
  "192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1",
  "255.255.255.255 :: ::1 ::2 ::ffff:10.0.0.1 ::ffff:0:0 64:ff9b::1.2.3.4 64:ff9b::a00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1",
  "2002::1 2002:a00:1::1 2001:10::1 3fff::1 5f00::1 fc00::1 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 4000::1 8000::1",
]
  .join(" ")
  .split(" ");

const PUBLIC =
  "1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.1 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700:4700::1111 2a00:1450::1 2001:4860:4860::8888 ::ffff:8.8.8.8 3ffe::1".split(
    " ",
  );

const bracketed = (address: string) => (address.includes(":") ? `[${address.split("%")[0]}]` : address);

describe("with a canary listening on loopback", () => {
  let canary: Listening;
  beforeAll(async () => {
    canary = await rawReceiver((socket) => socket.destroy());
  });
  afterEach(() => expect(canary.connections(), "the canary heard nothing").toBe(0));
  afterAll(() => canary[Symbol.asyncDispose]());

  it.each(LOOPBACKS)("attack 1: http://%s is refused at save and at send", async (host) => {
    const url = `http://${host}:${canary.port}/`;
    expect(checkUrl(url, guard)).not.toBeNull();
    const secrets = [generateSecret()];
    for (const sink of [httpSink({ url }), webhookSink({ url, secrets }), notifySink({ url }, { log: () => undefined })]) {
      expect((await send(sink)).outcome).toMatchObject({ kind: "unserved", code: "address_refused" });
    }
    // Past the check at save: the connector must refuse by itself.
    // (Not every resolver knows the last two names; a canary that heard nothing is the proof then.)
    expect(await dial(guard, url)).toMatch(
      /\.localhost|localhost\.$/.test(host) ? /REFUSED|ENOTFOUND|EAI_AGAIN/ : /ADDRESS_REFUSED/,
    );
  });

  it("attack 3: a literal address is refused at connect although lookup is never called for it", async () => {
    let lookups = 0;
    const watched = createAddressGuard({
      lookup: (_hostname, _options, callback) => {
        lookups++;
        callback(null, "93.184.216.34", 4);
      },
    });
    for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "0x7f000001"]) {
      expect(await dial(watched, `http://${host}:${canary.port}/`)).toBe("MAKEGOOD_ADDRESS_REFUSED");
      expect(await dial(watched, `https://${host}:${canary.port}/`)).toBe("MAKEGOOD_ADDRESS_REFUSED");
    }
    expect(lookups).toBe(0);
  });

  it.each([
    ["a name that resolves to loopback", [["127.0.0.1"]]],
    ["one bad record among good ones", [["93.184.216.34", "127.0.0.1"]]],
    ["a bad AAAA beside a good A", [["93.184.216.34", "::1"]]],
    ["a mapped address", [["::ffff:127.0.0.1"]]],
    ["text that is no address", [["localhost"]]],
  ])("attack 4: %s", async (_name, answers) => {
    const rebinding = createAddressGuard({ lookup: resolver(answers) });
    const url = `http://innocent.example:${canary.port}/`;
    expect(checkUrl(url, rebinding)).toBeNull();
    const sink = httpSink({ url }, { guard: rebinding });
    const { outcome } = await send(sink);
    expect(outcome).toMatchObject({ kind: "unserved", code: "address_refused" });
    expect(outcome.kind === "unserved" && outcome.error, "does not tell the internal address").not.toMatch(/127\.0|::1/);
    await sink.close?.();
  });

  it("attack 4: DNS rebinding with TTL 0: each connection is checked, with the address that is then dialled", async () => {
    const receiver = await httpReceiver((_seen, _request, response) => response.setHeader("connection", "close").end("ok"));
    // First answer: allowed, and really dialled. Every later answer: loopback, where the canary would be.
    const rebinding = createAddressGuard({ allow: ["127.0.0.1/32"], lookup: resolver([["127.0.0.1"], ["127.0.0.2"]]) });
    const sink = httpSink({ url: `http://innocent.example:${receiver.port}/` }, { guard: rebinding });
    expect((await send(sink)).outcome.kind).toBe("delivered");
    for (let n = 0; n < 3; n++) expect((await send(sink)).outcome).toMatchObject({ kind: "unserved", code: "address_refused" });
    expect(receiver.seen).toHaveLength(1);
    expect(receiver.seen[0]?.headers.host).toBe(`innocent.example:${receiver.port}`);
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it.each([301, 302, 303, 307, 308])("attack 5: %d to an internal host is not followed and resends nothing", async (status) => {
    const receiver = await httpReceiver((_seen, _request, response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${canary.port}/latest/meta-data` }).end();
    });
    const sink = httpSink(
      { url: receiver.url, headers: { authorization: "Bearer abcdefgh" } },
      { guard: createAddressGuard({ allow: ["127.0.0.0/8"] }) },
    );
    expect((await send(sink)).outcome).toMatchObject({ kind: "reject", code: `http_${status}` });
    expect(receiver.seen).toHaveLength(1);
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("attack 6: proxy settings of the environment are not honoured", async () => {
    const names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "NODE_USE_ENV_PROXY"];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : canary.url;
    try {
      const receiver = await httpReceiver();
      const sink = httpSink({ url: receiver.url, trusted: true });
      expect((await send(sink)).outcome.kind).toBe("delivered");
      await sink.close?.();
      await receiver[Symbol.asyncDispose]();
    } finally {
      for (const [at, name] of names.entries()) {
        if (before[at] === undefined) delete process.env[name];
        else process.env[name] = before[at];
      }
    }
  });
});

it("attack 3: the peer of a made connection is checked once more, before a byte is sent", async () => {
  let heard = 0;
  const receiver = await rawReceiver((socket) => socket.on("data", () => heard++));
  let asked = 0;
  const late: AddressGuard = { ...guard, refusal: () => (++asked === 1 ? null : "a private address") };
  expect(await dial(late, receiver.url)).toBe("MAKEGOOD_ADDRESS_REFUSED");
  expect(asked).toBe(2);
  expect(heard).toBe(0);
  await receiver[Symbol.asyncDispose]();
});

describe("attack 2: reserved ranges", () => {
  it.each(RESERVED)("%s is refused", (address) => {
    expect(guard.refusal(address)).not.toBeNull();
    expect(checkUrl(`http://${bracketed(address)}/`, guard)).not.toBeNull();
  });

  it.each(PUBLIC)("%s passes", (address) => {
    expect(guard.refusal(address)).toBeNull();
    expect(checkUrl(`https://${bracketed(address)}/hook`, guard)).toBeNull();
  });

  it.each(METADATA)("%s is metadata: refused to everybody, whatever the allow list says", async (address) => {
    const open = createAddressGuard({ allow: ["0.0.0.0/0", "::/0", "169.254.169.254", "fd00::/8"] });
    for (const one of [guard, guard.trusting, open, open.trusting]) {
      expect(one.refusal(address)).toMatch(/metadata/);
      expect(checkUrl(`http://${bracketed(address)}/`, one)).not.toBeNull();
    }
    const sink = httpSink({ url: `http://${bracketed(address)}/`, trusted: true }, { guard: open });
    expect((await send(sink)).outcome).toMatchObject({ kind: "unserved", code: "address_refused" });
  });

  it("metadata by name is refused at save, trusted or not", () => {
    expect(checkUrl("http://metadata.google.internal/computeMetadata/v1/", guard.trusting)).toMatch(/metadata/);
    expect(checkUrl("http://METADATA.google.internal./", guard.trusting)).toMatch(/metadata/);
  });

  it("a trusted sink may use private and loopback addresses, and nothing else that is reserved", async () => {
    for (const address of ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "::1", "fd12::1"]) {
      expect(guard.trusting.refusal(address), address).toBeNull();
    }
    for (const address of ["224.0.0.1", "240.0.0.1", "0.0.0.0", "2002:a00:1::1", "64:ff9b::a00:1", "fe80::1"]) {
      expect(guard.trusting.refusal(address), address).not.toBeNull();
    }
    expect(checkUrl("http://localhost:8080/", guard.trusting)).toBeNull();
    const receiver = await httpReceiver();
    const sink = httpSink({ url: `http://localhost:${receiver.port}/`, trusted: true });
    expect((await send(sink)).outcome.kind).toBe("delivered");
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("the allow list opens what it names, and an opened translation range does not open what it carries", () => {
    const some = createAddressGuard({ allow: ["10.1.0.0/16", "fd12::/16", "::1", "64:ff9b::/96", "::ffff:192.168.0.0/120"] });
    for (const address of [
      "10.1.2.3",
      "::ffff:10.1.2.3",
      "fd12::9",
      "::1",
      "64:ff9b::8.8.8.8",
      "64:ff9b::10.1.2.3",
      "192.168.0.9",
    ]) {
      expect(some.refusal(address), address).toBeNull();
    }
    for (const address of ["10.2.0.1", "fd13::1", "64:ff9b::10.2.0.1", "64:ff9b::127.0.0.1", "192.168.1.1"]) {
      expect(some.refusal(address), address).not.toBeNull();
    }
  });

  it.each(["10.0.0.0/33", "fd00::/129", "10.0.0.0/-1", "10.0.0/8", "ten", "", "10.0.0.0/8/8", "::ffff:10.0.0.0/8"])(
    "a malformed allow entry is refused at start: %j",
    (text) => {
      expect(() => createAddressGuard({ allow: [text] })).toThrow(/CIDR/);
    },
  );
});

describe("attack 6: what a url may be", () => {
  it.each([
    "file:///etc/passwd",
    "unix:/var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "ftp://example.com/",
    "gopher://example.com/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "//example.com/",
    "/path",
    "",
    "http://",
    "http://user:pass@example.com/",
    "http://user@example.com/",
    "https://:pass@example.com/",
    ...[22, 23, 25, 110, 143, 389, 445, 3306, 5432, 6379, 9092, 11211, 27017, 0].map((port) => `http://example.com:${port}/`),
    `http://example.com/${"x".repeat(3_000)}`,
  ])("%s is refused", async (url) => {
    expect(checkUrl(url, guard.trusting)).not.toBeNull();
    expect((await send(httpSink({ url, trusted: true }))).outcome).toMatchObject({ kind: "unserved", code: "address_refused" });
  });

  it.each(["https://example.com/hook", "http://example.com:8080/a?b=c", "https://例え.jp/", "https://user.example/@path"])(
    "%s passes",
    (url) => {
      expect(checkUrl(url, guard)).toBeNull();
    },
  );
});

describe("addresses as bytes", () => {
  const v4 = fc.ipV4();
  const v6 = fc.ipV6();

  it("agrees with node's BlockList on which address is in which range", () => {
    fc.assert(
      fc.property(v4, v4, fc.integer({ min: 0, max: 32 }), (net, address, bits) => {
        expect(inRange(`${net}/${bits}`, address)).toBe(blockListed(net, bits, address, "ipv4"));
      }),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(v6, v6, fc.integer({ min: 1, max: 128 }), fc.boolean(), (net, other, bits, near) => {
        const address = near ? net : other;
        fc.pre(parseAddress(address)?.length === 16 && parseAddress(net)?.length === 16);
        expect(inRange(`${net}/${bits}`, address)).toBe(blockListed(net, bits, address, "ipv6"));
      }),
      { numRuns: 500 },
    );
  });

  it("reads every spelling of an IPv6 address as the URL parser does", () => {
    fc.assert(
      fc.property(v6, (address) => {
        const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
        expect(parseAddress(address)).toEqual(parseAddress(canonical));
      }),
      { numRuns: 500 },
    );
  });

  function inRange(cidr: string, address: string): boolean {
    const range = parseCidr(cidr);
    const bytes = parseAddress(address);
    return range !== null && bytes !== null && contains(range, bytes);
  }

  function blockListed(net: string, bits: number, address: string, family: "ipv4" | "ipv6"): boolean {
    const list = new BlockList();
    list.addSubnet(net, bits, family);
    return list.check(address, family);
  }
});

/** Answers with each list in turn, and with the last one for ever after. */
function resolver(answers: readonly (readonly string[])[]): LookupFunction {
  let calls = 0;
  return (_hostname, _options, callback) => {
    const addresses = answers[Math.min(calls++, answers.length - 1)] ?? [];
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  };
}

/** The code with which a request through the bare connector fails, or its status. */
async function dial(by: AddressGuard, url: string): Promise<string> {
  const target = new URL(url);
  const pool = new Pool(target.origin, { connect: guardedConnector(by, { connectTimeoutMs: 1_000 }) });
  try {
    const { statusCode } = await pool.request({ path: "/", method: "POST", body: "x" });
    return String(statusCode);
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  } finally {
    await pool.destroy();
  }
}
