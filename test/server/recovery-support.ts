/**
 * A server on PostgreSQL with two people's tokens, and a receiver whose answer a test chooses: what the recovery tests over HTTP have in common.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, vi } from "vitest";
import type { ServeOptions } from "../../src/server/serve.ts";
import { STORES, type StoreChoice, startTestServer, type TestServer } from "./support.ts";

export interface Json {
  readonly [name: string]: unknown;
}

export interface Receiver {
  readonly url: string;
  status: number;
  readonly requests: string[];
  close(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    request.resume();
    request.on("end", () => response.writeHead(receiver.status).end(`answer ${receiver.status}`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`,
    status: 422,
    requests,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return receiver;
}

export const TOKENS = { alice: "alice-secret-0123456789", bob: "bob-secret-0123456789ab" } as const;
export type Person = keyof typeof TOKENS;

export interface RecoveryServer {
  readonly server: TestServer;
  readonly receiver: Receiver;
  as(person: Person, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  /** Lets `count` messages of a fresh topic die and returns their group, evaluated. */
  deadGroup(topic: string, count: number): Promise<{ group: Json; candidate: Json; ids: string[] }>;
  candidate(id: unknown): Promise<Json>;
  close(): Promise<void>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Json;
}

export const inOrder = (a: unknown, b: unknown): number => String(a).localeCompare(String(b), "en");

/** Members of a list answer. */
export const dataOf = ({ body }: Answered): Json[] => body.data as Json[];

/** A store in a schema of its own, for a server to open and to close. */
export const onPostgres = () => (STORES.find(({ name }) => name === "postgres") as StoreChoice).make();

export async function startRecoveryServer(
  env: Record<string, string> = {},
  more: Partial<ServeOptions> = {},
): Promise<RecoveryServer> {
  const tokens = Object.entries(TOKENS).map(([name, secret]) => `${name}:${secret}`);
  const made = more.store ? null : await onPostgres();
  const own = made ? { ...more, store: made.store } : more;
  const server = await startTestServer({ MAKEGOOD_TOKENS: tokens.join(","), MAKEGOOD_POLL_MS: "20", ...env }, own);
  const receiver = await startReceiver();
  const as: RecoveryServer["as"] = async (person, method, path, body, headers = {}) => {
    const response = await server.api(path, {
      method,
      headers: { authorization: `Bearer ${TOKENS[person]}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: (text === "" ? {} : JSON.parse(text)) as Json };
  };
  const candidate = async (id: unknown) => (await as("alice", "GET", `/api/v1/recovery/candidates/${id}`)).body;

  async function deadGroup(topic: string, count: number) {
    receiver.status = 422;
    const definition = { sink: { kind: "http", url: receiver.url }, retry: { attempts_max: 1 } };
    await as("alice", "PUT", `/api/v1/topics/${topic}`, definition);
    const messages = Array.from({ length: count }, (_, n) => ({ topic, payload: { n }, key: `${topic}-${n}` }));
    const ids = dataOf(await as("alice", "POST", "/api/v1/messages", { messages })).map(({ id }) => id as string);
    const group = await vi.waitFor(
      async () => {
        const [found] = dataOf(await as("alice", "GET", `/api/v1/recovery/groups?topic=${topic}&open=true`));
        expect(found).toMatchObject({ occurrence_count: count, open_messages: count });
        return found as Json;
      },
      { timeout: 15_000, interval: 20 },
    );
    const found = await vi.waitFor(
      async () => {
        const [one] = dataOf(await as("alice", "GET", `/api/v1/recovery/candidates?group_id=${group.group_id}`));
        expect(one).toMatchObject({ evaluation_status: "evaluated" });
        return one as Json;
      },
      { timeout: 15_000, interval: 20 },
    );
    return { group, candidate: found, ids };
  }

  return {
    server,
    receiver,
    as,
    deadGroup,
    candidate,
    async close() {
      await server.close({ drainMs: 100 });
      receiver.close();
      await made?.drop();
    },
  };
}
