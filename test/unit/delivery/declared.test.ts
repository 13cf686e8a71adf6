/** N14: a topic declared in code is refused for what the API refuses it for, with the same code. */
import { describe, expect, it } from "vitest";
import {
  createMakegood,
  createMemoryStore,
  type SinkConfig,
  type TopicDefinition,
  type TopicOptions,
  topic,
} from "../../../src/index.ts";
import { generateSecret } from "../../../src/webhook/secret.ts";

const url = "https://example.com/in";
const secrets = [generateSecret()];

async function declare(options: TopicOptions): Promise<string> {
  const store = createMemoryStore();
  try {
    const mg = await createMakegood({ store, topics: [topic("code/topic", options)] });
    await mg.close();
    return "accepted";
  } catch (error) {
    expect(await store.topics.get("code/topic").catch(() => null), "nothing was stored").toBeNull();
    return (error as { code: string }).code;
  }
}

describe("a topic declared in code", () => {
  it.each<[string, TopicDefinition["sink"]]>([
    ["a secret that is none", { kind: "webhook", url, secrets: ["hunter2"] }],
    ["a secret that is too short", { kind: "webhook", url, secrets: ["whsec_aGVsbG8="] }],
    ["no secret", { kind: "webhook", url }],
    ["a secret where none belongs", { kind: "http", url, secrets }],
    ["a url that is none", { kind: "http", url: "not a url" }],
    ["another scheme", { kind: "http", url: "ftp://example.com/" }],
    ["a password in the url", { kind: "http", url: "https://me:secret@example.com/" }],
    ["a metadata address", { kind: "http", url: "http://169.254.169.254/latest" }],
    ["an address outside of its own allow-list", { kind: "http", url: "http://10.0.0.1/", trusted: false }],
    ["a header of the sink's own", { kind: "http", url, headers: { "content-length": "1" } }],
    ["a header with a line break", { kind: "http", url, headers: { "x-a": "1\r\nx-b: 2" } }],
    ["a status that is none", { kind: "http", url, statusMap: { "99": "retry" } }],
    ["a kind that is none", { kind: "htp", url }],
    ["no url", { kind: "http" }],
    ["an empty url", { kind: "notify", url: "" }],
    ["a timeout of no time", { kind: "http", url, timeoutMs: 0 }],
    ["a timeout that outlives its lease", { kind: "http", url, timeoutMs: 40_000 }],
    ["a function with a url", { kind: "function", url }],
    ["another answer to unknown", { kind: "http", url, onUnknown: "drop" as "hold" }],
  ])("is refused: %s", async (_what, stored) => {
    const sink = stored as SinkConfig;
    expect(await declare({ sink })).toBe("invalid_topic");
    expect(await declare({ sink: { kind: "http", url }, fallback: sink })).toBe("invalid_topic");
  });

  it("does not compile with what its kind does not take", async () => {
    const sinks: SinkConfig[] = [
      // @ts-expect-error there is no such kind
      { kind: "htp", url },
      // @ts-expect-error an http sink needs a url
      { kind: "http" },
      // @ts-expect-error a webhook sink needs its secrets
      { kind: "webhook", url },
      // @ts-expect-error only a webhook sink has secrets
      { kind: "notify", secrets },
      // @ts-expect-error a function has no url
      { kind: "function", url },
    ];
    for (const sink of sinks) expect(await declare({ sink })).toBe("invalid_topic");
    // @ts-expect-error likewise where it is declared
    expect(await declare({ sink: { kind: "http" } })).toBe("invalid_topic");
  });

  it("is refused for a retry policy that nobody registered", async () => {
    // @ts-expect-error there is no such policy
    expect(await declare({ sink: { kind: "http", url }, retry: "unheard-of" })).toBe("invalid_topic");
    // @ts-expect-error likewise among numbers
    expect(await declare({ sink: { kind: "http", url }, retry: { policy: "unheard-of" } })).toBe("invalid_topic");
  });

  it("is taken with a good one, private addresses included: its author could dial them", async () => {
    expect(await declare({ sink: { kind: "webhook", url: "http://127.0.0.1:8080/", secrets } })).toBe("accepted");
    expect(await declare({ sink: () => undefined, fallback: { kind: "notify" } })).toBe("accepted");
  });

  it("does not quote the secret", async () => {
    const sink = { kind: "webhook", url, secrets: ["whsec_hunter2"] } as const;
    const refused = createMakegood({ store: createMemoryStore(), topics: [topic("code/topic", { sink })] });
    await expect(refused).rejects.toThrow(/sink: a secret must/);
    await expect(refused).rejects.not.toThrow(/hunter2/);
  });
});
