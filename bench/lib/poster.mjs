// Posts JSON over kept connections, one for each caller, with as little of its own work as a client can do: plain node:http sockets.
import { Agent, request } from "node:http";

export function poster(url, connections) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port, pathname } = new URL(url);
  const post = (body) =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const sent = request({ agent, hostname, port, path: pathname, method: "POST", headers }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () =>
          response.statusCode === 201 ? resolve(text) : reject(new Error(`the server answered ${response.statusCode}: ${text}`)),
        );
      });
      sent.on("error", reject);
      sent.end(body);
    });
  return { post, close: async () => agent.destroy() };
}
