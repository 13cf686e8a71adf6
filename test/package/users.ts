/**
 * Programs that a user might write: one with every door, and one for a page. They are compiled with what a strict project would set, and
 * nothing is installed beside the package but the types of Node.
 */

/** Every door, used as its declarations allow. Redis clients are not installed, and the types of pg are not, either. */
export const EVERY_DOOR = `
import { createMakegood, createMemoryStore, isMakegoodError, topic, type Makegood } from "makegood";
import { fromKysely, fromPostgresJs, type KyselyTransaction } from "makegood/adapters";
import { ApiError, createClient, type AnswerOf, type InputOf } from "makegood/client";
import { createInbox } from "makegood/inbox";
import { createJournal, readJournal } from "makegood/journal";
import { createPostgresStore, migrateUp, startEmbedded } from "makegood/postgres";
import { createSettlementClient, createUsage, usageTopic, type SettlementOptions } from "makegood/presets";
import { connectRedis, createRedisStore, fromIoredis, fromNodeRedis } from "makegood/redis";
import { createApp, readConfig, startServer } from "makegood/server";
import { sinkConformance, storeConformance } from "makegood/testing";
import { generateSecret, signWebhook, verifyWebhook } from "makegood/webhook";

const finalize = topic<{ charge: string }>("billing/finalize", {
  sink: { kind: "http", url: "https://billing.example/finalize" },
  retry: { attemptsMax: 10 },
});

export async function library(client: { query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }> }): Promise<string> {
  const mg: Makegood = await createMakegood({ store: createPostgresStore({ url: "postgres://localhost/app" }), topics: [finalize] });
  const { id } = await mg.enqueue(finalize, { charge: "ch_1" }, { tx: client, key: "finalize-ch_1" });
  await using other = await createMakegood({ store: createMemoryStore() });
  const waiting: string | undefined = (await other.get(id))?.pendingReason?.code;
  await mg.close();
  return waiting ?? id;
}

export async function overHttp(): Promise<AnswerOf<"getMessage">> {
  const client = createClient({ url: "http://127.0.0.1:4600", token: "t" });
  const input: InputOf<"enqueue"> = { topic: "billing/finalize", payload: { charge: "ch_1" }, key: "k" };
  const answer = await client.enqueue(input);
  // @ts-expect-error an id is needed
  await client.getMessage();
  if (!("id" in answer)) throw new ApiError(500, {});
  return client.getMessage({ id: answer.id });
}

export async function receiver(headers: Headers, body: string): Promise<number> {
  const request = verifyWebhook({ headers, body, secrets: generateSecret() });
  return request.ok ? request.secret : signWebhook({ id: "i", body, secrets: [] })["webhook-id"].length;
}

export const failed = (error: unknown): string => (isMakegoodError(error) ? error.code : "unknown");
export const rest = {
  fromKysely, fromPostgresJs, createInbox, createJournal, readJournal, migrateUp, startEmbedded, createSettlementClient, createUsage, usageTopic,
  connectRedis, createRedisStore, fromIoredis, fromNodeRedis, createApp, readConfig, startServer, sinkConformance, storeConformance,
};
export type Rest = [KyselyTransaction, SettlementOptions];
`;

/** What a page may use: there are no types of Node there. */
export const PAGE = `
import { createClient, type AnswerOf, type InputOf } from "makegood/client";
import { verifyWebhook } from "makegood/webhook";

const input: InputOf<"listMessages"> = { status: "dead" };
export const dead = async (): Promise<AnswerOf<"listMessages">> => createClient({ url: location.origin }).listMessages(input);
export const verified = (headers: Headers, body: ArrayBuffer) => verifyWebhook({ headers, body, secrets: "s" }).ok;
`;

/** The compiler's own library need not be checked; everything else that is declared is. */
const STRICT = { strict: true, noEmit: true, skipLibCheck: false, skipDefaultLibCheck: true, target: "ES2022" };
const NODE16 = { module: "node16", moduleResolution: "node16" };
const BUNDLER = { module: "es2022", moduleResolution: "bundler" };
const EXACT = { exactOptionalPropertyTypes: true };
/** What `await using` needs comes with the types of Node. */
const NODE = { types: ["node"], lib: ["ES2022"] };

const IN_A_PAGE = { ...STRICT, ...BUNDLER, lib: ["ES2022", "DOM"], types: [] };

export interface Program {
  readonly title: string;
  readonly source: string;
  readonly options: object;
  /** Absent: by the oldest compiler that our declarations are for. */
  readonly by?: "ours";
  /** Only in the soak. */
  readonly soak?: boolean;
}

/** What compiles with exact optional properties compiles without them as well; the soak tries it. */
export const PROGRAMS: readonly Program[] = [
  { title: "node16, exact optional properties", source: EVERY_DOOR, options: { ...STRICT, ...NODE16, ...EXACT, ...NODE } },
  // By our own compiler, which takes a fifth of the time; by the oldest one in the soak.
  { title: "a page, without the types of Node", source: PAGE, options: IN_A_PAGE, by: "ours" },
  { title: "a page, without the types of Node", source: PAGE, options: IN_A_PAGE, soak: true },
  { title: "node16", source: EVERY_DOOR, options: { ...STRICT, ...NODE16, ...NODE }, soak: true },
  { title: "bundler", source: EVERY_DOOR, options: { ...STRICT, ...BUNDLER, ...NODE }, soak: true },
  {
    title: "bundler, exact optional properties",
    source: EVERY_DOOR,
    options: { ...STRICT, ...BUNDLER, ...EXACT, ...NODE },
    soak: true,
  },
  {
    title: "node16 with the DOM and every strict flag",
    source: EVERY_DOOR,
    options: {
      ...STRICT,
      ...NODE16,
      ...EXACT,
      types: ["node"],
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
    },
    soak: true,
  },
];
