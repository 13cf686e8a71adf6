// `makegood serve` as a user runs it, on the run's PostgreSQL: accepting over HTTP, one topic without a worker of its own to serve it unless
// the question delivers. Half of the messages carry a key, four tenants, as everywhere here.
import { fileURLToPath } from "node:url";
import { distPath } from "../lib/product.mjs";
import { startServer } from "../lib/server-process.mjs";

const schema = "makegood";
const tenants = ["north", "east", "south", "west"];
const topicPath = "/api/v1/topics/bench/accept";

async function put(base, path, method, body) {
  const init = { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(base + path, init);
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
}

export default {
  key: "serve",
  name: "makegood serve",
  ours: true,
  delivers: true,
  needs: "postgres",
  settings: "defaults; half of the messages with a key, four tenants",

  async setup() {},
  async reset({ pool }) {
    await pool.query(`drop schema if exists ${schema} cascade`);
  },
  async afterLoad() {},

  /** Paused unless the receiver is to have them: what is accepted only is attempted by nobody. */
  async serve({ pgUrl }, { url = "http://127.0.0.1:18080/", paused = true } = {}) {
    const program = (port) => ({
      args: [fileURLToPath(new URL("cli/main.js", distPath)), "serve"],
      env: { DATABASE_URL: pgUrl, MAKEGOOD_LOG_LEVEL: "error", MAKEGOOD_PORT: String(port) },
    });
    const server = await startServer(program, "/readyz");
    try {
      await put(server.base, topicPath, "PUT", { sink: { kind: "http", url } });
      if (paused) await put(server.base, `${topicPath}/pause`, "POST", {});
    } catch (error) {
      await server.stop();
      throw error;
    }
    return { url: `${server.base}/api/v1/messages`, stop: server.stop };
  },

  body(payload) {
    const { seq } = payload;
    const key = (seq >> 2) % 2 === 0 ? `order-${seq}` : undefined;
    return JSON.stringify({ topic: "bench/accept", tenant_id: tenants[seq % tenants.length], key, payload });
  },
};
