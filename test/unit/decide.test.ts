import { describe, expect, it } from "vitest";
import { type Decided, decide } from "../../src/message/decide.ts";
import { retryDelayMs, retryPolicy } from "../../src/message/retry-policy.ts";

const policy = retryPolicy({ policy: "exponential", attemptsMax: 3 })!;
const rules = { policy, ordering: "none", onUnknown: "retry" } as const;
const message: Decided = { attempt: 1, base: 0, handedDown: false, suspicion: 0 };
const retry = { kind: "retry", code: "http_503", error: "503" } as const;

describe("decide", () => {
  it("CON-21: dies at the attempt that reaches the maximum, not one later", () => {
    expect(decide({ ...message, attempt: 2 }, retry, rules, 0).kind).toBe("retry");
    expect(decide({ ...message, attempt: 3 }, retry, rules, 0).kind).toBe("dead");
  });

  it("counts the budget within a generation: attempts keep growing", () => {
    expect(decide({ ...message, attempt: 5, base: 3 }, retry, rules, 0).kind).toBe("retry");
    expect(decide({ ...message, attempt: 6, base: 3 }, retry, rules, 0).kind).toBe("dead");
  });

  it("honours Retry-After and clamps it to an hour", () => {
    const asked = (retryAfterMs: number) => decide(message, { ...retry, retryAfterMs }, rules, 0);
    expect(asked(120_000)).toMatchObject({ delayMs: 120_000 });
    expect(asked(10 * 365 * 86_400_000)).toMatchObject({ delayMs: 3_600_000 });
    expect(asked(-5)).toMatchObject({ delayMs: 500 });
  });

  it("settlement: five waits of 1, 2, 4, 8, 10 minutes, before the attempts of a message handed down", () => {
    const settlement = retryPolicy({ policy: "settlement", jitter: "none" })!;
    expect([1, 2, 3, 4, 5].map((n) => retryDelayMs(settlement, n, 0) / 60_000)).toEqual([1, 2, 4, 8, 10]);
    const down = (attempt: number) =>
      decide({ ...message, handedDown: true, attempt }, retry, { ...rules, policy: settlement }, 0);
    expect([1, 2, 3, 4].map((n) => (down(n) as { delayMs: number }).delayMs / 60_000)).toEqual([2, 4, 8, 10]);
    expect(down(5).kind).toBe("dead");
  });

  it("OBX-22, CON-33: the registry has each domain's schedule, doubled or by table, never past its cap, with equal jitter", () => {
    const minutes = (name: string, count: number, random: number) =>
      Array.from({ length: count }, (_, i) => retryDelayMs(retryPolicy({ policy: name })!, i + 1, random) / 60_000);
    expect(minutes("settlement", 6, 1)).toEqual([1, 2, 4, 8, 10, 10]);
    expect(minutes("audit", 6, 1)).toEqual([1, 5, 15, 60, 240, 1440]);
    expect(minutes("usage", 12, 1).map((wait) => wait * 60)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    expect(minutes("recovery-reclaim", 13, 1)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440]);
    expect(minutes("recovery-outbox", 9, 1)).toEqual([0.5, 1, 2, 4, 8, 16, 32, 60, 60]);
    expect(
      ["settlement", "audit", "recovery-reclaim", "recovery-outbox"].map((n) => retryPolicy({ policy: n })?.attemptsMax),
    ).toEqual([5, 6, 3, 5]);
    for (const random of [0, 0.25, 0.5, 0.75]) {
      expect(minutes("settlement", 5, random)).toEqual([1, 2, 4, 8, 10].map((wait) => (wait * (1 + random)) / 2));
    }
  });

  it("charges nobody for a crash until it was alone", () => {
    expect(decide(message, { kind: "lost" }, rules, 0)).toMatchObject({ counted: false, suspicion: 1 });
    expect(decide({ ...message, suspicion: 1 }, { kind: "lost" }, rules, 0)).toMatchObject({
      counted: false,
      suspicion: 2,
    });
    expect(decide({ ...message, suspicion: 2 }, { kind: "lost" }, rules, 0)).toMatchObject({ kind: "retry", counted: true });
    expect(decide({ ...message, attempt: 3, suspicion: 2 }, { kind: "lost" }, rules, 0)).toMatchObject({ kind: "dead" });
  });

  it("N9, N18: what this process cannot do goes back as if it had never been claimed, however often", () => {
    const unserved = { kind: "unserved", code: "address_refused", error: "a loopback address" } as const;
    for (const attempt of [1, 3, 50]) {
      expect(decide({ ...message, attempt }, unserved, { ...rules, onUnknown: "hold" }, 0)).toEqual({ kind: "release" });
    }
  });

  it("an interrupted attempt is not a failure", () => {
    expect(decide({ ...message, attempt: 3 }, { kind: "interrupted" }, rules, 0)).toMatchObject({
      kind: "retry",
      delayMs: 0,
      counted: false,
    });
  });

  it("a move that was cut off leaves the wait as it was, and an attempt that was made elsewhere is written as what it was", () => {
    const move = { waitMs: 700, error: "away" };
    expect(decide(message, { kind: "interrupted", move }, rules, 0)).toMatchObject({
      ...{ kind: "retry", delayMs: 700, counted: false, outcome: "interrupted", code: "move_interrupted" },
    });
    const attempt = {
      outcome: "unknown",
      code: "timeout",
      error: "x",
      durationMs: 5,
      counted: true,
      dead: false,
      waitMs: 900,
    } as const;
    expect(decide(message, { kind: "made", attempt }, rules, 0.9)).toEqual({
      ...{ kind: "retry", delayMs: 900, counted: true, suspicion: message.suspicion, retried: true },
      ...{ outcome: "unknown", code: "timeout", error: "x" },
    });
    const strict = { ...rules, ordering: "strict" } as const;
    expect(decide(message, { kind: "made", attempt: { ...attempt, dead: true } }, strict, 0)).toMatchObject({
      ...{ kind: "dead", blocksOrder: true, outcome: "unknown" },
    });
  });

  it("a strict topic's dead head keeps its key closed", () => {
    const reject = { kind: "reject", code: "http_422", error: "422" } as const;
    expect(decide(message, reject, { ...rules, ordering: "strict" }, 0)).toMatchObject({ kind: "dead", blocksOrder: true });
    expect(decide(message, reject, { ...rules, ordering: "key" }, 0)).toMatchObject({ kind: "dead", blocksOrder: false });
  });

  it("unknown is held where the topic says so", () => {
    const unknown = { kind: "unknown", code: "timeout", error: "no answer" } as const;
    expect(decide(message, unknown, { ...rules, onUnknown: "hold" }, 0)).toMatchObject({ kind: "hold", counted: true });
    expect(decide(message, unknown, rules, 0)).toMatchObject({ kind: "retry", counted: true });
  });
});
