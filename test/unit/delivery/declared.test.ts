/** N14: a topic declared in code is refused for what the API refuses it for, with the same code. */
import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, type SinkConfig, type TopicOptions, topic } from "../../../src/index.ts";
import { generateSecret } from "../../../src/sink/sign-webhook.ts";

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
  it.each<[string, SinkConfig]>([
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
  ])("is refused: %s", async (_what, sink) => {
    expect(await declare({ sink })).toBe("invalid_topic");
    expect(await declare({ sink: { kind: "http", url }, fallback: sink })).toBe("invalid_topic");
  });

  it("is refused for a retry policy that nobody registered", async () => {
    expect(await declare({ sink: { kind: "http", url }, retry: "unheard-of" })).toBe("invalid_topic");
  });

  it("is taken with a good one, private addresses included: whoever wrote it could dial them", async () => {
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
