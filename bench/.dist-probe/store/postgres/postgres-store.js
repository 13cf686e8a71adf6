/**
 * The PostgreSQL store: the record of every promise. It wires statements, lanes and wake hints into the Store seam and decides
 * nothing; what it declares about its durability is read from the server, not assumed.
 */
import { MakegoodError } from "../../message/errors.js";
import { systemClock } from "../../platform/clock.js";
import { createConnection } from "./connection.js";
import { createEnqueue } from "./enqueue.js";
import { createLaneTable, KIND_ORDERED } from "./lane-table.js";
import { migrateUp, migrationStatus } from "./migrate.js";
import { createOpenLeases } from "./open-leases.js";
import { daysAround, ensurePartitions } from "./partitions.js";
import { quoteSchema } from "./schema-name.js";
import { createClaim } from "./statements/claim.js";
import { createExtend } from "./statements/extend.js";
import { createIntervene } from "./statements/intervene.js";
import { createLanes } from "./statements/lanes.js";
import { createLead } from "./statements/lead.js";
import { createList } from "./statements/list.js";
import { createPrune } from "./statements/prune.js";
import { createReads } from "./statements/read.js";
import { createReclaim } from "./statements/reclaim.js";
import { createSettle } from "./statements/settle.js";
import { createTopics } from "./topics.js";
import { createWake } from "./wake.js";
import { createWatermarks } from "./watermark.js";
export function createPostgresStore(options) {
    const schema = options.schema ?? "makegood";
    const s = quoteSchema(schema);
    const clock = options.clock ?? systemClock;
    const connection = createConnection(options);
    const lanes = createLaneTable(connection, s, () => clock.monotonicMs());
    const db = { connection, s, lanes, clock };
    const wake = createWake(db, options, clock);
    const open = createOpenLeases();
    const reads = createReads(db);
    const work = (changed) => {
        for (const lane of new Set(changed))
            wake.local({ kind: "work", lane });
    };
    const claim = createClaim(db, createWatermarks(() => clock.monotonicMs()));
    const reclaim = createReclaim(db);
    const traits = {
        name: "postgres",
        survives: "process-crash",
        callerTransactions: true,
        processes: "many",
        wake: "poll",
    };
    const known = async (claimed) => {
        const byId = await lanes.byId(claimed.map((m) => Number(m.lane)));
        open.claimed(claimed, (m) => byId.get(Number(m.lane))?.kind === KIND_ORDERED);
        return claimed;
    };
    async function readDurability() {
        const [row] = await connection.rows("read settings", "select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')", [], { reads: true });
        traits.survives = row?.[0] === "on" && row[1] !== "off" && row[2] === "on" ? "power-loss" : "process-crash";
    }
    async function requireSchema() {
        const missing = (await migrationStatus(connection, schema)).filter((m) => !m.applied);
        if (missing.length === 0)
            return;
        throw new MakegoodError("schema_outdated", `the database misses ${missing.length} migration(s): run \`makegood migrate up\``);
    }
    return {
        traits,
        topics: createTopics(db, () => wake.topics()),
        async open() {
            await connection.open();
            if (options.migrate === "check")
                await requireSchema();
            else
                await migrateUp(connection, schema);
            await ensurePartitions(connection, s, daysAround(clock.wallMs()));
            await readDurability();
            if (connection.direct)
                traits.wake = "push";
            await wake.open();
        },
        async close() {
            await wake.close();
            await connection.close();
        },
        async check() {
            await requireSchema();
            const [row] = await connection.rows("check", "select pg_is_in_recovery()::text, current_setting('default_transaction_read_only')", [], { reads: true });
            if (row?.[0] === "true" || row?.[1] === "on") {
                throw new MakegoodError("store_unavailable", "the server is read-only (a standby, or default_transaction_read_only): connect to the primary");
            }
        },
        enqueue: createEnqueue(db, (changed) => work(changed.map((lane) => String(lane.id)))),
        lanes: createLanes(db),
        claim: async (request) => known(await claim(request)),
        extend: createExtend(db),
        settle: createSettle(db, open, work),
        reclaim: async (request) => known(await reclaim(request)),
        wake: (listener) => wake.on(listener),
        idle: (owner, waiting) => wake.idle(owner, waiting),
        get: (id) => reads.get(id),
        list: createList(db),
        counts: (which) => reads.counts(which),
        history: (id) => reads.history(id),
        intervene: createIntervene(db, reads, work),
        prune: createPrune(db),
        lead: createLead(db),
    };
}
//# sourceMappingURL=postgres-store.js.map