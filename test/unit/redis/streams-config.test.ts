/** The seeds' variables of their streams: what they mean, all mistakes at once, and no effect where no stream is opened. */
import { describe, expect, it } from "vitest";
import { readConfig } from "../../../src/server/config/config.ts";

const read = (env: Record<string, string>) => readConfig({ env, cwd: "/nonexistent" });
const faults = async (env: Record<string, string>): Promise<readonly string[]> => {
  const found = await read(env);
  return found.ok ? [] : found.faults;
};
const config = async (env: Record<string, string>) => {
  const found = await read(env);
  if (!found.ok) throw new Error(found.faults.join("\n"));
  return found.config;
};

describe("MAKEGOOD_STREAMS", () => {
  it("opens nothing unless it is set; the seeds' variables then belong to another program, and those that look like ours are named", async () => {
    const wrong = { CONSUMER_GROUP: "with space", DATA_STORAGE_URL: "nonsense", CONSUMER_NAME: "a b", REDIS_ADDR: "elsewhere" };
    const found = await config({ ...wrong, M10_STREAM_KEY: "k", M10_STREAM_MAX_LEN: "many" });
    expect(found.streams).toBeNull();
    expect(found.unused_variables).toEqual(["REDIS_ADDR", "M10_STREAM_KEY", "M10_STREAM_MAX_LEN"]);
    expect((await config({})).unused_variables).toEqual([]);
  });

  it("audit: REDIS_ADDR as the seed has it or as a URL, else REDIS_URL; the group's default is the preset's", async () => {
    const audit = (env: Record<string, string>) => config({ MAKEGOOD_STREAMS: "audit", ...env });
    expect((await audit({ REDIS_ADDR: "redis-dlq:6379" })).streams).toEqual({
      redis: "redis://redis-dlq:6379",
      audit: { group: undefined, serviceUrl: null },
      recovery: null,
      consumerName: undefined,
    });
    const url = "redis://h:6379";
    const both = await audit({
      REDIS_ADDR: "rediss://u:p@a:1,[::1]:2",
      REDIS_URL: url,
      CONSUMER_GROUP: "data-storage-retry-workers",
    });
    expect(both.streams).toMatchObject({
      redis: "rediss://u:p@a:1,redis://[::1]:2",
      audit: { group: "data-storage-retry-workers" },
    });
    expect((await audit({ REDIS_URL: url, CONSUMER_NAME: "pod-7" })).streams).toMatchObject({
      redis: url,
      consumerName: "pod-7",
    });
    const sender = { MAKEGOOD_STORE: "redis", REDIS_URL: url, DATA_STORAGE_URL: "http://data-storage:8080" };
    expect((await audit(sender)).streams?.audit).toEqual({ group: undefined, serviceUrl: "http://data-storage:8080" });
  });

  it("REC-31, REC-40: recovery has the seed's defaults, each under the seed's variable", async () => {
    const recovery = async (env: Record<string, string>) =>
      (await config({ MAKEGOOD_STREAMS: "recovery", REDIS_URL: "redis://h:1", ...env })).streams?.recovery;
    expect(await recovery({})).toEqual({
      stream: "m10:evaluate:stream",
      group: "m10:evaluate:group",
      deadStream: undefined,
      lengthMax: undefined,
      reclaimIdleMs: 60_000,
      reclaimsMax: 3,
      reclaimBaseMs: 60_000,
      reclaimIdleMsMax: 86_400_000,
    });
    const all = {
      M10_STREAM_KEY: "k",
      M10_CONSUMER_GROUP: "g",
      M10_DEAD_LETTER_STREAM: "d",
      M10_STREAM_MAX_LEN: "7",
      M10_CLAIM_IDLE_MS: "1000",
      M10_MAX_RECLAIM_ATTEMPTS: "5",
      M10_RECLAIM_BASE_BACKOFF_MS: "2000",
      M10_RECLAIM_MAX_BACKOFF_MS: "9000",
    };
    expect(await recovery(all)).toEqual({
      stream: "k",
      group: "g",
      deadStream: "d",
      lengthMax: 7,
      reclaimIdleMs: 1_000,
      reclaimsMax: 5,
      reclaimBaseMs: 2_000,
      reclaimIdleMsMax: 9_000,
    });
  });

  it("DR-42: the key of a counter that Redis keeps itself is named as one without effect", async () => {
    const env = { MAKEGOOD_STREAMS: "recovery", REDIS_URL: "redis://h:1", M10_RECLAIM_ATTEMPTS_KEY: "m10:reclaim:attempts" };
    expect((await config(env)).unused_variables).toEqual(["M10_RECLAIM_ATTEMPTS_KEY"]);
  });

  it("CON-27: every mistake is reported at once, the pair of limit and backoff among them, and no password is repeated", async () => {
    const found = await faults({
      MAKEGOOD_STREAMS: "audit,recovery",
      MAKEGOOD_STORE: "memory",
      REDIS_ADDR: "http://u:hunter2@h",
      CONSUMER_GROUP: "two words",
      CONSUMER_NAME: "a\tb",
      M10_STREAM_KEY: "same",
      M10_DEAD_LETTER_STREAM: "same",
      M10_STREAM_MAX_LEN: "-1",
      M10_CLAIM_IDLE_MS: "soon",
      M10_MAX_RECLAIM_ATTEMPTS: "1001",
      M10_RECLAIM_BASE_BACKOFF_MS: "120000",
      M10_RECLAIM_MAX_BACKOFF_MS: "90000",
    });
    const expected = [
      /^REDIS_ADDR: must be host:port/,
      /^CONSUMER_GROUP: .*"two words"/,
      /^MAKEGOOD_STREAMS opens the audit stream, and MAKEGOOD_STORE memory keeps no audit records: .*DATA_STORAGE_URL/,
      /^M10_STREAM_MAX_LEN: must be an integer from 1/,
      /^M10_CLAIM_IDLE_MS: .*"soon"/,
      /^M10_MAX_RECLAIM_ATTEMPTS: must be an integer from 0 to 1000/,
      /^M10_RECLAIM_MAX_BACKOFF_MS \(90000\) is below M10_RECLAIM_BASE_BACKOFF_MS \(120000\)/,
      /^M10_DEAD_LETTER_STREAM is also M10_STREAM_KEY/,
      /^CONSUMER_NAME: /,
    ];
    expect(found).toHaveLength(expected.length);
    for (const pattern of expected) expect(found).toContainEqual(expect.stringMatching(pattern));
    expect(found.join()).not.toContain("hunter2");
    expect(await faults({ MAKEGOOD_STREAMS: "audits" })).toEqual([
      expect.stringMatching(/^MAKEGOOD_STREAMS: .*not one of audit, recovery/),
    ]);
    expect(await faults({ MAKEGOOD_STREAMS: "audit" })).toEqual([expect.stringMatching(/REDIS_ADDR or REDIS_URL/)]);
    const idle = {
      MAKEGOOD_STREAMS: "recovery",
      REDIS_URL: "redis://h:1",
      M10_CLAIM_IDLE_MS: "90000",
      M10_RECLAIM_MAX_BACKOFF_MS: "80000",
    };
    expect(await faults(idle)).toEqual([expect.stringMatching(/is below M10_CLAIM_IDLE_MS \(90000\)/)]);
  });
});
