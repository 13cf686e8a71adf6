/**
 * The Redis store: the path of a message in one Redis or in one slot of a Redis Cluster, each transition one script. What it
 * declares about its durability is read from the server, not assumed.
 */
import { isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { WithConservation } from "../conservation.ts";
import type { WithMovable } from "../movable.ts";
import { leadershipLost } from "../shared/leadership.ts";
import { tellWent } from "../shared/tell-went.ts";
import type { Intervention, InterventionResult, PruneRequest, Store, StoreTraits } from "../store.ts";
import { createClaims } from "./claim.ts";
import { type ConnectOptions, connectRedis } from "./connect.ts";
import { createRedisConservation } from "./conservation/conservation.ts";
import { countIn } from "./conservation/count.ts";
import { closedError, createDb, type Db } from "./db.ts";
import { type Attestation, type RedisDurability, readDurability, requireNoEviction, survivesOf } from "./durability.ts";
import { createEnqueue } from "./enqueue.ts";
import { createEpoch, type Epoch } from "./epoch.ts";
import { createKeyspace } from "./keyspace.ts";
import { createMovable } from "./movable.ts";
import type { RedisPort } from "./port.ts";
import { createQuarantined, type QuarantinedMessage } from "./quarantined.ts";
import { createReads } from "./read.ts";
import { createReconcile } from "./reconcile.ts";
import { refuseInCluster, requireReplicas, type WantedReplicas } from "./replicas.ts";
import { fieldsOf, stateOf, viewOfFields } from "./rows.ts";
import { INTERVENE } from "./scripts/intervene.ts";
import { LEAD, PRUNE, PRUNE_LOOK } from "./scripts/upkeep.ts";
import { createSettle } from "./settle.ts";
import { createTopics } from "./topics.ts";
import { createWake } from "./wake.ts";

export interface RedisStoreOptions {
  /** `redis://…`, or a port made from a client of node-redis or ioredis. */
  readonly redis: string | RedisPort;
  /** For a URL: how to connect. */
  readonly connect?: ConnectOptions | undefined;
  /** Under which all keys stand, in one hash tag; default `makegood`. */
  readonly prefix?: string | undefined;
  /** What the operator vouches for where the server does not let us look. */
  readonly attest?: Attestation | undefined;
  /** An eviction policy that is allowed although it can throw accepted messages away; absent: only `noeviction` opens. */
  readonly allowEviction?: string | null | undefined;
  /** Hears that Redis lost what it held. */
  readonly onLoss?: ((message: string) => void) | undefined;
  /** Accept only what this many replicas have as well. A cluster refuses to open with it. */
  readonly replicas?: WantedReplicas | undefined;
  /** True: open() refuses a Redis that holds nothing of ours under this prefix, instead of beginning there. */
  readonly mustExist?: boolean | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /** Set only by tests and simulation; absent, the server's clock is the authority. */
  readonly now?: (() => number) | undefined;
}

export interface RedisStore extends Store, WithConservation, WithMovable {
  /** Reads again what the server says about its durability. */
  durability(): Promise<RedisDurability>;
  /**
   * What is quarantined because it cannot be read, oldest first. `look`: every message is checked first, and mended where
   * possible; `only`: it is counted what would be mended.
   */
  quarantined(look?: boolean | "only"): Promise<{ readonly mended: number; readonly found: QuarantinedMessage[] }>;
}

export function createRedisStore(options: RedisStoreOptions): RedisStore {
  let port: RedisPort | undefined = typeof options.redis === "string" ? undefined : options.redis;
  let closed = false;
  const epoch: Epoch = createEpoch(
    () => db,
    () => topics,
    (message) => options.onLoss?.(message),
  );
  const db: Db = createDb({
    epoch,
    keys: createKeyspace(options.prefix ?? "makegood"),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    now: options.now,
    port: () => {
      if (closed) throw closedError();
      if (!port) throw new MakegoodError("store_unavailable", "The Redis store is not open: it could not be reached so far.");
      return port;
    },
  });
  const wake = createWake(db);
  const work = (lanes: readonly string[]) => wake.local({ kind: "work", lane: lanes.length === 1 ? (lanes[0] as string) : null });
  const traits: { -readonly [K in keyof StoreTraits]: StoreTraits[K] } = {
    name: "redis",
    survives: "nothing",
    callerTransactions: false,
    processes: "many",
    wake: "poll",
  };

  async function durability(): Promise<RedisDurability> {
    const found = await readDurability(db.port(), options.attest);
    traits.survives = survivesOf(found);
    return found;
  }

  const topics = createTopics(db, () => wake.local({ kind: "topics" }), epoch);
  const reconcile = createReconcile(db);
  const replicated = requireReplicas(db, options.replicas);
  const enqueueOnce = createEnqueue(db, work, replicated);
  const quarantined = createQuarantined(db);

  /** A topic that we declared is not there: either a person deleted it, or Redis lost everything. */
  const enqueue: Store["enqueue"] = async (messages, how) => {
    const losses = epoch.losses();
    try {
      return await enqueueOnce(messages, how);
    } catch (error) {
      if (!isMakegoodError(error) || error.code !== "unknown_topic") throw error;
      await epoch.look();
      if (epoch.losses() === losses) throw error;
      return enqueueOnce(messages, how);
    }
  };

  return {
    traits,
    topics,
    durability,
    quarantined: async (look = false) => ({
      mended: look ? await createReconcile(db, look === "only").all() : 0,
      found: await quarantined(),
    }),
    async open() {
      if (closed) throw closedError();
      if (!port) {
        const made = await connectRedis(options.redis as string, options.connect);
        if (closed) {
          // close() ran before this connection existed, so it has to end here.
          await made.close();
          throw closedError();
        }
        port = made;
      }
      refuseInCluster(port, options.replicas);
      if (options.mustExist) await requireData(port, options.prefix ?? "makegood");
      await epoch.look();
      requireNoEviction(await durability(), options.allowEviction ?? null);
      if (await wake.open()) traits.wake = "push";
    },
    async close() {
      if (closed) return;
      if (port) await wake.close();
      closed = true;
      // A port that was handed in belongs to the caller that made it.
      if (typeof options.redis === "string") await port?.close();
    },
    async check(how) {
      await epoch.look(how?.acknowledge === true);
      if (replicated) await replicated();
      if (how?.durability) await durability();
      return { lost: epoch.lost() };
    },
    enqueue,
    ...createClaims(db),
    settle: createSettle(db, work),
    wake: (listener) => wake.on(listener),
    idle: (owner, waiting) => wake.idle(owner, waiting),
    ...createReads(db),
    movable: createMovable(db, work),
    conservation: createRedisConservation(db),
    intervene: (intervention) => intervene(db, intervention, () => work([])),
    async prune(request) {
      if (request.dryRun) return wouldPrune(db, request);
      await reconcile.step();
      // I12: what is not counted in stays.
      await countIn(db);
      return prune(db, request);
    },
    async lead(name, owner, ttlMs, at) {
      const reply = await db.run(LEAD, [db.keys.key(`leader:${name}`)], [name, owner, ttlMs], at);
      const [held, term, holder] = reply as [number, number, string];
      return { held: held === 1, term: String(term), owner: holder };
    },
  };
}

/** Redis does nothing else while a script runs. */
const PRUNE_PIECE = 500;

async function prune(db: Db, request: PruneRequest): Promise<number> {
  const { keptMs, deadKeptMs = keptMs, limit, now, under } = request;
  const { name = "", owner = "", term = "" } = under ?? {};
  const keys = ["settled", "ended", "dedupe", "pruned", ...(under ? [`leader:${name}`] : [])].map(db.keys.key);
  const longerMs = Math.max(0, deadKeptMs - keptMs);
  let gone = 0;
  while (gone < limit) {
    const piece = Math.min(limit - gone, PRUNE_PIECE);
    const reply = await db.run(PRUNE, keys, [keptMs, piece, longerMs, name, owner, term], { now });
    const [looked, went, dead] = reply as [number, number, number];
    if (looked < 0 && under) throw leadershipLost(under);
    tellWent(request, went, dead);
    gone += went;
    if (looked < piece) break;
  }
  return gone;
}

async function wouldPrune(db: Db, { keptMs, deadKeptMs = keptMs, now }: PruneRequest): Promise<number> {
  const keys = ["settled", "ended"].map(db.keys.key);
  let count = 0;
  for (let from = 0; ; from += PRUNE_PIECE) {
    const args = [keptMs, Math.max(0, deadKeptMs - keptMs), from, PRUNE_PIECE];
    const [looked, goes] = (await db.run(PRUNE_LOOK, keys, args, { now })) as [number, number];
    count += goes;
    if (looked < PRUNE_PIECE) return count;
  }
}

async function intervene(db: Db, given: Intervention, onWork: () => void): Promise<InterventionResult> {
  const { id, action, actor, reason, revision = "", delayMs = 0 } = given;
  const keys = [db.keys.message(id), db.keys.key("lanes"), db.keys.key("settled")];
  const reply = await db.run(INTERVENE, keys, [id, action, JSON.stringify([actor, reason]), revision, delayMs], given);
  const [kind, value] = reply as [InterventionResult["kind"], unknown];
  switch (kind) {
    case "not_found":
      return { kind };
    case "revision_conflict":
      return { kind, revision: value as number };
    case "wrong_state":
      return { kind, ...stateOf(value as string) };
    case "done":
      onWork();
      return { kind, message: viewOfFields(id, fieldsOf(value) as Map<string, string>) };
  }
}

async function requireData(port: RedisPort, prefix: string): Promise<void> {
  const meta = createKeyspace(prefix).key("meta");
  if (Number(await port.send(meta, ["EXISTS", meta])) > 0) return;
  const text = `this Redis has not been set up: it holds nothing of ours under ${prefix} (MAKEGOOD_REDIS_PREFIX); \`makegood serve\` begins there`;
  throw new MakegoodError("not_initialised", text, { prefix });
}
