/**
 * The doctor's look at a Redis store: reachable, durable, of a clock like ours.
 */
import { errorText } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import type { Config } from "../../server/config/config.ts";
import { attestation } from "../../server/open-store.ts";
import { connectRedis, createRedisStore, readDurability, survivesOf } from "../../store/redis/index.ts";
import { checkDelivery } from "./delivery.ts";
import { clockSkew, type Finding, finding } from "./finding.ts";

export async function checkRedisStore({ store, redis_url, redis_attest, redis_prefix }: Config): Promise<Finding[]> {
  if (redis_url === null) return [];
  const beganMs = systemClock.monotonicMs();
  try {
    const port = await connectRedis(redis_url);
    try {
      const found = await readDurability(port, attestation(redis_attest));
      const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
      const askedMs = systemClock.wallMs();
      const [seconds, micros] = (await port.send(null, ["TIME"])) as [string, string];
      const half = (systemClock.wallMs() - askedMs) / 2;
      const facts = found.nodes.flatMap(({ node, findings }) =>
        findings.map(({ name, verdict, value, required, detail }) => {
          const status = verdict === "verified" ? "ok" : required ? "fail" : "warn";
          const text = [value, detail].filter((one) => one).join(": ");
          return finding(found.nodes.length > 1 ? `${name} ${node}` : name, status, text || verdict);
        }),
      );
      const kind = `Redis${port.cluster ? " Cluster" : ""}, examined in ${tookMs} ms; survives ${survivesOf(found)}`;
      const delivery = store === "redis" ? await checkDelivery(createRedisStore({ redis: port, prefix: redis_prefix })) : [];
      return [
        finding("redis", "ok", kind),
        ...facts,
        clockSkew(Number(seconds) * 1_000 + Number(micros) / 1_000, askedMs + half, half),
        ...delivery,
      ];
    } finally {
      await port.close();
    }
  } catch (error) {
    return [finding("redis", "fail", errorText(error))];
  }
}
