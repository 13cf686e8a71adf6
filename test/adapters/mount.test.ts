/**
 * C8: the API mounted in the real Express 5 and 4, Fastify and Hono, as docs/guide/embedding.md shows it; and what each of them gets wrong by itself,
 * a body parser that comes first, is refused with the remedy.
 */

import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { serve } from "@hono/node-server";
import express from "express";
import express4 from "express-4";
import { fastify } from "fastify";
import { Hono } from "hono";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Makegood } from "../../src/index.ts";
import { type Mounted, mount } from "../../src/server/index.ts";
import { guideFolder } from "../support/guide-files.ts";
import { BASE, callerOf, jsonOf, judgeMounted, makegoodToMount, orderBody, post, TOKENS } from "../support/mounted.ts";

let mg: Makegood;
let api: Mounted;

beforeAll(async () => {
  mg = await makegoodToMount();
  api = mount(mg, { basePath: BASE, tokens: TOKENS });
});
afterAll(async () => {
  api.close();
  await mg.close();
});

async function served(server: Server, run: (url: string) => Promise<void>): Promise<void> {
  if (!server.listening) server.listen(0, "127.0.0.1");
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Each judge counts what it made. */
async function judge(url: string): Promise<void> {
  for (const { id } of (await mg.list()).data) await mg.cancel(id, { actor: "test" });
  await mg.store.prune({ keptMs: -1_000, limit: 100 });
  await judgeMounted(url);
}

async function refusedBody(url: string): Promise<void> {
  const answer = await callerOf(url)(`${BASE}/api/v1/messages`, post(orderBody("parsed")));
  expect([answer.status, (await jsonOf(answer)).detail]).toEqual([
    500,
    expect.stringMatching(/mount Makegood before express\.json\(\)/),
  ]);
  expect((await mg.list()).data.filter(({ key }) => key === "parsed")).toEqual([]);
}

/** The program's own address, beside the API. */
async function own(url: string): Promise<void> {
  const answer = await fetch(`${url}/orders`, post('{"n":1}'));
  expect([answer.status, await answer.json()]).toEqual([200, { n: 1 }]);
}

describe.each([
  ["Express 5", express as unknown as typeof express4],
  ["Express 4", express4],
])("C8: mount in %s", (_name, make) => {
  it("below a path, before the body parser", async () => {
    const app = make();
    app.use(BASE, api.node);
    app.use(make.json());
    app.post("/orders", (req, res) => void res.json(req.body));
    await served(createServer(app), async (url) => {
      await judge(url);
      await own(url);
    });
  });

  it("without a path: what is not below the base path goes on", async () => {
    const app = make();
    app.use(api.node);
    app.post("/orders", make.json(), (req, res) => void res.json(req.body));
    await served(createServer(app), async (url) => {
      await judge(url);
      await own(url);
    });
  });

  it("in a router of a router", async () => {
    const [app, outer] = [make(), make.Router()];
    const inner = mount(mg, { basePath: `/ops${BASE}`, tokens: TOKENS });
    outer.use(BASE, inner.node);
    app.use("/ops", outer);
    await served(createServer(app), async (url) => {
      const answer = await callerOf(url)(`/ops${BASE}/api/v1/messages/none`);
      expect([answer.status, (await jsonOf(answer)).instance]).toEqual([404, `/ops${BASE}/api/v1/messages/none`]);
    });
    inner.close();
  });

  it("a body parser before it is refused with the remedy", async () => {
    const app = make();
    app.use(make.json());
    app.use(BASE, api.node);
    await served(createServer(app), refusedBody);
  });

  it("a path that it was not told is refused with the remedy", async () => {
    const app = make();
    const root = mount(mg, { tokens: TOKENS });
    app.use(BASE, root.node);
    await served(createServer(app), async (url) => {
      const answer = await callerOf(url)(`${BASE}/livez`);
      expect([answer.status, (await jsonOf(answer)).detail]).toEqual([500, expect.stringMatching(/basePath: "\/makegood"/)]);
    });
    root.close();
  });
});

describe("C8: mount in Fastify", () => {
  it("in a scope without content type parsers", async () => {
    const app = fastify();
    app.register(async (scope) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
      scope.all(`${BASE}/*`, (request, reply) => {
        reply.hijack();
        api.node(request.raw, reply.raw);
      });
    });
    app.post("/orders", (request, reply) => reply.send(request.body));
    await app.ready();
    await served(app.server, async (url) => {
      await judge(url);
      await own(url);
    });
  });

  it("its own parsers before it are refused with the remedy", async () => {
    const app = fastify();
    app.all(`${BASE}/*`, (request, reply) => {
      reply.hijack();
      api.node(request.raw, reply.raw);
    });
    await app.ready();
    await served(app.server, refusedBody);
  });
});

describe("C8: mount in Hono", () => {
  it.each([
    ["as a route", (app: Hono) => app.all(`${BASE}/*`, (context) => api.fetch(context.req.raw))],
    ["with its own mount, which takes the path off", (app: Hono) => app.mount(BASE, api.fetch)],
  ])("%s", async (_name, put) => {
    const app = new Hono();
    put(app);
    app.post("/orders", async (context) => context.json(await context.req.json()));
    await served(
      serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1", overrideGlobalObjects: false }) as Server,
      async (url) => {
        await judge(url);
        await own(url);
      },
    );
  });

  it("a body that was read before it is refused with the remedy", async () => {
    const app = new Hono();
    app.use(async (context, next) => {
      if (context.req.method === "POST") await context.req.json();
      await next();
    });
    app.all(`${BASE}/*`, (context) => api.fetch(context.req.raw));
    await served(
      serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1", overrideGlobalObjects: false }) as Server,
      refusedBody,
    );
  });
});

describe("C8: the files of docs/guide/embedding.md", () => {
  let folder: string;
  beforeAll(async () => {
    const here = (name: string): string => fileURLToPath(new URL(`node_modules/${name}`, import.meta.url));
    const packages = ["express", "fastify", "hono", "@hono/node-server"].map((name) => [name, here(name)]);
    folder = await guideFolder("docs/guide/embedding.md", Object.fromEntries(packages) as Record<string, string>);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(["express.mjs", "fastify.mjs", "hono.mjs"])("%s runs as it stands", async (file) => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const env = { ...process.env, PORT: String(port), MAKEGOOD_TOKENS: TOKENS };
    const child = spawn(process.execPath, [file], { cwd: folder, env, stdio: "inherit" });
    try {
      const url = `http://127.0.0.1:${port}`;
      while (!(await fetch(url).catch(() => null))) await new Promise((resolve) => setTimeout(resolve, 20));
      await judgeMounted(url);
    } finally {
      child.kill("SIGKILL");
    }
  });
});
