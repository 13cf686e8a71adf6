/**
 * Connections to one receiver, shared by all that post to it: a thousand topics with one host would otherwise keep a thousand
 * connections, each hardly used. What dials differently (another guard, other limits, a client certificate) has a pool of its own.
 */
import type { ConnectionOptions } from "node:tls";
import { Pool } from "undici";
import { LIMITS } from "../message/limits.ts";
import { type AddressGuard, guardedConnector } from "./address-guard.ts";

export interface PoolOptions {
  readonly origin: string;
  readonly connectTimeoutMs: number;
  readonly connections: number;
  readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key"> | undefined;
}

export interface SharedPool {
  readonly pool: Pool;
  /** The last one to leave closes the connections. */
  leave(): Promise<void>;
}

const shared = new WeakMap<AddressGuard, Map<string, { readonly pool: Pool; users: number }>>();

function makePool(guard: AddressGuard, { origin, connectTimeoutMs, connections, tls }: PoolOptions): Pool {
  return new Pool(origin, {
    connect: guardedConnector(guard, { connectTimeoutMs, tls }),
    connections,
    pipelining: 1,
    maxHeaderSize: LIMITS.responseBytesMax,
    keepAliveMaxTimeout: 60_000,
    // A connection that never ends would keep an address that the name left long ago.
    maxRequestsPerClient: 1_000,
  });
}

export function joinPool(guard: AddressGuard, options: PoolOptions): SharedPool {
  if (options.tls) {
    const pool = makePool(guard, options);
    return { pool, leave: () => pool.destroy() };
  }
  const pools = shared.get(guard) ?? new Map();
  shared.set(guard, pools);
  const name = `${options.origin} ${options.connectTimeoutMs} ${options.connections}`;
  const entry = pools.get(name) ?? { pool: makePool(guard, options), users: 0 };
  pools.set(name, entry);
  entry.users++;
  return {
    pool: entry.pool,
    async leave() {
      if (--entry.users > 0) return;
      pools.delete(name);
      await entry.pool.destroy();
    },
  };
}
