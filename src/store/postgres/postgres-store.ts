/**
 * The PostgreSQL store: the record of every promise. It wires statements, lanes and wake hints into the Store seam and decides
 * nothing; what it declares about its durability is read from the server, not assumed.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { WithAudit } from "../audit.ts";
import type { WithConservation } from "../conservation.ts";
import type { WithHome } from "../home.ts";
import type { WithMovable } from "../movable.ts";
import type { WithMovableRecords } from "../movable-records.ts";
import type { Store, StoreTraits } from "../store.ts";
import { createPostgresAudit } from "./audit/audit.ts";
import { ensureMonths, monthsAround } from "./audit/months.ts";
import { createCheck } from "./check.ts";
import { type ConnectionOptions, createConnection } from "./connection.ts";
import { createPostgresConservation } from "./conservation/conservation.ts";
import { sealLeaving } from "./conservation/leaving.ts";
import { createDb } from "./db.ts";
import { createEnqueue } from "./enqueue.ts";
import { createHome } from "./home.ts";
import { KIND_ORDERED } from "./lane-table.ts";
import { migrateUp, migrationStatus } from "./migrate.ts";
import { createMovableRecords } from "./move/records.ts";
import { createOpenLeases } from "./open-leases.ts";
import { daysAround, ensurePartitions } from "./partitions.ts";
import { quoteSchema } from "./schema-name.ts";
import { createClaim } from "./statements/claim.ts";
import { createExtend } from "./statements/extend.ts";
import { createIntervene } from "./statements/intervene.ts";
import { createLanes } from "./statements/lanes.ts";
import { createLead } from "./statements/lead.ts";
import { createList } from "./statements/list.ts";
import { createMovablePut } from "./statements/movable-put.ts";
import { createMovableReads } from "./statements/movable-read.ts";
import { createPrune } from "./statements/prune.ts";
import { createReads } from "./statements/read.ts";
import { createReclaim } from "./statements/reclaim.ts";
import { createSettle } from "./statements/settle.ts";
import { createWarmUp } from "./statements/warm-up.ts";
import { createTopics } from "./topics.ts";
import { createWake } from "./wake.ts";
import { createWatermarks } from "./watermark.ts";

export interface PostgresStoreOptions extends ConnectionOptions {
  /** The schema of our tables; default `makegood`. */
  readonly schema?: string | undefined;
  /**
   * `up` (default): open() applies what is missing. `check`: it refuses an old schema, for those who migrate by hand. `look`: as `check`,
   * and it makes no partitions either, so that reading changes nothing.
   */
  readonly migrate?: "up" | "check" | "look" | undefined;
  readonly clock?: Clock | undefined;
}

export function createPostgresStore(
  options: PostgresStoreOptions,
): Store & WithAudit & WithConservation & WithHome & WithMovable & WithMovableRecords {
  const schema = options.schema ?? "makegood";
  const s = quoteSchema(schema);
  const clock = options.clock ?? systemClock;
  const connection = createConnection(options);
  const db = createDb(connection, s, clock);
  const { lanes } = db;
  const wake = createWake(db, options, clock);
  const open = createOpenLeases();
  const reads = createReads(db);
  const check = createCheck(db);
  const work = (changed: Iterable<string>) => {
    for (const lane of new Set(changed)) wake.local({ kind: "work", lane });
  };
  const enqueue = createEnqueue(db, (changed) => work(changed.map((lane) => String(lane.id))));
  const watermarks = createWatermarks(() => clock.monotonicMs());
  const claim = createClaim(db, watermarks);
  const reclaim = createReclaim(db);
  const intervene = createIntervene(db, reads, work);
  const warmUp = createWarmUp(connection, s, clock);
  let closed = false;
  const traits: { -readonly [K in keyof StoreTraits]: StoreTraits[K] } = {
    name: "postgres",
    survives: "process-crash",
    callerTransactions: true,
    processes: "many",
    wake: "poll",
    get certificateEndsMs() {
      return connection.certificateEndsMs;
    },
  };

  const known = async (claimed: Awaited<ReturnType<typeof claim>>) => {
    const byId = await lanes.byId(claimed.map((m) => Number(m.lane)));
    open.claimed(claimed, (m) => byId.get(Number(m.lane))?.kind === KIND_ORDERED);
    return claimed;
  };

  async function requireSchema(): Promise<void> {
    const states = await migrationStatus(connection, schema);
    const missing = states.filter((m) => !m.applied);
    if (missing.length === 0) return;
    if (missing.length === states.length) {
      const text = `this database has not been set up: it has no schema ${schema} of ours (MAKEGOOD_SCHEMA); \`makegood migrate up\` makes it`;
      throw new MakegoodError("not_initialised", text, { schema });
    }
    throw new MakegoodError("schema_outdated", `the database misses ${missing.length} migration(s): run \`makegood migrate up\``);
  }

  return {
    traits,
    topics: createTopics(db, () => wake.topics()),
    audit: createPostgresAudit(db),
    conservation: createPostgresConservation(db),
    home: createHome(db, { enqueue, intervene, onWork: work }),
    movable: { ...createMovableReads(db), put: createMovablePut(db, work) },
    records: createMovableRecords(db, schema),
    async open() {
      await connection.open();
      if (options.migrate === "check" || options.migrate === "look") await requireSchema();
      else await migrateUp(connection, schema);
      await lanes.readInstallation();
      if (options.migrate !== "look") {
        await ensurePartitions(connection, s, daysAround(clock.wallMs()));
        await ensureMonths(connection, s, monthsAround(clock.wallMs()));
      }
      traits.survives = (await check.ask()).survives;
      if (closed) throw new MakegoodError("closed", "open: this store is closed");
      if (connection.direct) traits.wake = "push";
      wake.open();
    },
    async close() {
      closed = true;
      await wake.close();
      await connection.close();
    },
    async check(how) {
      const { survives, lost } = await check.ask();
      traits.survives = survives;
      if (how?.write) await check.write();
      return { lost };
    },
    enqueue,
    lanes: createLanes(db, watermarks),
    claim: async (request) => known(await claim(request)),
    extend: createExtend(db),
    settle: createSettle(db, open, work),
    reclaim: async (request) => known(await reclaim(request)),
    wake: (listener) => wake.on(listener),
    idle(owner, waiting) {
      if (waiting) warmUp();
      return wake.idle(owner, waiting);
    },
    get: (id) => reads.get(id),
    list: createList(db),
    counts: (which) => reads.counts(which),
    history: (id) => reads.history(id),
    intervene: (one) => intervene(one),
    prune: createPrune(db, sealLeaving),
    lead: createLead(db),
  };
}
