/**
 * What a Redis says about itself, for a person who asks whether it can be trusted with messages: reachable, durable, of a clock like ours. It
 * only reads.
 */
import { systemClock } from "../../platform/clock.ts";
import { type Examined, examined, skewOf } from "../shared/examined.ts";
import { type Attestation, readDurability, survivesOf } from "./durability.ts";
import type { RedisPort } from "./port.ts";

export async function examineRedis(port: RedisPort, attest: Attestation): Promise<Examined[]> {
  const beganMs = systemClock.monotonicMs();
  const durability = await readDurability(port, attest);
  const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
  const { nodes } = durability;
  const facts = nodes.flatMap(({ node, findings }) =>
    findings.map(({ name, verdict, value, required, detail }) => {
      const text = [value, detail].filter((one) => one).join(": ");
      const which = nodes.length > 1 ? `${name} ${node}` : name;
      return examined(which, verdict === "verified", text || verdict, required ? "fail" : "warn");
    }),
  );
  const kind = `Redis${port.cluster ? " Cluster" : ""}, examined in ${tookMs} ms; survives ${survivesOf(durability)}`;
  const skew = await skewOf(async () => {
    const [seconds, micros] = (await port.send(null, ["TIME"])) as [string, string];
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  });
  return [examined("redis", true, kind), ...facts, skew];
}
