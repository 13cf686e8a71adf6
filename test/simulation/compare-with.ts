/**
 * `--store`: the histories of a seed on a real server. PostgreSQL: DATABASE_URL, or one of its own in a temporary directory; Redis: REDIS_URL.
 * Everything is made under a name of its own and nothing else is touched.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { compare } from "./compare.ts";
import { seedOf } from "./seeded-random.ts";

interface Server {
  /** A fresh, empty one, and how to leave nothing behind of it. */
  open(name: string): Promise<{ readonly store: Store; readonly drop: () => Promise<void> }>;
  close(): Promise<void>;
}

const HISTORY_STEPS = 4_000;

export async function compareWith(kind: "postgres" | "redis", seed: number, steps: number, json: boolean): Promise<number> {
  const server = kind === "postgres" ? await postgres() : redis();
  let calls = 0;
  let difference: string | null = null;
  try {
    for (let made = 0, at = 0; made < steps && difference === null; made += HISTORY_STEPS, at++) {
      const { store, drop } = await server.open(`simulate_${process.pid}_${at}`);
      await store.open();
      const found = await compare(seedOf(seed, at), Math.min(HISTORY_STEPS, steps), store);
      calls += found.calls;
      difference = found.difference && `history ${at + 1} (seed ${found.seed}), ${found.difference}`;
      await store.close();
      await drop();
    }
  } finally {
    await server.close();
  }
  if (json) console.log(JSON.stringify({ seed, store: kind, calls, difference }));
  else
    console.log(
      `seed ${seed} on ${kind}: ${calls} calls, ${difference === null ? "each answered as by the memory store" : `DIFFERENT: ${difference}`}`,
    );
  return difference === null ? 0 : 1;
}

async function postgres(): Promise<Server> {
  const given = process.env.DATABASE_URL;
  const folder = given ? null : await mkdtemp(join(tmpdir(), "makegood-simulate-"));
  // As root the server runs under another user, who must be able to enter.
  if (folder) await chmod(folder, 0o755);
  const embedded = folder ? await startEmbedded({ dataDir: join(folder, "data") }) : null;
  const url = given ?? (embedded?.url as string);
  return {
    async open(schema) {
      const drop = async (): Promise<void> => {
        const client = new pg.Client({ connectionString: url });
        await client.connect();
        await client.query(`drop schema if exists "${schema}" cascade`);
        await client.end();
      };
      return { store: createPostgresStore({ url, schema }), drop };
    },
    async close() {
      await embedded?.close();
      if (folder) await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

function redis(): Server {
  const url = process.env.REDIS_URL;
  if (!url) throw new Error("--store redis needs REDIS_URL: the address of a server to compare with");
  return {
    // What is left under the prefix is small and harmless; to find it would mean to look through everything else.
    open: async (prefix) => ({ store: createRedisStore({ redis: url, prefix }), drop: async () => {} }),
    close: async () => {},
  };
}
