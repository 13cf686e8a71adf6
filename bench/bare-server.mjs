// The server of the peer `bare-http`: one insert for each request, answered after its commit.
import { createServer } from "node:http";
import { makePool } from "./lib/postgres-tables.mjs";

const pool = makePool(process.env.DATABASE_URL, 10);
const text = "insert into bare.accepted (topic, tenant_id, payload) values ($1, $2, $3) returning id::text";

const server = createServer((request, response) => {
  if (request.method === "GET") return void response.end("ok");
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    const { topic, tenant_id: tenant, payload } = JSON.parse(body);
    pool.query({ name: "accept", text, values: [topic, tenant, JSON.stringify(payload)] }).then(
      ({ rows }) => response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ id: rows[0].id })),
      (error) => response.writeHead(500).end(error.message),
    );
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit(0));
