// The least that accepting over HTTP can be: a node:http server in a process of its own that parses the body and makes one insert for each
// request. No deduplication, no checks, no history.
import { fileURLToPath } from "node:url";
import { startServer } from "../lib/server-process.mjs";

const serverPath = fileURLToPath(new URL("../bare-server.mjs", import.meta.url));

export default {
  key: "bare-http",
  name: "bare node:http",
  needs: "postgres",
  settings: "node:http and a pool of 10, a named insert per request",

  async setup({ pool }) {
    await pool.query(`create schema bare;
      create table bare.accepted (id bigint generated always as identity primary key, topic text not null, tenant_id text, payload text not null,
        created_at timestamptz not null default now())`);
  },
  async reset({ pool }) {
    await pool.query("truncate bare.accepted");
  },
  async afterLoad() {},

  async serve({ pgUrl }) {
    const server = await startServer((port) => ({ args: [serverPath], env: { DATABASE_URL: pgUrl, PORT: String(port) } }), "/");
    return { url: `${server.base}/`, stop: server.stop };
  },

  body: (payload) => JSON.stringify({ topic: "bench/accept", tenant_id: "north", payload }),
};
