/**
 * A port for a server that a test starts, stops and starts again. It is below the range from which the system takes ports for outgoing
 * connections, so that none of the thousands of a run gets it between the look and the start, or while the server is away.
 */
import { createServer } from "node:net";

const FIRST = 10_000;
const COUNT = 10_000;
/** From a node of a Redis Cluster to its second port. */
const BUS = 10_000;
/** Those of the range at which no sink sends: databases and caches have them. */
const REFUSED: readonly number[] = [10_080, 11_211, 16_379];

export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (REFUSED.includes(port)) continue;
    if ((await isFree(port)) && (await isFree(port + BUS))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
