/**
 * A COMMIT has three outcomes, for a reserve and for a finalisation, too: whatever was lost on the way, the call answers as if nothing
 * had been, and there are one turn, one debit and one message.
 */
import { describe, expect, it } from "vitest";
import { databaseUrl } from "../support/postgres.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { usageStage } from "./scene.ts";

const COMMIT = /Q....commit\0/s;
const ACTS = ["lose-reply", "swallow-reply", "lose-request"] as const;

describe.concurrent.for(ACTS)("faults 10 and 11: %s of the COMMIT", (act) => {
  it(`OBX-12: ${act}: the finaliser learns that it won, and it happened once`, async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    await using stage = await usageStage({ via: (url) => proxy.via(url) });
    const turn = await stage.running();
    const rule = proxy.rule({ match: COMMIT, act });
    const end = { outcome: "completed", usage: { inputTokens: 10, outputTokens: 10 } } as const;
    const result = await stage.usage.finalize({ ...turn, ...end });
    expect(rule.count()).toBe(1);
    expect(result).toMatchObject({ kind: "final", won: true, turn: { state: "completed" } });
    expect(await stage.payloads()).toHaveLength(1);
    expect(await stage.sums()).toEqual([0n, 180n]);
    expect(await stage.usage.verify()).toEqual([]);
  });

  it(`EV-38: ${act}: the turn is reserved once`, async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    await using stage = await usageStage({ via: (url) => proxy.via(url) });
    const rule = proxy.rule({ match: COMMIT, act });
    const result = await stage.usage.reserve(stage.input());
    expect(rule.count()).toBe(1);
    expect(result.kind).toBe("reserved");
    expect(await stage.sums()).toEqual([33_000n, 0n]);
    expect(await stage.usage.verify()).toEqual([]);
  });
});
