/**
 * A real Redis Cluster for tests: three masters and three replicas on loopback, put together with CLUSTER commands.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DURABLE, type RedisServer, startRedis } from "./redis-server.ts";

export interface RedisCluster {
  readonly nodes: readonly RedisServer[];
  readonly url: string;
  /** The master that holds a key's slot now, asked of a node that is up. */
  masterOf(key: string, asked?: RedisServer): Promise<RedisServer>;
}

const MASTERS = 3;

export async function startRedisCluster(nodeTimeoutMs = 2_000): Promise<RedisCluster> {
  const settings = [...DURABLE, "--cluster-enabled", "yes", "--cluster-node-timeout", String(nodeTimeoutMs)];
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, () => startRedis(settings)));
  const [first] = nodes as [RedisServer, ...RedisServer[]];
  for (const node of nodes.slice(1)) await first.ask("CLUSTER", "MEET", "127.0.0.1", String(node.port));
  const masters = nodes.slice(0, MASTERS);
  for (const [i, master] of masters.entries()) {
    const from = Math.floor((16_384 * i) / MASTERS);
    const to = Math.floor((16_384 * (i + 1)) / MASTERS) - 1;
    await master.ask("CLUSTER", "ADDSLOTSRANGE", String(from), String(to));
  }
  const ids = await Promise.all(masters.map(async (master) => String(await master.ask("CLUSTER", "MYID"))));
  for (const [i, replica] of nodes.slice(MASTERS).entries()) {
    await until(`${replica.port} knows its master`, async () => {
      await replica.ask("CLUSTER", "REPLICATE", ids[i] as string);
      return true;
    });
  }
  for (const node of nodes) {
    await until(`${node.port} agrees`, async () => {
      const info = String(await node.ask("CLUSTER", "INFO"));
      if (!/cluster_state:ok/.test(info) || !/cluster_known_nodes:6/.test(info)) return false;
      const seen = (await node.ask("CLUSTER", "SLOTS")) as unknown[][];
      return seen.length === MASTERS && seen.every((range) => range.length === 4);
    });
  }
  for (const replica of nodes.slice(MASTERS)) {
    await until(`${replica.port} follows`, async () =>
      /master_link_status:up/.test(String(await replica.ask("INFO", "replication"))),
    );
  }
  return {
    nodes,
    url: first.url,
    async masterOf(key, asked = first) {
      const slot = Number(await asked.ask("CLUSTER", "KEYSLOT", key));
      const ranges = (await asked.ask("CLUSTER", "SLOTS")) as [number, number, [string, number]][];
      const port = ranges.find(([from, to]) => slot >= from && slot <= to)?.[2][1];
      return nodes.find((node) => node.port === port) as RedisServer;
    },
  };
}

export async function until(what: string, done: () => Promise<boolean>, ms = 20_000): Promise<void> {
  for (let waited = 0; waited < ms; waited += 50) {
    if (await done().catch(() => false)) return;
    await sleep(50);
  }
  throw new Error(`waited ${ms} ms in vain: ${what}`);
}
