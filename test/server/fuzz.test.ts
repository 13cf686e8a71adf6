/**
 * Requests made from the table of routes, against a whole server on a real port: valid ones, nearly valid ones and hostile ones. Whatever is sent,
 * every answer is the contract's (its schema, or a problem with a documented code), none is a crash, none is large or late. A request follows
 * from the seed that is printed and its number: MAKEGOOD_FUZZ_SEED makes the same ones again. With MAKEGOOD_SOAK=1 there are 15,000 of them.
 */
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request as send } from "node:http";
import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ADDRESSES, type RouteId } from "../../src/contract/addresses.ts";
import type { Route } from "../../src/contract/route.ts";
import { ROUTES, routeIds } from "../../src/contract/table.ts";
import { checkAnswer } from "../support/check-answer.ts";
import { PAUSED, STORES, startTestServer, type TestServer } from "./support.ts";

const SOAK = process.env.MAKEGOOD_SOAK === "1";
const REQUESTS = SOAK ? 15_000 : 600;
const SEED = Number(process.env.MAKEGOOD_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const BYTES_MAX = 1_048_576;
/** A machine that runs other tests beside it is slow; what hangs is slower. */
const LATE_MS = 15_000;

/** Numbers from 0 to 1 that follow from the seed. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Dice {
  next(): number;
  one<T>(all: readonly T[]): T;
  chance(share: number): boolean;
}

function diceOf(seed: number): Dice {
  const next = randomOf(seed);
  return { next, one: (all) => all[Math.floor(next() * all.length)] as never, chance: (share) => next() < share };
}

/** JSON text that is put in as it is: what JSON.stringify would not write. */
class Raw {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const HOSTILE: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\u202e",
  "x".repeat(5_000),
  "__proto__",
  [],
  {},
  [[[]]],
  { a: { b: 1 } },
  Number.MAX_SAFE_INTEGER,
  new Raw("1e400"),
  new Raw("-0"),
  new Raw("123456789012345678901234567890"),
  new Raw('"\\ud83d"'),
  new Raw("[".repeat(300) + "]".repeat(300)),
  new Raw('{"__proto__":{"x":1},"__proto__":2}'),
];

function textOf(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`)
    .join(",")}}`;
}

type Schema = Record<string, unknown> & {
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  enum?: unknown[];
};

const KNOWN: Readonly<Record<string, readonly unknown[]>> = {
  topic: ["fuzz/paused", "fuzz/dead", "no/such"],
  kind: ["notify"],
  url: ["http://127.0.0.1:9/"],
  key: ["k1", "k2", "k3"],
  action: ["notify_ops", "retry", "nothing"],
  group_id: [1, 2, 3],
  candidate_id: [1, 2, 3],
  version: [0, 1, 2],
  payload: [1, "text", { a: 1 }, null],
};

/** A value of the schema; now and then another one. */
function fitting(schema: Schema, dice: Dice, wild: number, name = ""): unknown {
  if (dice.chance(wild)) return dice.one(HOSTILE);
  const known = KNOWN[name];
  if (known && dice.chance(0.7)) return dice.one(known);
  if (schema.anyOf) return fitting(dice.one(schema.anyOf), dice, wild, name);
  if (schema.enum) return dice.one(schema.enum);
  if (schema.const !== undefined) return schema.const;
  if (schema.properties) return objectOf(schema, schema.properties, dice, wild);
  if (schema.items)
    return Array.from({ length: 1 + Math.floor(dice.next() * 3) }, () => fitting(schema.items as Schema, dice, wild, name));
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "integer":
    case "number":
      return Math.floor(Number(schema.minimum ?? 0) + dice.next() * 5);
    case "boolean":
      return dice.chance(0.5);
    case "object":
      return { a: "1" };
    case "null":
      return null;
    default:
      return dice.one(["a", "some text", "timeout", "0190a000-0000-7000-8000-000000000000"]);
  }
}

function objectOf(schema: Schema, properties: Record<string, Schema>, dice: Dice, wild: number): unknown {
  const required = (schema.required ?? []) as string[];
  const names = Object.keys(properties).filter((name) => (required.includes(name) ? !dice.chance(wild) : dice.chance(0.4)));
  const members = names.map((name) => [name, fitting(properties[name] as Schema, dice, wild, name)] as const);
  const beside = dice.chance(wild) ? [[dice.one(["x", "__proto__", "constructor", "tpoic"]), 1] as const] : [];
  return Object.fromEntries([...members, ...beside]);
}

const schemas = new Map<z.ZodType, Schema>();
function schemaOf(schema: z.ZodType): Schema {
  const made = schemas.get(schema) ?? inlined(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema);
  schemas.set(schema, made);
  return made;
}

/** References within the schema, put where they are used. */
function inlined(schema: Schema): Schema {
  const { $defs = {} } = schema as { $defs?: Record<string, Schema> };
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (value === null || typeof value !== "object") return value;
    const { $ref } = value as { $ref?: string };
    if ($ref !== undefined) return walk($defs[$ref.replace("#/$defs/", "")] ?? {});
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => name !== "$defs")
        .map(([name, member]) => [name, walk(member)]),
    );
  };
  return walk(schema) as Schema;
}

interface Made {
  readonly id: RouteId;
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer | null;
}

const ODD_PARTS = [
  "%00",
  "%2F",
  "%E0%A4%A",
  "%ff",
  "a%20b",
  "1e3",
  "-1",
  "0",
  "99999999999999999999",
  "x".repeat(3_000),
  "'",
  "%F0%9F%92%A9",
];

function made(seed: number, pools: Readonly<Record<string, readonly string[]>>): Made {
  const dice = diceOf(seed);
  const id = dice.one(routeIds);
  const [own, template] = ADDRESSES[id];
  const route: Route = ROUTES[id];
  const wild = dice.one([0, 0, 0.05, 0.3]);
  const part = (name: string): string =>
    dice.chance(wild) ? dice.one(ODD_PARTS) : dice.one(pools[`${template.split("/")[4] ?? ""}.${name}`] ?? pools[name] ?? ["x"]);
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => part(name)) + queryOf(route, dice, wild);
  const method = dice.chance(wild / 3) ? dice.one(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]) : own;
  const headers: OutgoingHttpHeaders = {};
  for (const name of route.headers ?? [])
    if (dice.chance(0.3)) headers[name] = dice.one(['"1"', "1", "agent", "human", "*", "k1", "a b", '"', "ä"]);
  if (dice.chance(wild)) headers.traceparent = dice.one(["nonsense", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]);
  return { id, method, path, headers, body: bodyOf(route, dice, wild, headers) };
}

function queryOf(route: Route, dice: Dice, wild: number): string {
  const properties = route.query ? (schemaOf(route.query).properties ?? {}) : {};
  const pairs = Object.entries(properties).flatMap(([name, schema]) => {
    if (!dice.chance(0.3)) return [];
    const value = fitting(schema, dice, wild, name);
    const text = value instanceof Raw ? value.text : typeof value === "object" ? JSON.stringify(value) : String(value);
    const pair = `${name}=${encodeURIComponent(text.replace(/\p{Surrogate}/gu, "?"))}`;
    return dice.chance(wild) ? [pair, pair] : [pair];
  });
  if (dice.chance(wild))
    pairs.push(dice.one(["x=1", "limit=%", "limit=1&limit=2", "%00=%00", "=", "a[b]=1", "limit=1e3", "cursor=%FF"]));
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function bodyOf(route: Route, dice: Dice, wild: number, headers: OutgoingHttpHeaders): Buffer | null {
  if (!route.body) {
    if (!dice.chance(wild)) return null;
    headers["content-type"] = "application/json";
    return Buffer.from("{}");
  }
  if (route.body.optional && dice.chance(0.3)) return null;
  headers["content-type"] = dice.chance(wild)
    ? dice.one(["text/plain", "application/json; charset=utf-16", "", "multipart/form-data"])
    : "application/json";
  if (dice.chance(wild / 3)) headers["content-encoding"] = "gzip";
  const text = textOf(fitting(schemaOf(route.body.schema), dice, wild));
  if (!dice.chance(wild)) return Buffer.from(text);
  return dice.one([
    () => Buffer.from(text.slice(0, Math.floor(dice.next() * text.length))),
    () => Buffer.from(`${text}${text}`),
    () => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff, 0xfe, 0x7d])]),
    () => Buffer.from(`\ufeff${text}`),
    () => Buffer.from("[".repeat(50_000)),
    () => Buffer.from(text.replace("{", '{"reason":1,"reason":2,"topic":"a/b","topic":"c/d",')),
    () => Buffer.from(`{${Array.from({ length: 3_000 }, (_, i) => `"x${i}":${i}`).join(",")}}`),
    () => Buffer.alloc(0),
  ])();
}

const agent = new Agent({ keepAlive: true, maxSockets: 8 });

function exchange(port: number, { method, path, headers, body }: Made): Promise<Response> {
  return new Promise((resolve, reject) => {
    const asked = send({
      agent,
      port,
      host: "127.0.0.1",
      method,
      path,
      headers: { ...headers, ...(body ? { "content-length": body.length } : {}) },
    });
    asked.on("error", reject);
    asked.on("response", (incoming: IncomingMessage) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const status = incoming.statusCode ?? 0;
        const names = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
        resolve(new Response(status === 204 ? null : Buffer.concat(chunks), { status, headers: names }));
      });
    });
    asked.end(body ?? undefined);
  });
}

/** What is wrong with an answer, in words; null: nothing. */
async function fault(one: Made, response: Response, tookMs: number): Promise<string | null> {
  const { status } = response;
  const bytes = (await response.clone().arrayBuffer()).byteLength;
  if (status >= 500 && status !== 501 && status !== 503 && status !== 507) return `${status}: ${await response.text()}`;
  if (bytes > BYTES_MAX && !/payload/.test(one.path)) return `${bytes} bytes`;
  if (tookMs > LATE_MS) return `${Math.round(tookMs)} ms`;
  if (response.headers.get("cache-control") !== "no-store") return "no cache-control";
  if (one.method === "HEAD") return null;
  return checkAnswer(one.method, `http://localhost${one.path}`, response).then(
    () => null,
    (error: Error) => error.message,
  );
}

describe("the table of routes", () => {
  let server: TestServer;
  let drop: () => Promise<void>;
  const pools: Record<string, string[]> = {
    namespace: ["fuzz", "no"],
    name: ["paused", "dead", "made"],
    type: ["incident", "x"],
    id: ["1", "2", "x"],
  };

  beforeAll(async () => {
    const postgres = STORES.find(({ name }) => name === "postgres");
    const made = await (postgres as (typeof STORES)[number]).make();
    drop = made.drop;
    server = await startTestServer({}, { store: made.store });
    await server.send("PUT", "/api/v1/topics/fuzz/paused", PAUSED);
    const posted = await server.send("POST", "/api/v1/messages", {
      messages: [1, 2, 3].map((payload) => ({ topic: "fuzz/paused", payload })),
    });
    const { data } = (await posted.json()) as { data: { id: string }[] };
    pools["messages.id"] = [...data.map(({ id }) => id), "0190a000-0000-7000-8000-000000000000", "x"];
    pools["redrives.id"] = ["0190a000-0000-7000-8000-000000000000"];
    pools["recovery.id"] = ["1", "2", "3", "notify_ops", "rate_limited", "mine"];
    for (const error_type of ["timeout", "DISK_FULL", "rate_limited"])
      await server.send("POST", "/api/v1/recovery/ingest", { failure_payload: { error_type, raw: `${error_type} of the day` } });
  });
  afterAll(async () => {
    await server.close({ drainMs: 100 });
    await drop();
    agent.destroy();
  });

  it(
    `answers ${REQUESTS} requests as the contract says`,
    async () => {
      process.stdout.write(`fuzz: MAKEGOOD_FUZZ_SEED=${SEED}, ${REQUESTS} requests\n`);
      const faults: string[] = [];
      const done = new Set<RouteId>();
      let next = 0;
      const tried = async (one: Made): Promise<string | null> => {
        const began = performance.now();
        const response = await exchange(server.port, one);
        if (response.status < 300) done.add(one.id);
        return fault(one, response, performance.now() - began);
      };
      const worker = async (): Promise<void> => {
        while (next < REQUESTS && faults.length < 20) {
          const number = next++;
          const one = made(SEED + number, pools);
          const wrong = await tried(one).catch((error: Error) => `no answer: ${error.message}`);
          const body = one.body?.toString("latin1").slice(0, 300) ?? "";
          if (wrong !== null)
            faults.push(`#${number} ${one.method} ${one.path.slice(0, 200)} ${body}\n   ${wrong.slice(0, 600)}`);
        }
      };
      await Promise.all(Array.from({ length: 8 }, worker));
      expect(faults.join("\n"), `MAKEGOOD_FUZZ_SEED=${SEED}`).toBe("");
      // It is no use to be refused everywhere.
      expect(done.size).toBeGreaterThan(routeIds.length / 3);
      expect((await server.api("/livez")).status).toBe(200);
    },
    SOAK ? 1_800_000 : 120_000,
  );
});
