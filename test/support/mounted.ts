/**
 * What every framework is held to that has the API mounted in it at /makegood, under a token: addresses, exact bytes, refusals, and what names the base path.
 */
import { expect } from "vitest";
import { createMakegood, type Makegood, topic } from "../../src/index.ts";
import { createMemoryStore } from "../../src/testing/index.ts";

export const SECRET = "a-secret-of-many-characters";
export const TOKENS = `ann:${SECRET}`;
export const BASE = "/makegood";
/** Bytes that a parser would change: spaces, a repeated member, a number that no double holds, escapes. */
export const PAYLOAD = '{ "a": 1.0,  "a":12345678901234567890, "t":"\\u00e9\\/" }';

export const mountedTopic = topic("shop/orders", { sink: () => undefined });

export const makegoodToMount = (): Promise<Makegood> =>
  createMakegood({ store: createMemoryStore(), topics: [mountedTopic], log: "silent", recovery: false });

export const jsonOf = async (answer: Response): Promise<Record<string, unknown>> =>
  (await answer.json()) as Record<string, unknown>;

type Call = (path: string, init?: RequestInit) => Promise<Response>;

/** Calls below the base path, with the token unless told otherwise. */
export const callerOf =
  (url: string): Call =>
  (path, init = {}) =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${SECRET}`, ...init.headers } });

export const post = (body: string): RequestInit => ({ method: "POST", headers: { "content-type": "application/json" }, body });

export const orderBody = (key: string): string => `{"topic":"shop/orders","key":"${key}","payload":${PAYLOAD}}`;

/** `url`: of the framework's server, without the base path. */
export async function judgeMounted(url: string): Promise<void> {
  const call = callerOf(url);
  const accepted = await call(`${BASE}/api/v1/messages`, post(orderBody("o-1")));
  expect([accepted.status, await accepted.clone().text()]).toEqual([201, expect.stringContaining('"inserted":true')]);
  const { id } = (await accepted.json()) as { id: string };
  expect(accepted.headers.get("location")).toBe(`${BASE}/api/v1/messages/${id}`);
  expect(await (await call(`${BASE}/api/v1/messages/${id}/payload`)).text()).toBe(PAYLOAD);
  const list = (await (await call(`${BASE}/api/v1/messages?topic=shop%2Forders`)).json()) as { data: unknown[] };
  expect(list.data).toHaveLength(1);

  const missing = await call(`${BASE}/api/v1/messages/none?secret=1`);
  expect([missing.status, missing.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  expect(await jsonOf(missing)).toMatchObject({ code: "message_not_found", instance: `${BASE}/api/v1/messages/none` });
  const nowhere = await call(`${BASE}/nowhere`);
  expect([nowhere.status, (await jsonOf(nowhere)).instance]).toEqual([404, `${BASE}/nowhere`]);
  const stranger = await call(`${BASE}/api/v1/messages`, { headers: { authorization: "" } });
  expect([stranger.status, (await jsonOf(stranger)).code]).toEqual([401, "unauthorized"]);
  expect((await call(`${BASE}/livez`, { headers: { authorization: "" } })).status).toBe(200);

  const document = (await (await call(`${BASE}/openapi.json`)).json()) as { servers: unknown };
  expect(document.servers).toEqual([{ url: BASE }]);
  expect(await (await call(`${BASE}/docs`)).text()).toContain(`href="${BASE}/openapi.json"`);
  const page = await (await call(`${BASE}/`)).text();
  expect(page).toContain(`href="${BASE}/api/v1/topics/shop/orders"`);
  expect(page).not.toMatch(/href="\/(?!makegood)/);
}
