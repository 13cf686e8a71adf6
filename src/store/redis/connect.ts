/**
 * From a URL to a port, with node-redis, which is loaded only here and only when it is needed. Whether the server is part of a
 * cluster is asked of the server, unless the caller says so.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { NodeRedisClient } from "./node-redis.ts";
import { fromNodeRedis, type PortOptions, type RedisPort } from "./port.ts";

export interface ConnectOptions extends PortOptions {
  /** Absent: asked of the server. */
  readonly cluster?: boolean | undefined;
}

/** `redis://` or `rediss://`; of a cluster one node is enough, several may be given with commas between them. */
export async function connectRedis(url: string, options: ConnectOptions = {}): Promise<RedisPort> {
  const { createClient, createCluster } = await library();
  const urls = url.split(",").map((one) => checkUrl(one.trim()));
  const single = () => fromNodeRedis(createClient({ url: urls[0] as string }) as unknown as NodeRedisClient, options);
  if (options.cluster === false) return single();
  if (options.cluster !== true && urls.length === 1) {
    const port = single();
    try {
      if (!(await inCluster(port))) return port;
    } catch (error) {
      await port.close();
      throw error;
    }
    await port.close();
  }
  const cluster = createCluster({ rootNodes: urls.map((one) => ({ url: one })), defaults: credentialsOf(urls[0] as string) });
  return fromNodeRedis(cluster as unknown as NodeRedisClient, options);
}

async function library(): Promise<typeof import("redis")> {
  try {
    return await import("redis");
  } catch (error) {
    throw new MakegoodError(
      "invalid_config",
      "The package `redis` is missing, and a Redis URL needs it: npm install redis (or pass a client of node-redis or ioredis).",
      {},
      error,
    );
  }
}

function checkUrl(text: string): string {
  if (/^rediss?:\/\/\S+$/.test(text) && URL.canParse(text)) return text;
  throw new MakegoodError("invalid_config", "A Redis URL begins with redis:// or rediss://, several have commas between them.");
}

/** The nodes that a cluster names come without credentials: they are those of the first URL. */
function credentialsOf(text: string): object {
  const { username, password, protocol } = new URL(text);
  return {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === "rediss:" ? { socket: { tls: true } } : {}),
  };
}

/** A server that does not answer INFO is taken for a single one: a cluster would refuse our keys with MOVED, loudly. */
async function inCluster(port: RedisPort): Promise<boolean> {
  try {
    return /^cluster_enabled:1/m.test(String(await port.send(null, ["INFO", "cluster"])));
  } catch (error) {
    if (error instanceof MakegoodError) throw error;
    return false;
  }
}
