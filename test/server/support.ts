/**
 * A whole server on the memory store, listening on a real port, for tests that speak HTTP to it.
 */
import { connect } from "node:net";
import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Config } from "../../src/server/config/config.ts";
import { readConfig } from "../../src/server/config/config.ts";
import { type RunningServer, type ServeOptions, startServer } from "../../src/server/serve.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { checkAnswer } from "../support/check-answer.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";

export async function configOf(env: Record<string, string> = {}, cwd = "/nonexistent"): Promise<Config> {
  const read = await readConfig({ env: { MAKEGOOD_PORT: "0", ...env }, cwd });
  if (!read.ok) throw new Error(read.faults.join("\n"));
  return read.config;
}

export interface TestServer extends RunningServer {
  readonly lines: string[];
  readonly store: Store;
  api(path: string, init?: RequestInit): Promise<Response>;
  send(method: string, path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

export async function startTestServer(env: Record<string, string> = {}, more: Partial<ServeOptions> = {}): Promise<TestServer> {
  const lines: string[] = [];
  const log = createLog({ clock: systemClock, format: "json", level: "debug", write: (line) => void lines.push(line) });
  const store = more.store ?? createMemoryStore();
  const server = await startServer({ config: await configOf(env), log, ...more, store });
  const api = async (path: string, init?: RequestInit): Promise<Response> => {
    const response = await fetch(server.url + path, init);
    const method = init?.method ?? "GET";
    if (method !== "HEAD" && method !== "OPTIONS") await checkAnswer(method, server.url + path, response);
    return response;
  };
  return {
    ...server,
    lines,
    store,
    api,
    send: (method, path, body, headers = {}) =>
      api(path, {
        method,
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
  };
}

export interface StoreChoice {
  readonly name: string;
  make(): Promise<{ store: Store; drop(): Promise<void> }>;
}

/** The contract holds on the oracle and on the real thing. */
export const STORES: readonly StoreChoice[] = [
  { name: "memory", make: async () => ({ store: createMemoryStore(), drop: async () => {} }) },
  {
    name: "postgres",
    async make() {
      const schema = freshSchema();
      const store = createPostgresStore({ url: databaseUrl(), schema });
      return { store, drop: () => dropSchema(schema) };
    },
  },
];

/** A topic nobody delivers from: its messages stay to be looked at. */
export const PAUSED = { sink: { kind: "notify" }, paused: true };

/** Sends bytes as they are and returns everything that came back until the server closed or `quietMs` passed in silence. */
export function rawExchange(port: number, chunks: readonly (string | Buffer)[], quietMs = 1_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let received = "";
    const timer = setTimeout(() => socket.destroy(), quietMs);
    socket.on("data", (data) => {
      received += data.toString("latin1");
      timer.refresh();
    });
    socket.on("error", (error) => (received === "" ? reject(error) : undefined));
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(received);
    });
    for (const chunk of chunks) socket.write(chunk);
  });
}
