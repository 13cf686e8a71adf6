/**
 * C8: mount() on a Makegood of the caller's own process: as a fetch handler and in plain node:http, who may use it, and what is refused with its remedy.
 * Express, Fastify and Hono are in test/adapters/mount.test.ts.
 */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/contract/index.ts";
import { createMakegood, type Makegood, type MakegoodError } from "../../src/index.ts";
import { mount } from "../../src/server/index.ts";
import { createMemoryStore } from "../../src/testing/index.ts";
import {
  BASE,
  callerOf,
  jsonOf,
  judgeMounted,
  makegoodToMount,
  mountedTopic,
  orderBody,
  PAYLOAD,
  post,
  SECRET,
  TOKENS,
} from "../support/mounted.ts";

let mg: Makegood;
beforeAll(async () => {
  mg = await makegoodToMount();
});
afterAll(() => mg.close());

async function served<T>(listener: RequestListener, run: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    return await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const at = (path: string, init: RequestInit = {}): Request =>
  new Request(`http://localhost${path}`, { ...init, headers: { authorization: `Bearer ${SECRET}`, ...init.headers } });

describe("C8: mount in plain node:http", () => {
  it("answers below its base path; all else goes to next, or is not found", async () => {
    await using own = await makegoodToMount();
    const api = mount(own, { basePath: "/makegood/", tokens: TOKENS });
    await served(
      (req, res) => api.node(req, res, () => res.writeHead(200).end("the program's own")),
      async (url) => {
        await judgeMounted(url);
        for (const path of ["/", "/makegoods", "/other/makegood/livez", "/makegood%2flivez"]) {
          expect(await (await callerOf(url)(path)).text()).toBe("the program's own");
        }
        const client = createClient({ url: url + BASE, token: SECRET });
        expect(await client.listTopics()).toMatchObject({ data: [{ name: "shop/orders" }] });
      },
    );
    await served(api.node, async (url) => {
      const other = await callerOf(url)("/other");
      expect([other.status, await other.json()]).toEqual([
        404,
        expect.objectContaining({ code: "not_found", instance: "/other" }),
      ]);
    });
    api.close();
  });

  it("is at the root without a base path, and forms that are no request get a problem", async () => {
    const api = mount(mg, { tokens: TOKENS });
    await served(api.node, async (url) => {
      const call = callerOf(url);
      expect((await call("/readyz")).status).toBe(200);
      expect((await call("/api/v1/messages/none")).headers.get("content-type")).toBe("application/problem+json");
      expect((await jsonOf(await call("/openapi.json"))).servers).toEqual([{ url: "/" }]);
    });
    api.close();
  });

  it("payload bytes stay exact: a body that was read before is refused with what to do, one kept as rawBody is not", async () => {
    await using own = await makegoodToMount();
    const lines: string[] = [];
    const line = (text: string) => void lines.push(text);
    await using told = await createMakegood({
      store: own.store,
      sharedStore: true,
      log: { debug: line, info: () => undefined, warn: line, error: line },
      topics: [mountedTopic],
      recovery: false,
    });
    const api = mount(told, { basePath: BASE, tokens: TOKENS });
    const read = async (req: IncomingMessage): Promise<Buffer> => {
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    };
    const parsing: RequestListener = (req, res) =>
      void read(req).then((body) => {
        if (req.headers["x-raw"]) Object.assign(req, { rawBody: body });
        api.node(req, res);
      });
    await served(parsing, async (url) => {
      const call = callerOf(url);
      for (const n of [1, 2]) {
        const refused = await call(`${BASE}/api/v1/messages`, post(orderBody(`lost-${n}`)));
        expect([refused.status, await refused.json()]).toEqual([
          500,
          expect.objectContaining({
            code: "internal_error",
            detail: expect.stringMatching(/mount Makegood before express\.json\(\)/),
          }),
        ]);
      }
      expect(
        lines.filter((text) => text.includes("express.json()")),
        "the program is told once",
      ).toHaveLength(1);
      const raw = await call(`${BASE}/api/v1/messages`, {
        ...post(orderBody("raw")),
        headers: { "content-type": "application/json", "x-raw": "1" },
      });
      const { id } = (await raw.json()) as { id: string };
      expect([raw.status, (await own.get(id))?.payload]).toEqual([201, PAYLOAD]);
      expect((await call(`${BASE}/api/v1/messages`)).status, "without a body there was none to lose").toBe(200);
    });
    expect((await own.list()).data).toHaveLength(1);
    api.close();
  });
});

describe("C8: mount as a fetch handler", () => {
  it("takes paths with the base path and paths that have lost it", async () => {
    const api = mount(mg, { basePath: BASE, tokens: TOKENS });
    for (const path of [`${BASE}/api/v1/messages/none`, "/api/v1/messages/none"]) {
      const answer = await api.fetch(at(path));
      expect([answer.status, await answer.json()]).toEqual([
        404,
        expect.objectContaining({ instance: `${BASE}/api/v1/messages/none` }),
      ]);
    }
    const used = at(`${BASE}/api/v1/messages`, post(orderBody("used")));
    await used.text();
    expect(await (await api.fetch(used)).json()).toMatchObject({ detail: expect.stringMatching(/exact bytes are gone/) });
    api.close();
  });

  it("close() ends the answers and what is counted for them, not the Makegood", async () => {
    expect(mg.events.heard).toBe(false);
    const api = mount(mg, { basePath: BASE, tokens: TOKENS });
    expect(mg.events.heard).toBe(true);
    expect((await api.fetch(at(`${BASE}/livez`))).status).toBe(200);
    api.close();
    api.close();
    const answer = await api.fetch(at(`${BASE}/livez`));
    expect([answer.status, (await jsonOf(answer)).code]).toEqual([503, "closed"]);
    await served(api.node, async (url) => expect((await fetch(`${url}${BASE}/livez`)).status).toBe(503));
    expect(mg.opened()).toBe(true);
    expect(mg.events.heard).toBe(false);
  });
});

describe("C8: who may use what is mounted", () => {
  const refusal = (options: Parameters<typeof mount>[1]): string => {
    try {
      mount(mg, options).close();
      return "";
    } catch (error) {
      expect((error as MakegoodError).code).toBe("invalid_config");
      return (error as MakegoodError).message;
    }
  };

  it("is never left open by accident", () => {
    expect(refusal({})).toMatch(/nobody says who may use this API: give tokens .* authorize .* or anonymous/);
    expect(refusal({ tokens: TOKENS, anonymous: "all" })).toMatch(/only one of tokens and anonymous/);
    expect(refusal({ tokens: "" })).toMatch(/tokens: it is empty/);
    expect(refusal({ tokens: "ann:short" })).toMatch(/shorter than 16/);
    expect(refusal({ anonymous: "" })).toMatch(/name of 1 to 200/);
    expect(refusal({ anonymous: "system" })).toMatch(/calls itself on record/);
    for (const basePath of ["makegood", "/a b", "/a//b", "/<x>", '/"']) {
      expect(refusal({ anonymous: "all", basePath })).toMatch(/basePath must be like "\/makegood"/);
    }
  });

  it("authorize says who asks, by what the program knows of the request, and what the address is for", async () => {
    await using own = await makegoodToMount();
    const seen: string[] = [];
    const api = mount(own, {
      basePath: BASE,
      authorize: async (request, { needs, incoming }) => {
        seen.push(needs);
        const user = (incoming as { user?: string } | undefined)?.user ?? request.headers.get("x-user");
        return user === "ann" || (user === "bob" && needs === "read") ? user : null;
      },
    });
    const { id } = await own.enqueue(mountedTopic, 1);
    const cancel = `${BASE}/api/v1/messages/${id}/cancel`;
    const as = (user: string, init: RequestInit) =>
      at(cancel, { ...init, headers: { "content-type": "application/json", "x-user": user } });
    const refused = await api.fetch(as("bob", { method: "POST", body: '{"reason":"no"}' }));
    expect([refused.status, refused.headers.get("www-authenticate"), (await jsonOf(refused)).detail]).toEqual([
      401,
      null,
      expect.stringMatching(/mounted in does not let this request in/),
    ]);
    expect((await api.fetch(as("ann", { method: "POST", body: '{"reason":"no"}' }))).status).toBe(200);
    expect((await own.store.history(id)).provenance).toMatchObject([{ actor: "ann" }]);
    expect((await api.fetch(at(`${BASE}/nowhere`))).status, "who may not ask is told nothing").toBe(401);
    expect((await api.fetch(at(`${BASE}/livez`))).status).toBe(200);
    expect(seen).toEqual(["operate", "operate", "read"]);
    const session: RequestListener = (req, res) => api.node(Object.assign(req, { user: "ann" }), res);
    await served(session, async (url) => expect((await fetch(`${url}${BASE}/api/v1/messages`)).status).toBe(200));
    api.close();
  });

  it("a function that fails lets nobody in", async () => {
    for (const authorize of [
      () => Promise.reject(new Error("no database")),
      () => "system",
      () => 7 as never,
      () => undefined as never,
      () => "",
    ]) {
      const api = mount(mg, { authorize });
      expect((await api.fetch(at("/api/v1/messages"))).status).toBeGreaterThanOrEqual(401);
      api.close();
    }
  });

  it("anonymous answers under names of this machine, or those that were given: a page cannot rebind its own", async () => {
    const status = async (options: Parameters<typeof mount>[1], host: string): Promise<number> => {
      const api = mount(mg, options);
      const answer = await api.fetch(new Request(`http://${host}/api/v1/messages`));
      api.close();
      return answer.status;
    };
    expect(await status({ anonymous: "all" }, "localhost:3000")).toBe(200);
    expect(await status({ anonymous: "all" }, "evil.example")).toBe(421);
    expect(await status({ anonymous: "all", hosts: ["ops.example"] }, "ops.example")).toBe(200);
    expect(await status({ tokens: TOKENS, hosts: ["ops.example"] }, "evil.example")).toBe(421);
    expect(await status({ tokens: TOKENS }, "any.example")).toBe(401);
  });

  it("a page of another origin changes nothing", async () => {
    const api = mount(mg, { anonymous: "all" });
    const answer = await api.fetch(
      at("/api/v1/messages", {
        ...post(orderBody("x")),
        headers: { "content-type": "application/json", "sec-fetch-site": "cross-site" },
      }),
    );
    expect([answer.status, (await jsonOf(answer)).code]).toEqual([403, "cross_origin_refused"]);
    api.close();
  });

  it("needs no store that is there: a Makegood on memory without a worker is enough", async () => {
    await using plain = await createMakegood({ store: createMemoryStore(), log: "silent" });
    const api = mount(plain, { anonymous: "all", worker: plain.work() });
    expect(await (await api.fetch(at("/health"))).json()).toMatchObject({ dispatcher: { state: "working" } });
    api.close();
  });
});
