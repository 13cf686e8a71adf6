/**
 * Exact bytes (I8, DO-20) and edges (I10): payloads come back byte for byte, keys may hold any text without NUL, and nothing
 * a sink may say can keep a settle from being written.
 */
import assert from "node:assert/strict";
import { LIMITS } from "../../message/limits.ts";
import { hashOf, KEYED, retry, seen } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

/** Every one is valid JSON text, and each of them is changed by some parser, database or encoder on the way. */
const PAYLOADS: Readonly<Record<string, string>> = {
  "NUL escape": '{"a":"x\\u0000y"}',
  "lone surrogate escapes": '["\\ud800","\\udfff x","\\ud83d"]',
  "duplicate keys": '{"a":1,"a":2,"a":{"b":[]},"a":null}',
  "key order": '{"z":1,"a":2,"10":3,"9":4,"__proto__":5}',
  "number out of range": '{"n":1e400,"m":-1E+999,"tiny":1e-400}',
  "big integers": "[12345678901234567890123, 9007199254740993, -0, 1.0, 1.10, 1E5]",
  "escapes that need none": '"\\u0041\\/\\u00e9\\u2028"',
  unicode: '"é 漢字 𝄞 👩‍👩‍👧 \u2028\u2029 \ufeff \uffff \u202e"',
  "combining forms": '["\u00e9","e\u0301"]',
  "white space": ' \t\r\n{ "a" :\r\n\t[ 1 , 2 ] }\n \t',
  separators: '"\\u001e\\u001f|,;\'\\"\\\\\u007f$1 %s {} \\\\x1e"',
  "a plain null": "null",
  "an empty string": '""',
  "a number": "0",
  "deeply nested": "[".repeat(LIMITS.payloadDepthMax) + "]".repeat(LIMITS.payloadDepthMax),
};

const CONTROL = Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join("");

/** Any text without NUL may be a key, a tenant or an ordering key. */
const TEXTS = [
  " ",
  "a b",
  "'\"\\`$1%s{};--",
  "null",
  "a,b\u001ec\u001fd",
  CONTROL,
  "\u007f\u0085\u00a0\u200b\u2028\ufeff",
  "漢字 é e\u0301 👩‍👩‍👧",
  "x".repeat(LIMITS.keyBytesMax),
  `${"é".repeat(127)}x`,
  `${"𝄞".repeat(63)}abc`,
  "İıſK",
];

export const limitCases: Record<string, (scene: Scene) => Promise<void>> = {
  "DO-20: payloads come back byte for byte, claimed and read": async (scene) => {
    const names = Object.keys(PAYLOADS);
    const ids = await scene.accept(0, ...names.map((name) => ({ payload: PAYLOADS[name]!, key: name })));
    const claimed = await scene.take(names.length, 1);
    for (const [i, name] of names.entries()) {
      JSON.parse(PAYLOADS[name]!);
      assert.equal(claimed.find(({ id }) => id === ids[i])?.payload, PAYLOADS[name], `${name}, claimed`);
      assert.equal((await seen(scene.store, ids[i]!)).payload, PAYLOADS[name], `${name}, read`);
    }
  },

  "DO-20: the same, each enqueued alone": async (scene) => {
    for (const [name, payload] of Object.entries(PAYLOADS)) {
      const [id] = await scene.accept(0, { payload });
      assert.equal((await seen(scene.store, id as string)).payload, payload, name);
    }
  },

  "DO-20: payloads that mean the same but are written differently are a conflict": async (scene) => {
    await scene.accept(0, { key: "k", payload: '{"a":1}' });
    const [result] = await scene.store.enqueue([scene.message({ key: "k", payload: '{"a": 1}' })], scene.at(1));
    assert.equal(result?.kind, "conflict");
  },

  "a payload of exactly the limit": async (scene) => {
    const ascii = JSON.stringify("x".repeat(LIMITS.payloadBytesMax - 2));
    const wide = JSON.stringify("é".repeat((LIMITS.payloadBytesMax - 2) / 2));
    for (const payload of [ascii, wide]) {
      assert.equal(Buffer.byteLength(payload), LIMITS.payloadBytesMax);
      const [id] = await scene.accept(0, { payload, key: hashOf(payload) });
      const claimed = await scene.takeOne(1);
      assert.equal(claimed.id, id);
      assert.ok(claimed.payload === payload, "the payload came back changed");
    }
  },

  "keys and tenants of any text without NUL, up to 255 bytes, each its own": async (scene) => {
    const fields = TEXTS.flatMap((text) => [{ key: text }, { key: "k", tenantId: text }, { key: text, tenantId: text }]);
    const ids = await scene.accept(0, ...fields);
    for (const [i, { key, tenantId = null }] of fields.entries() as Iterable<[number, { key: string; tenantId?: string }]>) {
      const view = await seen(scene.store, ids[i]!);
      assert.deepEqual([view.key, view.tenantId], [key, tenantId]);
    }
    const again = fields.map((each, i) => scene.message({ ...each, payload: `{"id":"${ids[i]}"}` }));
    assert.deepEqual(
      await scene.store.enqueue(again, scene.at(1)),
      ids.map((id) => ({ kind: "duplicate", id })),
    );
    for (const [i, message] of again.entries()) {
      const alone = { ...message, id: scene.id() };
      assert.deepEqual(await scene.store.enqueue([alone], scene.at(2)), [{ kind: "duplicate", id: ids[i] }]);
    }
    for (const key of TEXTS) assert.equal((await scene.store.list({ key, limit: 10 })).data.length, 2, JSON.stringify(key));
  },

  "ordering keys of any text without NUL": async (scene) => {
    await scene.accept(0, ...TEXTS.flatMap((orderingKey) => [1, 2].map(() => ({ topic: KEYED, orderingKey }))));
    const heads = await scene.take(TEXTS.length, 1);
    assert.deepEqual(new Set(heads.map(({ orderingKey }) => orderingKey)), new Set(TEXTS));
  },

  "I5: whatever a sink says, the settle is written": async (scene) => {
    const errors = [
      "",
      "x".repeat(LIMITS.errorBytesMax),
      "NUL \u0000 inside",
      "half \ud800 a pair",
      CONTROL,
      "'\"\\,{}\u001e",
      null,
    ];
    const ids = await scene.accept(0, ...errors.map(() => ({})));
    const claimed = await scene.take(errors.length, 1);
    for (const [i, error] of errors.entries()) {
      const message = claimed.filter(({ id }) => id === ids[i]);
      await scene.settled(2, message, { ...retry(), error, code: error === null ? null : "odd" } as ReturnType<typeof retry>);
      const { attempts } = await scene.store.history(ids[i]!);
      assert.equal(attempts.length, 1);
      if (error === null || !/[\0\ud800]/.test(error)) assert.equal(attempts[0]?.error, error);
    }
  },

  "a delay of a year and the priorities at the edge": async (scene) => {
    const { delayMsMax: delayMs, priorityMin, priorityMax } = LIMITS;
    const [id] = await scene.accept(0, { delayMs }, { priority: priorityMin }, { priority: priorityMax });
    assert.deepEqual((await seen(scene.store, id as string)).nextAttemptAt, scene.at(delayMs).now);
    const claimed = await scene.take(2, 1);
    assert.deepEqual(new Set(claimed.map(({ priority }) => priority)), new Set([priorityMin, priorityMax]));
  },
};
