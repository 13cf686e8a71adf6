/**
 * Writes of the recovery seam when things go wrong around them: a write that waits, a COMMIT whose answer is lost, backends that are ended, messages that
 * retention took. Whatever is repeated under its key counts once; what was counted stays.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createIds } from "../../src/platform/ids.ts";
import type { IngestRules, NewOccurrence } from "../../src/recovery/failures/failure.ts";
import { definition, newMessage } from "../../src/testing/store-conformance/fixtures.ts";
import { beginTransaction, databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { EVALUATE, identity, newOccurrence } from "./records/scene.ts";

const COMMIT = /Q....commit\0/s;
const DAY_MS = 24 * 3_600_000;
const nextId = createIds();
const schema = freshSchema();
let store: Awaited<ReturnType<typeof openStore>>;

const rules: IngestRules = {
  reopens: () => true,
  evaluation: ({ candidateId, evaluations }) => {
    const payload = JSON.stringify({ candidate_id: candidateId, evaluation: evaluations });
    return newMessage(nextId(), { topic: EVALUATE, key: `${candidateId}/${evaluations}`, payload });
  },
};

const failure = (name: string, fields: Partial<NewOccurrence> = {}): NewOccurrence =>
  newOccurrence(name, nextId(), { failurePayload: null, ...fields });

const groupOf = (name: string) => store.recovery.groupOf({ fingerprint: identity(name).fingerprint });
const evaluationsOf = async (candidateId: number) =>
  (await store.list({ topic: EVALUATE, limit: 1_000 })).data.filter(({ key }) => key?.startsWith(`${candidateId}/`)).length;

async function deadLetters(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, nextId);
  const directTry = { code: "http_503", error: "down", rejected: true };
  await store.enqueue(ids.map((id) => newMessage(id, { topic: "test/plain", directTry })));
  return ids;
}

beforeAll(async () => {
  store = await openStore({ schema });
  for (const topic of ["test/plain", EVALUATE]) await store.topics.put(definition(topic), "code");
});

afterAll(async () => {
  await store.close();
  await dropSchema(schema);
});

describe("what a preview saw", () => {
  it("is what had committed: a death of an earlier time that commits later is not in the list", async () => {
    const topic = "test/late";
    await store.topics.put(definition(topic), "code");
    const directTry = { code: "http_503", error: "down", rejected: true };
    const [early, late, inside] = [nextId(), nextId(), nextId()] as const;
    const { tx, commit } = await beginTransaction();
    await store.enqueue([newMessage(late, { topic, directTry })], { tx });
    await tx.query("savepoint s");
    await store.enqueue([newMessage(inside, { topic, directTry })], { tx });
    await store.enqueue([newMessage(early, { topic, directTry })]);
    const any = { topic, limit: 10, generationMax: 10 };
    const { messages, seen } = await store.recovery.redrives.preview(any);
    expect(messages).toBe(1);
    await commit();
    expect((await store.recovery.redrives.preview(any)).messages).toBe(3);
    expect((await store.recovery.redrives.preview({ ...any, seen })).messages).toBe(1);
    const [dead] = (
      await withClient((client) =>
        client.query(`select id from "${schema}".dead_letter where id = any ($1) order by died_at limit 1`, [[early, late]]),
      )
    ).rows;
    expect(dead.id, "by its time it would have been").toBe(late);
  });

  it("stays seen after a restore into a server that has not come to those transactions yet", async () => {
    const topic = "test/restored";
    await store.topics.put(definition(topic), "code");
    const directTry = { code: "http_503", error: "down", rejected: true };
    const [id] = [nextId()];
    await store.enqueue([newMessage(id, { topic, directTry })]);
    await withClient((client) =>
      client.query(`update "${schema}".dead_letter set died_xid = '9000000000000' where id = $1`, [id]),
    );
    const any = { topic, limit: 10, generationMax: 10 };
    const { seen } = await store.recovery.redrives.preview(any);
    expect((await store.recovery.redrives.preview({ ...any, seen })).messages).toBe(1);
  });
});

/** Until so many backends wait for a lock on something of this schema's. */
async function waiting(count: number): Promise<void> {
  await withClient(async (client) => {
    const text = "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like $1";
    for (;;) {
      const { rows } = await client.query(text, [`%"${schema}".%`]);
      if (rows[0].n >= count) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
}

describe("an execution whose lease runs out while its list is being frozen", () => {
  it("DR-5: is carried on by the redrive, and not called unknown", async () => {
    const ids = await deadLetters(3);
    const message = (id: string) => ({ id, generation: 0, attempts: 0 });
    const [one] = await store.recovery.ingest(
      ids.map((id) => failure("frozen", { source: "message", message: message(id) })),
      rules,
    );
    const { candidateId, groupId } = one as { candidateId: number; groupId: number };
    const executionId = nextId();
    const claim = { executionStatus: "executing", executionId, leaseMs: 60_000 } as const;
    const claimed = await store.recovery.write({ candidateId, patch: claim, provenance: [] });
    const version = claimed.kind === "done" ? claimed.candidate.version : 0;
    const { tx, commit } = await beginTransaction();
    await tx.query(`lock table "${schema}".redrive_item in exclusive mode`);
    const starting = store.recovery.redrives.start({
      ...{
        redriveId: nextId(),
        idempotencyKey: null,
        requestHash: "x",
        status: "planned",
        mode: "replay",
        action: null,
        actor: "ann",
      },
      ...{ candidateId, executionId, reason: "the receiver is back", plan: "{}", provenance: [] },
      select: { groupId, limit: 10, generationMax: 10 },
    });
    await waiting(1);
    const patch = { executionStatus: "unknown", leaseMs: null } as const;
    const lapsing = store.recovery.write({ candidateId, executionId, version, patch, provenance: [] });
    await waiting(2);
    await commit();
    expect([(await starting).kind, (await lapsing).kind]).toEqual(["started", "version_conflict"]);
    expect(await starting).toMatchObject({ redrive: { counts: { selected: 3 } } });
    const now = await store.recovery.candidate(candidateId);
    expect(now).toMatchObject({ executionStatus: "executing", redriveId: expect.any(String), leaseUntil: null });
  });
});

describe("a death that is ingested while its occurrence moves to another group", () => {
  it("lies open where its occurrence is counted then", async () => {
    const [id] = (await deadLetters(1)) as [string];
    await withClient((client) => client.query(`update "${schema}".dead_letter set attempts = 5 where id = $1`, [id]));
    const early = failure("moving", { source: "message", message: { id, generation: 0, attempts: 4 } });
    const [from] = await store.recovery.ingest([early], rules);
    const [to] = await store.recovery.ingest([failure("moved to")], rules);
    const { tx, commit } = await beginTransaction();
    const move = `with g as (update "${schema}".recovery_group set occurrences = occurrences + case when id = $1 then -1 else 1 end where id in ($1, $2))
      update "${schema}".recovery_occurrence set group_id = $2 where request_key = $3`;
    await tx.query(move, [from?.groupId, to?.groupId, early.requestKey]);
    const death = { ...early, message: { id, generation: 0, attempts: 5 } };
    const dying = store.recovery.ingest([death], rules);
    await waiting(1);
    await commit();
    expect(await dying).toMatchObject([{ kind: "duplicate", groupId: to?.groupId, occurrenceCount: 2 }]);
    expect(await groupOf("moving")).toMatchObject({ occurrenceCount: 0, openMessages: 0 });
    expect(await groupOf("moved to")).toMatchObject({ occurrenceCount: 2, openMessages: 1 });
  });
});

describe("a COMMIT whose answer is lost", () => {
  for (const act of ["lose-reply", "lose-request"] as const) {
    it(`DR-26: ${act} of an ingest: under the same key it counts once, with one evaluation`, async () => {
      await using proxy = await startProxy(targetOf(databaseUrl()));
      const cut = await openStore({ schema, url: proxy.via(databaseUrl()) });
      await cut.recovery.groups({ limit: 1 });
      const rule = proxy.rule({ match: COMMIT, act });
      const report = failure(`cut ${act}`);
      await expect(cut.recovery.ingest([report], rules)).rejects.toMatchObject({ code: "outcome_unknown" });
      expect(rule.count()).toBe(1);
      const [again] = await cut.recovery.ingest([report], rules);
      expect(again).toMatchObject({ kind: act === "lose-reply" ? "duplicate" : "accepted", occurrenceCount: 1 });
      expect(await evaluationsOf(again?.candidateId as number)).toBe(1);
      await cut.close();
    });

    it(`fault 42: ${act} of a send: each item is sent once, also when asked again`, async () => {
      const ids = await deadLetters(3);
      const request = {
        redriveId: nextId(),
        idempotencyKey: null,
        requestHash: "h",
        status: "running",
        mode: "replay",
        action: null,
      } as const;
      const more = { candidateId: null, actor: "ann", reason: "back", plan: "{}", provenance: [] };
      await store.recovery.redrives.start({ ...request, ...more, select: { ids, limit: 10, generationMax: 10 } });
      const claim = await store.recovery.redrives.claim("runner", 60_000);
      await using proxy = await startProxy(targetOf(databaseUrl()));
      const cut = await openStore({ schema, url: proxy.via(databaseUrl()) });
      await cut.recovery.groups({ limit: 1 });
      proxy.rule({ match: COMMIT, act });
      const send = () => cut.recovery.redrives.send(request.redriveId, claim?.token as string, [{ n: 1 }, { n: 2 }, { n: 3 }]);
      await expect(send()).rejects.toMatchObject({ code: "outcome_unknown" });
      expect(await send()).toEqual({ kind: "done", sent: act === "lose-reply" ? 0 : 3, skipped: 0 });
      expect((await store.recovery.redrives.get(request.redriveId))?.counts).toMatchObject({ selected: 3, waiting: 0, sent: 3 });
      for (const id of ids) expect(await store.get(id)).toMatchObject({ status: "pending", generation: 1 });
      const change = { from: ["running"], status: "done", reason: null } as const;
      await store.recovery.redrives.change(request.redriveId, change, []);
      await store.recovery.redrives.keep(request.redriveId, claim?.token as string, { release: true });
      await cut.close();
    });
  }
});

describe("a server that ends its backends", () => {
  /** Answers at last: an error that may be repeated is repeated. */
  async function report(one: NewOccurrence): Promise<void> {
    for (;;) {
      try {
        await store.recovery.ingest([one], rules);
        return;
      } catch (thrown) {
        if (!(thrown as { retryable?: boolean }).retryable) throw thrown;
      }
    }
  }

  /** Ends one that is in the middle of an ingest: it waits for a lock that the test holds. */
  async function endOne(): Promise<void> {
    const text = `select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and query like $1 limit 1`;
    for (let ended = 0; ended === 0; ) {
      ended = (await withClient((client) => client.query(text, [`%"${schema}".recovery_occurrence%`]))).rows.length;
    }
  }

  it("REC-44: 150 reports, in the middle of which connections are ended: each is repeated until it is answered, and 150 are counted", async () => {
    for (let round = 0; round < 3; round++) {
      const { tx, commit } = await beginTransaction();
      await tx.query(`lock table "${schema}".recovery_occurrence in exclusive mode`);
      const reports = Promise.all(Array.from({ length: 50 }, (_, i) => report(failure(`ended ${i % 2}`))));
      await endOne();
      await commit();
      await reports;
    }
    for (let i = 0; i < 2; i++) {
      const group = await groupOf(`ended ${i}`);
      expect(group?.occurrenceCount).toBe(75);
      const { data } = await store.recovery.occurrences(group?.groupId as number, { limit: 200 });
      expect(data).toHaveLength(75);
    }
  });
});

describe("many at once on few connections", () => {
  it("lanes that are not made yet do not make writes wait for each other's connections", async () => {
    const narrow = await openStore({ schema, poolMax: 1 });
    const report = (i: number) => {
      const evaluation = () => newMessage(nextId(), { topic: EVALUATE, tenantId: `narrow-${i}` });
      return narrow.recovery.ingest([failure(`narrow ${i}`)], { ...rules, evaluation });
    };
    const reports = Array.from({ length: 5 }, (_, i) => report(i));
    const answers = await Promise.all(reports);
    expect(answers.flat().every(({ evaluationQueued }) => evaluationQueued)).toBe(true);
    await narrow.close();
  });
});

describe("retention", () => {
  it("what was counted stays when its message is gone; an open dead letter is never taken", async () => {
    const [kept, gone] = (await deadLetters(2)) as [string, string];
    const death = (id: string) =>
      failure("pruned", { message: { id, generation: 0, attempts: 0 }, requestKey: id, source: "message" });
    await store.recovery.ingest([death(kept), death(gone)], rules);
    const later = new Date(Date.now() + 30 * DAY_MS);
    await store.intervene({ id: gone, action: "resolve", actor: "ann", reason: "seen" });
    await store.prune({ keptMs: DAY_MS, limit: 100_000, now: later });
    expect(await store.get(gone)).toBeNull();
    expect(await store.get(kept)).toMatchObject({ status: "dead", resolution: "open" });
    const group = await groupOf("pruned");
    expect(group).toMatchObject({ occurrenceCount: 2, openMessages: 1 });
    const { data } = await store.recovery.occurrences(group?.groupId as number, { limit: 10 });
    expect(data.map(({ message, open }) => [message?.id, open])).toEqual([
      [gone, false],
      [kept, true],
    ]);
    expect((await store.recovery.groupOf({ messageId: gone }))?.groupId).toBe(group?.groupId);
  });
});
