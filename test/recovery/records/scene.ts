/**
 * The stage of what recovery keeps: failures to ingest, messages that die, candidates and redrives in short words, each write at a time of its
 * own that only moves forward.
 */
import assert from "node:assert/strict";
import type { ClaimedMessage, NewMessage } from "../../../src/message/message.ts";
import type { Settlement } from "../../../src/message/settlement.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import type { CandidateWrite } from "../../../src/recovery/candidates/candidates-sql.ts";
import type { IngestSettings } from "../../../src/recovery/candidates/rounds.ts";
import type { NewOccurrence } from "../../../src/recovery/failures/failure.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import { failureMatchId } from "../../../src/recovery/fingerprint/fingerprint.ts";
import type { GroupIdentity } from "../../../src/recovery/groups/group.ts";
import type { Paged } from "../../../src/recovery/pages.ts";
import type { NewProvenance } from "../../../src/recovery/provenance.ts";
import { createRecords, type Records } from "../../../src/recovery/records.ts";
import type { NewRedrive, Redrive, RedriveSelect } from "../../../src/recovery/redrive/redrive.ts";
import type { Store } from "../../../src/store/store.ts";
import { DELIVERED, definition, hashOf, TOPICS } from "../../../src/testing/store-conformance/fixtures.ts";
import { settles, verbs } from "../../../src/testing/store-conformance/scene.ts";
import { createStage, type Stage } from "../stage.ts";

export const EVALUATE = "recovery/evaluate";
export const COPIES = "recovery/copies";

type Verbs = ReturnType<typeof verbs>;

export interface RecoveryScene extends Pick<Verbs, "at" | "id" | "accept" | "take" | "settled"> {
  readonly store: Store;
  readonly recovery: Records;
  /** `count` ways to the same data, alternating between two stores. */
  instances(count: number): Promise<Records[]>;
  /** A failure of the kind `name`, under a request key of its own. */
  failure(name: string, fields?: Partial<NewOccurrence>): NewOccurrence;
  /** A closed candidate makes room at once. */
  settings(ms: number, fields?: Partial<IngestSettings>): IngestSettings;
  ingest(ms: number, ...failures: NewOccurrence[]): Promise<Ingested[]>;
  /** The candidate of a new failure of this kind, opened at `ms`. */
  open(name: string, ms?: number): Promise<Candidate>;
  /** Writes to a candidate; it must be done. */
  done(write: Partial<CandidateWrite> & Pick<CandidateWrite, "candidateId">, ms?: number): Promise<Candidate>;
  /** Accepts `count` messages at `ms` and lets them die at once; ids in the order of their deaths. */
  die(ms: number, count?: number, fields?: Partial<NewMessage>, settlement?: Settlement): Promise<string[]>;
  /** Attempts exactly these, which must be pending, and settles each. */
  attempt(ms: number, ids: readonly string[], settlement?: Settlement): Promise<void>;
  /** Ingests the present deaths of these messages as failures of the kind `name`. */
  ingestDeaths(ms: number, name: string, ids: readonly string[]): Promise<Ingested[]>;
  line(fields?: Partial<NewProvenance>): NewProvenance;
  redrive(fields?: Partial<Omit<NewRedrive, "select">> & { readonly select?: Partial<RedriveSelect> }): NewRedrive;
  /** Starts a redrive and claims it; both must succeed. */
  started(
    ms: number,
    fields?: Parameters<RecoveryScene["redrive"]>[0],
  ): Promise<{ readonly redrive: Redrive; readonly token: string }>;
  /** Messages that ask for evaluations. */
  evaluations(): Promise<number>;
}

/** A case: run on empty tables. */
export function play(run: (scene: RecoveryScene) => Promise<void>): () => Promise<void> {
  return async () => {
    const stage = await createStage();
    for (const topic of [...TOPICS, definition(EVALUATE), definition(COPIES)]) await stage.store.topics.put(topic, "code");
    await run(sceneOf(stage));
  };
}

/** A failure that was reported, as ingest() takes it. */
export function newOccurrence(name: string, requestKey: string, fields: Partial<NewOccurrence> = {}): NewOccurrence {
  const text = fields.errorMessage ?? `${name} took 1003 ms`;
  return {
    requestKey,
    payloadHash: hashOf(text),
    source: "api",
    group: identity(name),
    failureMatchId: null,
    message: null,
    tenantId: null,
    skillId: null,
    errorMessage: text,
    stackTrace: null,
    failurePayload: `{"error_type":"timeout"}`,
    evaluate: true,
    ...fields,
  };
}

export function identity(name: string, fields: Partial<GroupIdentity> = {}): GroupIdentity {
  const fingerprint = `f1.${name}.0`;
  return {
    fingerprint,
    failureMatchId: failureMatchId(fingerprint),
    topic: "test/plain",
    sink: "function",
    errorCode: "timeout",
    template: `${name} took <num> ms`,
    topFrame: null,
    groupRule: null,
    ...fields,
  };
}

function sceneOf({ store, recovery, clock, another }: Stage): RecoveryScene {
  const { at, id, accept, take, settled } = verbs(store, clock);

  const failure: RecoveryScene["failure"] = (name, fields) => newOccurrence(name, `key-${id()}`, fields);
  const settings: RecoveryScene["settings"] = (ms, fields = {}) => ({ ...at(ms), ids: id, rejectedRestMs: 0, ...fields });
  const ingest: RecoveryScene["ingest"] = (ms, ...failures) => recovery.ingest(failures, settings(ms));

  return {
    ...{ store, recovery, at, id, accept, take, settled, failure, settings, ingest },
    async instances(count) {
      const second = createRecords((await another()).home);
      return Array.from({ length: count }, (_, i) => (i % 2 === 0 ? recovery : second));
    },
    async open(name, ms = 0) {
      const [answer] = await ingest(ms, failure(name));
      return (await recovery.candidate((answer as Ingested).candidateId)) as Candidate;
    },
    async done({ patch = {}, provenance = [], ...write }, ms = 0) {
      const result = await recovery.write({ patch, provenance, ...at(ms), ...write });
      assert.equal(result.kind, "done");
      return (result as { candidate: Candidate }).candidate;
    },
    async die(ms, count = 1, fields = {}, settlement = died()) {
      const ids = await accept(ms, ...Array.from({ length: count }, () => fields));
      await attempt(store, at(ms), ids, settlement);
      return ids;
    },
    attempt: (ms, ids, settlement = DELIVERED) => attempt(store, at(ms), ids, settlement),
    async ingestDeaths(ms, name, ids) {
      const found = (await recovery.uningested(1_000, [])).filter((each) => ids.includes(each.id));
      assert.equal(found.length, ids.length, "each of them has a death that is not ingested");
      const failures = found.map(({ id: messageId, generation, attempts, tenantId }) =>
        failure(name, {
          requestKey: `message:${messageId}:${generation}:${name}`,
          payloadHash: hashOf(messageId),
          source: "message",
          message: { id: messageId, generation, attempts },
          tenantId,
          failurePayload: null,
        }),
      );
      return ingest(ms, ...failures);
    },
    line,
    redrive: (fields) => newRedrive(id(), fields),
    async started(ms, fields) {
      const started = await recovery.redrives.start(newRedrive(id(), fields), at(ms));
      assert.equal(started.kind, "started");
      const claim = await recovery.redrives.claim("runner", 10_000, at(ms));
      assert.ok(claim, "a running redrive can be claimed");
      assert.equal(claim.redrive.redriveId, (started as { redrive: Redrive }).redrive.redriveId);
      return claim;
    },
    async evaluations() {
      return (await store.list({ topic: EVALUATE, limit: 1_000 })).data.length;
    },
  };
}

async function attempt(store: Store, at: Parameters<Store["lanes"]>[0], ids: readonly string[], settlement: Settlement) {
  const claimed: ClaimedMessage[] = await store.claim({ owner: "worker", leaseMs: 30_000, lanes: [], ids, ...at });
  assert.equal(claimed.length, ids.length, "each of them is pending and can be claimed");
  const inOrder = ids.map((id) => claimed.find((each) => each.id === id) as ClaimedMessage);
  const results = await store.settle(settles(inOrder, settlement), at);
  assert.ok(results.every((result) => result === "settled"));
}

/** A death with this code. */
export function died(code = "http_503", error = "took 1003 ms"): Settlement {
  return { kind: "dead", blocksOrder: false, outcome: "reject", code, error };
}

/** A failure that is tried again at once. */
export function retried(): Settlement {
  return { kind: "retry", delayMs: 0, counted: true, suspicion: 0, outcome: "retry", code: "x", error: null };
}

function line(fields: Partial<NewProvenance> = {}): NewProvenance {
  return {
    groupId: null,
    candidateId: null,
    redriveId: null,
    eventType: "noted",
    actor: "ann",
    actorType: "human",
    reason: null,
    ruleId: null,
    action: null,
    confidenceBefore: null,
    confidenceAfter: null,
    durationMs: null,
    details: null,
    ...fields,
  };
}

function newRedrive(id: string, fields: Parameters<RecoveryScene["redrive"]>[0] = {}): NewRedrive {
  const { select, ...rest } = fields;
  return {
    redriveId: id,
    idempotencyKey: null,
    requestHash: hashOf("request"),
    status: "running",
    mode: "replay",
    action: "retry_exponential",
    candidateId: null,
    actor: "ann",
    reason: "the receiver is back",
    select: { limit: 1_000, generationMax: 10, ...select },
    plan: `{"canary":0}`,
    provenance: [],
    ...rest,
  };
}

/** Every row of a list, page by page; `meanwhile` happens after the first page. */
export async function allPages<T>(
  read: (cursor: string | undefined) => Promise<Paged<T>>,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<T[]> {
  const first = await read(undefined);
  await meanwhile();
  const seen = [...first.data];
  for (let cursor = first.nextCursor; cursor !== null; ) {
    const page = await read(cursor);
    assert.ok(page.data.length > 0, "a cursor leads to more");
    seen.push(...page.data);
    cursor = page.nextCursor;
  }
  return seen;
}
