/**
 * node-redis behind the port. Connections are made like the caller's client, but speak RESP2, keep no queue while they are
 * offline, and do not reconnect by themselves.
 */
import { errorText } from "../../message/errors.ts";
import type { Driver, RedisArgument, RedisNode, Wire } from "./wire.ts";

/** What is needed of a client or a cluster; `createClient` and `createCluster` give it. */
export interface NodeRedisClient {
  // Methods, so that the library's many generic types fit.
  duplicate(overrides?: never): unknown;
}

interface Connection {
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: string, listener: (...args: never[]) => void): unknown;
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
}

interface Client extends Connection {
  readonly options?: { readonly socket?: object; readonly url?: string };
  duplicate(overrides: object): Client;
  sendCommand(args: readonly RedisArgument[]): Promise<unknown>;
}

interface ClusterNode {
  readonly address: string;
}

interface Cluster extends Connection {
  readonly _options?: { readonly defaults?: { readonly socket?: object } };
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];
  duplicate(overrides: object): Cluster;
  sendCommand(firstKey: string | undefined, isReadonly: boolean, args: readonly RedisArgument[]): Promise<unknown>;
  nodeClient(node: ClusterNode): Client | Promise<Client>;
}

const isCluster = (client: object): client is Cluster => "masters" in client && "nodeClient" in client;

/** A timeout of zero: the port has the deadline, and the library's own would make a signal for every command. */
const OURS = { RESP: 2, maintNotifications: "disabled", clientSideCache: undefined, commandOptions: { timeout: 0 } } as const;
const UNSENT_FAILS = { disableOfflineQueue: true } as const;

export function nodeRedisDriver(client: NodeRedisClient): Driver {
  const given = client as unknown as Client | Cluster;
  return isCluster(given)
    ? { kind: "node-redis", cluster: true, connect: () => connectCluster(given) }
    : { kind: "node-redis", cluster: false, connect: () => connectClient(given) };
}

async function opened<T extends Connection>(connection: T): Promise<T> {
  // Without a listener an error event would end the process; the command that failed reports it.
  connection.on("error", () => {});
  try {
    await connection.connect();
    return connection;
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

async function connectClient(given: Client): Promise<Wire> {
  const socket = { ...given.options?.socket, reconnectStrategy: false };
  const client = await opened(given.duplicate({ ...OURS, ...UNSENT_FAILS, socket }));
  const send = (args: readonly RedisArgument[]) => client.sendCommand(args);
  return {
    ...wireOf(client),
    send: (_key, args) => send(args),
    nodes: () => [{ name: "", role: "master", send }],
  };
}

async function connectCluster(given: Cluster): Promise<Wire> {
  const kept = given._options?.defaults;
  const socket = { ...kept?.socket, reconnectStrategy: false };
  // Replicas are known, so that they can be examined; nothing is read from them, because every command names itself a write.
  const nodes = { useReplicas: true, minimizeConnections: true };
  const cluster = await opened(given.duplicate({ ...OURS, ...nodes, defaults: { ...kept, ...UNSENT_FAILS, socket } }));
  const node =
    (role: RedisNode["role"]) =>
    (one: ClusterNode): RedisNode => ({
      name: one.address,
      role,
      send: async (args) => (await cluster.nodeClient(one)).sendCommand(args),
    });
  return {
    ...wireOf(cluster),
    send: (key, args) => cluster.sendCommand(key ?? undefined, false, args),
    nodes: () => [...cluster.masters.map(node("master")), ...cluster.replicas.map(node("replica"))],
  };
}

function wireOf(connection: Connection): Omit<Wire, "send" | "nodes"> {
  return {
    subscribe: (channel, listener) => connection.subscribe(channel, (message) => listener(message)),
    unsent: (error) => /The client is (closed|offline)|root nodes are unavailable|ECONNREFUSED/.test(errorText(error)),
    onEnd(ended) {
      let reported = false;
      const once = () => {
        if (!reported) ended();
        reported = true;
      };
      for (const event of ["end", "terminated", "error", "node-error"]) connection.on(event, once);
    },
    destroy() {
      try {
        connection.destroy();
      } catch {
        // It had ended by itself.
      }
    },
  };
}
