import { expect, it } from "vitest";
import * as counts from "../../src/store/redis/conservation/count-scripts.ts";
import * as money from "../../src/store/redis/conservation/money-script.ts";
import * as reports from "../../src/store/redis/conservation/report-scripts.ts";
import * as seals from "../../src/store/redis/conservation/seal-scripts.ts";
import * as walks from "../../src/store/redis/conservation/walk-script.ts";
import type { Script } from "../../src/store/redis/lua.ts";
import * as allot from "../../src/store/redis/scripts/allot.ts";
import * as claim from "../../src/store/redis/scripts/claim.ts";
import * as enqueue from "../../src/store/redis/scripts/enqueue.ts";
import * as enqueuePlain from "../../src/store/redis/scripts/enqueue-plain.ts";
import * as extend from "../../src/store/redis/scripts/extend.ts";
import * as intervene from "../../src/store/redis/scripts/intervene.ts";
import * as lanes from "../../src/store/redis/scripts/lanes.ts";
import * as read from "../../src/store/redis/scripts/read.ts";
import * as reclaim from "../../src/store/redis/scripts/reclaim.ts";
import * as reconcile from "../../src/store/redis/scripts/reconcile.ts";
import * as settle from "../../src/store/redis/scripts/settle.ts";
import * as topics from "../../src/store/redis/scripts/topics.ts";
import * as upkeep from "../../src/store/redis/scripts/upkeep.ts";
import * as workers from "../../src/store/redis/scripts/workers.ts";
import * as streams from "../../src/store/redis/streams/scripts.ts";

const OF_MESSAGES = [
  allot,
  claim,
  enqueue,
  enqueuePlain,
  extend,
  intervene,
  lanes,
  read,
  reclaim,
  reconcile,
  settle,
  upkeep,
  workers,
  ...[counts, money, reports, seals, walks],
];
const isScript = (value: unknown): value is Script => typeof value === "object" && value !== null && "text" in value;
const scriptsOf = (modules: readonly object[]): Script[] => modules.flatMap((all) => Object.values(all).filter(isScript));

/** Commands that wait are refused by Redis inside a script, each time it runs. */
const WAITS = /['"](?:BLOCK|BRPOP|BLPOP|BRPOPLPUSH|BLMOVE|BLMPOP|BZPOPMIN|BZPOPMAX|BZMPOP|WAIT|WAITAOF|SUBSCRIBE)['"]/i;
/** A payload that is decoded would have its amounts as floating-point numbers. */
const DECODES = /cjson|cmsgpack|struct\.unpack/;

it("EV-14: no script waits inside Redis, and none of those that see a message reads its payload as numbers", () => {
  const ofMessages = scriptsOf(OF_MESSAGES);
  const all = [...ofMessages, ...scriptsOf([topics, streams])];
  expect([ofMessages.length > 20, all.length > 30]).toEqual([true, true]);
  expect(all.filter(({ text }) => WAITS.test(text)).map(({ name }) => name)).toEqual([]);
  expect(ofMessages.filter(({ text }) => DECODES.test(text)).map(({ name }) => name)).toEqual([]);
  expect([WAITS.test("redis.call('XREADGROUP', 'BLOCK', 0)"), DECODES.test("cjson.decode(p).cost + 1")]).toEqual([true, true]);
});
