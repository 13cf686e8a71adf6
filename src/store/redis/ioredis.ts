/**
 * ioredis behind the port. Connections are made like the caller's client, but speak RESP2, keep no queue while they are
 * offline, neither reconnect nor send anything again by themselves, and follow MOVED and ASK, which say that nothing was done.
 */
import { errorText } from "../../message/errors.ts";
import type { Driver, RedisArgument, RedisNode, Wire } from "./wire.ts";

/** What is needed of `new Redis()` or `new Cluster()`. */
export interface IoredisClient {
  readonly isCluster?: boolean;
  duplicate(first?: never, second?: never): unknown;
}

interface Client {
  readonly status: string;
  readonly options: {
    readonly host?: string;
    readonly port?: number;
    readonly redisOptions?: object;
    readonly readOnly?: boolean;
  };
  connect(): Promise<unknown>;
  disconnect(): void;
  call(command: string, args: readonly RedisArgument[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

interface Single extends Client {
  duplicate(options: object): Single;
}

interface Cluster extends Client {
  duplicate(nodes: readonly unknown[], options: object): Cluster;
  nodes(role: "master" | "slave"): Client[];
}

const QUIET = {
  lazyConnect: true,
  enableOfflineQueue: false,
  keyPrefix: "",
} as const;

const ONCE = { protocol: 2, autoResendUnfulfilledCommands: false, retryStrategy: null, reconnectOnError: null } as const;

export function ioredisDriver(client: IoredisClient): Driver {
  return client.isCluster === true
    ? { kind: "ioredis", cluster: true, connect: () => connectCluster(client as unknown as Cluster) }
    : { kind: "ioredis", cluster: false, connect: () => connectClient(client as unknown as Single) };
}

async function opened<T extends Client>(client: T): Promise<T> {
  let last: unknown;
  // Without a listener the library writes errors to the console; the last one says why connecting failed.
  client.on("error", (error: unknown) => {
    last = error;
  });
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.disconnect();
    throw last ?? error;
  }
}

async function connectClient(given: Single): Promise<Wire> {
  const client = await opened(given.duplicate({ ...QUIET, ...ONCE }));
  return { ...wireOf(client), nodes: () => [nodeOf(client, "master")] };
}

async function connectCluster(given: Cluster): Promise<Wire> {
  const redisOptions = { ...given.options.redisOptions, ...ONCE, keyPrefix: "" };
  // Zero: a closed connection is an error at once instead of sending the command a second time.
  const options = { ...QUIET, retryDelayOnFailover: 0, clusterRetryStrategy: () => null, redisOptions };
  const cluster = await opened(given.duplicate([], options));
  return {
    ...wireOf(cluster),
    nodes: () => [
      ...cluster.nodes("master").map((node) => nodeOf(node, "master")),
      ...cluster.nodes("slave").map((node) => nodeOf(node, "replica")),
    ],
  };
}

function nodeOf(client: Client, role: RedisNode["role"]): RedisNode {
  const { host = "", port = "" } = client.options;
  return { name: `${host}:${port}`, role, send: (args) => call(client, args) };
}

function call(client: Client, args: readonly RedisArgument[]): Promise<unknown> {
  const [command, ...rest] = args;
  return client.call(String(command), rest);
}

function wireOf(client: Client): Omit<Wire, "nodes"> {
  return {
    send: (_key, args) => call(client, args),
    async subscribe(channel, listener) {
      client.on("message", (from: string, message: string) => {
        if (from === channel) listener(message);
      });
      await client.subscribe(channel);
    },
    unsent: (error) => /enableOfflineQueue options is false|Cluster is ended|ECONNREFUSED/.test(errorText(error)),
    onEnd(ended) {
      let reported = false;
      client.on("end", () => {
        if (!reported) ended();
        reported = true;
      });
    },
    destroy: () => client.disconnect(),
  };
}
