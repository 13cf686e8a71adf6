/**
 * The usage seam on PostgreSQL: turns and quota in the schema of the messages, so that a finalisation and its message are one
 * transaction, our own or the caller's. It brings its tables along when it is opened, and only then.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { type Clock, systemClock } from "../../../platform/clock.ts";
import { refusePool, requireBlock } from "../../shared/caller-transaction.ts";
import type { Transaction } from "../../store.ts";
import type { UsageStore } from "../../usage.ts";
import { type ConnectionOptions, createConnection } from "../connection.ts";
import { createDb } from "../db.ts";
import { migrateUp, migrationStatus } from "../migrate.ts";
import { quoteSchema } from "../schema-name.ts";
import { queryIn } from "../transaction.ts";
import { createFinalize } from "./finalize.ts";
import { USAGE_SET } from "./migrations/list.ts";
import { createUsageReads } from "./reads.ts";
import { createReserve } from "./reserve.ts";

export interface PostgresUsageOptions extends ConnectionOptions {
  /** The schema of the messages' store: the message is written in the same transaction. */
  readonly schema?: string | undefined;
  readonly migrate?: "up" | "check" | undefined;
  readonly clock?: Clock | undefined;
}

export function createPostgresUsageStore(options: PostgresUsageOptions): UsageStore {
  const schema = options.schema ?? "makegood";
  const s = quoteSchema(schema);
  const clock = options.clock ?? systemClock;
  const connection = createConnection(options);
  const db = createDb(connection, s, clock);
  const reads = createUsageReads(db);
  const reserveIn = createReserve(db, reads);
  const finalizeIn = createFinalize(db, reads);

  /** The caller's transaction, or one of our own, which is tried again after a short conflict. */
  async function inTransaction<T>(
    during: string,
    tx: Transaction | undefined,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    if (!tx) return connection.transaction(during, work);
    refusePool(tx);
    await requireBlock(tx, (text) => queryIn(db, tx, text, []));
    return work(tx);
  }

  return {
    traits: { name: "postgres", transactions: true },
    async open() {
      await connection.open();
      if (options.migrate !== "check") {
        await migrateUp(connection, schema);
        await migrateUp(connection, schema, USAGE_SET);
        return;
      }
      const missing = (await migrationStatus(connection, schema, USAGE_SET)).filter((m) => !m.applied);
      if (missing.length === 0) return;
      const text = "the database misses the tables of the usage preset: run `makegood migrate up --set usage`";
      throw new MakegoodError("schema_outdated", text);
    },
    close: () => connection.close(),
    reserve: (reservation, { tx, now } = {}) => inTransaction("reserve", tx, (inside) => reserveIn(inside, reservation, { now })),
    finalize: (request, work) => inTransaction("finalize", request.tx, (inside) => finalizeIn(inside, request, work)),
    progress: (ref, at) => reads.progress(ref, at),
    orphans: (request) => reads.orphans(request),
    turn: (ref) => reads.turn(ref),
    quota: (of) => reads.quota(of),
    verify: () => reads.verify(),
  };
}
