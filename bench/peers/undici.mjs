// The bare loop that HTTP delivery is held against: undici, the same receiver, body, headers and concurrency, no store.
import { Agent, request } from "undici";
import { payload } from "../lib/payload.mjs";
import { nowMs, paced } from "../lib/time.mjs";

function headers(seq) {
  return {
    "content-type": "application/json",
    "idempotency-key": `key-${seq}`,
    "makegood-message-id": `0190b2d6-7f6e-7c3a-9d53-${String(seq).padStart(12, "0")}`,
    "makegood-topic": "bench/http",
    "makegood-attempt": "1",
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  };
}

export default {
  key: "undici",
  name: "bare undici",
  needs: "none",
  package: "undici",
  settings: "one Agent, as many connections as concurrent requests",

  async setup() {},
  async reset() {},
  async afterLoad() {},

  async worker({ http }, mode, onMessage) {
    const dispatcher = new Agent({ connections: http.concurrency });
    let next = 0;
    const send = async (seq, at) => {
      const body = payload(seq, at);
      const response = await request(http.url, { method: "POST", dispatcher, headers: headers(seq), body: JSON.stringify(body) });
      await response.body.dump();
      if (response.statusCode !== 200) throw new Error(`the receiver answered ${response.statusCode}`);
      onMessage(body);
    };
    const loop = async () => {
      while (next < http.count) await send(next++);
    };
    let running;
    return {
      async start() {
        running =
          mode === "http-paced"
            ? paced(http.perSecond, http.count, (seq) => send(seq, nowMs()).catch(console.error))
            : Promise.all(Array.from({ length: http.concurrency }, loop));
      },
      async stop() {
        await running;
        await dispatcher.close();
      },
    };
  },
};
