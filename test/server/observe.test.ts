/**
 * What the server says about itself: probes, health within a tenth of a second while the store hangs, metrics with bounded
 * labels, a status page that shows text as text, logs of one line each.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { MakegoodError } from "../../src/message/errors.ts";
import { createEvents } from "../../src/observe/events.ts";
import { createLastAnswer } from "../../src/observe/last-answer.ts";
import { createLog, escapeControl, logEvents } from "../../src/observe/log.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { createSeriesBook } from "../../src/observe/series.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { PAUSED, startTestServer, type TestServer } from "./support.ts";

let server: TestServer;
let trouble: "none" | "hangs" | "down" = "none";

/** A memory store that can stop answering. */
function fickle(): Store {
  const store = createMemoryStore();
  const guarded =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (trouble === "hangs") await new Promise(() => {});
      if (trouble === "down") throw new MakegoodError("store_unavailable", "the store is away");
      return call(...args);
    };
  return {
    ...store,
    check: guarded(store.check),
    counts: guarded(store.counts),
    enqueue: guarded(store.enqueue),
    list: guarded(store.list),
    get: guarded(store.get),
  };
}

beforeAll(async () => {
  // The engine has topics of its own, which would be counted too.
  server = await startTestServer({ MAKEGOOD_RECOVERY: "off" }, { store: fickle() });
  await server.send("PUT", "/api/v1/topics/obs/erve", PAUSED);
  await server.send("POST", "/api/v1/messages", { topic: "obs/erve", payload: 1 });
});
afterAll(async () => {
  trouble = "none";
  await server.close({ drainMs: 100 });
});

/**
 * What the first of some took in hundredths of a second that this process had, and the fastest in milliseconds: a busy machine may hold up
 * one of them, and keeps this process from counting meanwhile.
 */
async function timed(times: number, path: string): Promise<{ first: number; best: number; answer: string }> {
  let [ticks, first, best, answer] = [0, 0, Number.POSITIVE_INFINITY, ""];
  const counting = setInterval(() => ticks++, 10);
  for (let n = 0; n < times; n++) {
    const began = performance.now();
    answer = await (await server.api(path)).text();
    best = Math.min(best, performance.now() - began);
    if (n === 0) first = ticks;
  }
  clearInterval(counting);
  return { first, best, answer };
}

describe("probes", () => {
  it("are well when everything is", async () => {
    expect(await (await server.api("/livez")).text()).toBe("ok\n");
    expect(await (await server.api("/readyz")).text()).toBe("ok\n");
    expect(await (await server.api("/readyz?verbose")).text()).toContain("[+] store ok");
    const health = (await (await server.api("/health")).json()) as Record<string, unknown>;
    expect(health).toMatchObject({
      status: "healthy",
      store: { up: true, name: "memory", survives: "nothing" },
      dispatcher: { state: "working" },
      topics: { count: 1, paused: ["obs/erve"] },
      counts: [{ topic: "obs/erve", status: "pending", count: 1 }],
    });
  });

  it("say that the store is down: 503 with Retry-After, and nothing is accepted", async () => {
    trouble = "down";
    await vi.waitFor(async () => expect((await server.api("/readyz")).status).toBe(503), { timeout: 15_000 });
    const ready = await server.api("/readyz");
    expect(await ready.json()).toMatchObject({
      code: "not_ready",
      checks: [
        { name: "store", ok: false },
        { name: "accepting", ok: true },
        { name: "deliver", ok: true, detail: "only below the primary store; what is taken now survives nothing" },
      ],
    });
    await vi.waitFor(async () => expect((await server.api("/health")).status).toBe(503), { timeout: 15_000 });
    const health = await server.api("/health");
    expect([health.status, ((await health.json()) as { status: string }).status]).toEqual([503, "unhealthy"]);
    const list = await server.api("/api/v1/messages");
    expect([list.status, list.headers.get("retry-after")]).toEqual([503, "2"]);
    const post = await server.send("POST", "/api/v1/messages", { topic: "obs/erve", payload: 2 });
    expect([post.status, post.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(await post.json()).toMatchObject({ code: "store_unavailable" });
    expect((await server.api("/livez")).status).toBe(200);
    trouble = "none";
    await vi.waitFor(async () => expect((await server.api("/health")).status).toBe(200), { timeout: 15_000 });
  });

  it("N19: answer within 100 ms, and scrapes within 1.5 s, while the store hangs; silence is a failure only after 5 s", async () => {
    trouble = "hangs";
    await server.api("/livez");
    const { first, best, answer } = await timed(5, "/health");
    expect(first).toBeLessThan(25);
    expect(best).toBeLessThan(100);
    const health = JSON.parse(answer) as { status: string; counts: unknown[]; age_ms: number };
    expect(health.status).toBe("healthy");
    expect(health.counts).toHaveLength(1);
    await vi.waitFor(
      async () => {
        const later = (await (await server.api("/health")).json()) as { status: string; reasons: string[] };
        expect(later.status).toBe("unhealthy");
        expect(later.reasons[0]).toContain("no answer for 5000 ms");
      },
      { timeout: 15_000, interval: 250 },
    );
    const scrape = await timed(3, "/metrics");
    expect(scrape.first).toBeLessThan(150);
    expect(scrape.answer).toContain('makegood_messages{topic="obs/erve",status="pending"} 1');
    expect(scrape.best).toBeLessThan(1_500);
    trouble = "none";
  });
});

describe("metrics", () => {
  it("count what was accepted and what is there", async () => {
    const text = await (await server.api("/metrics")).text();
    for (const line of [
      'makegood_accepted_total{topic="obs/erve"} 1',
      'makegood_info{version="',
      "process_cpu_seconds_total",
      'makegood_breaker_state{topic="obs/erve"} 0',
    ]) {
      expect(text).toContain(line);
    }
    expect((await server.api("/metrics")).headers.get("content-type")).toContain("text/plain; version=0.0.4");
  });

  it("give no more than a thousand topics a label of their own (attack 29)", async () => {
    const events = createEvents();
    const metrics = createMetrics({
      events,
      version: "0",
      levels: async () => ({ messages: [], breakers: [], ageMs: 0, up: true }),
    });
    for (let n = 0; n < 1_500; n++) events.emit({ type: "accepted", topic: `made/up${n}`, inserted: 1, duplicate: 0 });
    const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("makegood_accepted_total{"));
    expect(lines).toHaveLength(1_001);
    expect(lines).toContain('makegood_accepted_total{topic="other"} 500');
    metrics.close();
  });

  it("are written as a Prometheus server reads them: buckets that add up, labels escaped, and nothing of what is over", async () => {
    const book = createSeriesBook();
    const seconds = book.histogram("h", "Durations.", [0.1, 1], { labels: ["topic"] });
    for (const value of [0.05, 0.1, 0.5, 3]) seconds.observe(["a"], value);
    const gauge = book.gauge("g", "Levels.", { labels: ["topic", "status"] });
    gauge.set(['say "hi" \\', "x\ny"], 2);
    gauge.set(["over", "x"], 1);
    gauge.reset();
    gauge.inc(['say "hi" \\', "x\ny"]);
    book.counter("c", "Bare.");
    expect(book.text().split("\n")).toEqual([
      "# HELP h Durations.",
      "# TYPE h histogram",
      'h_bucket{le="0.1",topic="a"} 2',
      'h_bucket{le="1",topic="a"} 3',
      'h_bucket{le="+Inf",topic="a"} 4',
      'h_sum{topic="a"} 3.65',
      'h_count{topic="a"} 4',
      "",
      "# HELP g Levels.",
      "# TYPE g gauge",
      'g{topic="say \\"hi\\" \\\\",status="x\\ny"} 1',
      "",
      "# HELP c Bare.",
      "# TYPE c counter",
      "c 0",
      "",
    ]);
  });

  it("N21: wait for no count that is known to take longer, and count less often when a count takes long", async () => {
    let asked = 0;
    let monotonicMs = 0;
    const clock = { ...systemClock, monotonicMs: () => monotonicMs };
    const levels = createLastAnswer(
      clock,
      5_000,
      async () => {
        asked++;
        await Promise.resolve();
        monotonicMs += 1_000;
        return asked;
      },
      true,
    );
    expect((await levels.read(150)).value).toBe(1);
    monotonicMs += 15_000;
    expect(await levels.read(150)).toMatchObject({ value: 1, ageMs: 15_000 });
    expect(asked).toBe(1);
    monotonicMs += 6_000;
    // The last one took a second: this one is begun, and not waited for.
    expect((await levels.read(150)).value).toBe(1);
    expect(asked).toBe(2);
  });

  it("turn every kind of event into a number", async () => {
    const events = createEvents();
    const metrics = createMetrics({
      events,
      version: "0",
      levels: async () => ({ messages: [], breakers: [], ageMs: null, up: false }),
    });
    const attempt = {
      type: "attempt",
      topic: "a/b",
      id: "x",
      attempt: 1,
      ms: 20,
      code: null,
      error: null,
      alert: false,
    } as const;
    events.emit({ ...attempt, outcome: "delivered", status: "delivered" });
    events.emit({ ...attempt, outcome: "reject", status: "dead" });
    events.emit({ type: "claimed", count: 7, ms: 1 });
    events.emit({ type: "reclaimed", count: 3 });
    events.emit({ type: "claim_lost", topic: "a/b", id: "x", attempt: 1 });
    events.emit({ type: "breaker", topic: "a/b", state: "open", reason: null });
    events.emit({ type: "store_error", during: "claim", error: "x", consecutive: 1 });
    const text = await metrics.text();
    for (const line of [
      'makegood_attempts_total{topic="a/b",outcome="delivered"} 1',
      'makegood_died_total{topic="a/b"} 1',
      'makegood_attempt_seconds_count{topic="a/b"} 2',
      "makegood_claimed_messages_total 7",
      "makegood_reclaimed_total 3",
      'makegood_claim_lost_total{topic="a/b"} 1',
      'makegood_breaker_trips_total{topic="a/b"} 1',
      'makegood_store_errors_total{during="claim"} 1',
      "makegood_store_up 0",
    ]) {
      expect(text).toContain(line);
    }
    metrics.close();
  });
});

describe("the status page", () => {
  it("is HTML without script, with a policy, links and counts", async () => {
    const response = await server.api("/");
    expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    const html = await response.text();
    expect(html).toContain('<html lang="en">');
    expect(html).toContain("prefers-color-scheme:dark");
    expect(html).toContain('<a href="/api/v1/topics/obs/erve">obs/erve</a>');
    expect(html).toContain("paused");
    expect(html).not.toMatch(/<script|javascript:|\son\w+=/i);
  });

  it("shows what a receiver said as text (attack 15)", async () => {
    await server.store.topics.disable("obs/erve", "<img src=x onerror=alert(1)>");
    await server.store.topics.pause("obs/erve", true);
    await server.store.topics.disable("obs/erve", "<img src=x onerror=alert(1)>");
    await vi.waitFor(
      async () => {
        const html = await (await server.api("/")).text();
        expect(html).not.toContain("<img");
      },
      { timeout: 15_000 },
    );
  });
});

describe("logs (attack 17)", () => {
  const evil = 'a\u001b[31m\r\n{"level":"fake"}\u009b\u2028\u202e\u0000';

  it("are one JSON line each, whatever is in them", () => {
    const lines: string[] = [];
    const log = createLog({ clock: systemClock, format: "json", write: (line) => void lines.push(line) });
    log.info(evil, { error: evil, ["__proto__"]: evil, more: new Error(evil) });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^[^\p{Cc}\u2028\u202e]*\n$/u);
    expect(JSON.parse(lines[0] as string)).toMatchObject({ level: "info", message: evil, error: evil });
  });

  it("are one safe line each as text too", () => {
    const lines: string[] = [];
    createLog({ clock: systemClock, format: "text", write: (line) => void lines.push(line) }).warn(evil, { error: evil, n: 1 });
    expect(lines[0]).toMatch(/^[^\p{Cc}\u2028\u202e]*\n$/u);
    expect(escapeControl("\u001b")).toBe("\\u001b");
  });

  it("tell people about dead letters and not about every delivery", () => {
    const lines: string[] = [];
    const events = createEvents();
    logEvents(events, createLog({ clock: systemClock, format: "json", write: (line) => void lines.push(line) }));
    const attempt = {
      type: "attempt",
      topic: "a/b",
      id: "x",
      attempt: 1,
      ms: 2,
      code: "http_500",
      error: "no",
      alert: false,
    } as const;
    events.emit({ ...attempt, outcome: "delivered", status: "delivered" });
    events.emit({ ...attempt, outcome: "retry", status: "pending" });
    expect(lines).toHaveLength(0);
    events.emit({ ...attempt, outcome: "retry", status: "dead" });
    expect(JSON.parse(lines[0] as string)).toMatchObject({ level: "error", event: "attempt", id: "x", code: "http_500" });
  });
});

describe("closing", () => {
  it("finishes answers under way, is not ready meanwhile, and refuses new connections after", async () => {
    const memory = createMemoryStore();
    let entered = 0;
    const slow: Store = {
      ...memory,
      async enqueue(...args) {
        entered++;
        await new Promise((resolve) => setTimeout(resolve, 300));
        return memory.enqueue(...args);
      },
    };
    const other = await startTestServer({}, { store: slow });
    await other.send("PUT", "/api/v1/topics/a/b", PAUSED);
    const answer = other.send("POST", "/api/v1/messages", { topic: "a/b", payload: 1 });
    await expect.poll(() => entered).toBe(1);
    await other.close({ drainMs: 2_000 });
    expect((await answer).status).toBe(201);
    await expect(other.api("/livez")).rejects.toThrow();
  });
});
