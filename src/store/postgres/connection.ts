/**
 * Our own connections: a pool with a handler on every error event (an idle connection that breaks must not end the process),
 * bounded waits, and one function `run` that tries short conflicts again and throws our error codes. It also finds out whether
 * a pooler stands between: named statements and LISTEN are only for direct connections.
 */
import { TLSSocket } from "node:tls";
import pg from "pg";
import { MakegoodError } from "../../message/errors.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import { asStoreError, endsSession, isTransient } from "./sql-errors.ts";
import { queryText, TextQuery } from "./text-query.ts";

export interface ConnectionOptions {
  readonly url: string;
  /** At most this many at once, default 10; opened when needed, closed after ten idle seconds. One more listens for hints. */
  readonly poolMax?: number | undefined;
  /** A statement that has not answered by then is given up and its connection dropped. */
  readonly queryTimeoutMs?: number | undefined;
  readonly connectTimeoutMs?: number | undefined;
}

export interface Queryable {
  query(text: string | Patient, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A statement with a limit of its own instead of the connection's. */
export interface Patient {
  readonly text: string;
  readonly query_timeout: number;
}

export type Row = readonly (string | null)[];

export interface Connection {
  /** True when the server answers under the process id that it gave at connect: no pooler in between. Known after open(). */
  readonly direct: boolean;
  readonly address: { readonly host: string; readonly port: number };
  /** Of the server that was last connected to; null: not known, or no TLS. */
  readonly certificateEndsMs: number | null;
  /** Whether this server process serves one of our own direct connections. */
  isOwn(backend: number): boolean;
  open(): Promise<void>;
  /** One statement, results as arrays of text. */
  rows(during: string, text: string, values: unknown[], options?: RunOptions): Promise<Row[]>;
  /** Runs these once on so many connections, where they are direct: they are open then, and their statements prepared. */
  warm(count: number, statements: readonly Statement[]): Promise<void>;
  /** Several statements in one transaction. */
  transaction<T>(during: string, work: (client: Queryable) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A named statement with values that make it change nothing. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface RunOptions {
  /** Changes nothing: a lost connection is then only unavailability. */
  readonly reads?: boolean | undefined;
  /** Prepared under this name where the connection is direct. */
  readonly name?: string | undefined;
  /** A limit of its own instead of the connection's. */
  readonly patienceMs?: number | undefined;
}

/** What the driver is told. Our own type: declarations that name one of pg's would need `@types/pg` in every project that uses them. */
interface ClientSettings {
  readonly connectionString: string;
  readonly connectionTimeoutMillis: number;
  readonly query_timeout: number;
  readonly keepAlive: boolean;
  readonly keepAliveInitialDelayMillis: number;
  readonly application_name: string;
}

const TRIES_MAX = 6;

export function clientConfig(options: ConnectionOptions): ClientSettings {
  return {
    connectionString: options.url,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    query_timeout: options.queryTimeoutMs ?? 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "makegood",
  };
}

/**
 * For prepared statements only the plans that stay right: one that was made while a table was empty may read it whole, and
 * would go on doing so when it is not. Startup options reach a server, a pooler refuses them.
 */
const STEADY_PLANS = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off";

/** `options` in a URL override all other options, so ours are added there; of one setting named twice the last counts. */
export function withSteadyPlans(url: string): { readonly options: string } | { readonly connectionString: string } {
  if (!/[?&]options=/.test(url)) return { options: STEADY_PLANS };
  const given = new URL(url);
  given.searchParams.set("options", `${given.searchParams.get("options")} ${STEADY_PLANS}`);
  return { connectionString: given.href };
}

const closedError = (during: string): MakegoodError => new MakegoodError("closed", `${during}: this store is closed`);

function createPool(
  options: ConnectionOptions,
  direct: boolean,
  connected: (stream: unknown) => void,
  backends: Set<number> = new Set(),
): pg.Pool {
  const pool = new pg.Pool({
    ...clientConfig(options),
    max: options.poolMax ?? 10,
    min: 0,
    idleTimeoutMillis: 10_000,
    ...(direct ? withSteadyPlans(options.url) : {}),
  });
  // Only this listener hears of an idle connection that breaks; without it the error would end the process.
  const ignore = () => {};
  pool.on("error", ignore);
  const backend = (client: pg.PoolClient) => (client as unknown as { processID: number }).processID;
  pool.on("connect", (client) => {
    client.on("error", ignore);
    backends.add(backend(client));
    connected((client as unknown as { connection: { stream: unknown } }).connection.stream);
  });
  pool.on("remove", (client) => backends.delete(backend(client)));
  return pool;
}

export function createConnection(options: ConnectionOptions): Connection {
  const backends = new Set<number>();
  let certificateEndsMs: number | null = null;
  const connected = (stream: unknown): void => {
    if (stream instanceof TLSSocket) certificateEndsMs = Date.parse(stream.getPeerCertificate().valid_to) || null;
  };
  let pool = createPool(options, false, connected);
  let direct = false;
  let ending: Promise<void> | undefined;
  let address = { host: "", port: 0 };

  async function retried<T>(during: string, reads: boolean, work: () => Promise<T>): Promise<T> {
    if (ending !== undefined) throw closedError(during);
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (thrown) {
        if (!isTransient(thrown) || attempt >= TRIES_MAX) throw asStoreError(thrown, during, !reads);
        await sleep(systemClock, 2 ** attempt * (1 + systemRandom.next()));
      }
    }
  }

  return {
    isOwn: (backend) => backends.has(backend),
    get direct() {
      return direct;
    },
    get address() {
      return address;
    },
    get certificateEndsMs() {
      return certificateEndsMs;
    },
    async open() {
      await retried("connect", true, async () => {
        const client = await pool.connect();
        try {
          const { rows } = await client.query("select pg_backend_pid()::text as pid");
          address = { host: client.host, port: client.port };
          direct = rows[0]?.pid === String((client as unknown as { processID: number | null }).processID);
        } finally {
          client.release();
        }
      });
      if (!direct) return;
      // Closed meanwhile: a pool that is made now would never be ended.
      if (ending !== undefined) throw closedError("connect");
      const first = pool;
      pool = createPool(options, true, connected, backends);
      await first.end();
    },
    rows(during, text, values, { reads = false, name, patienceMs } = {}) {
      return retried(during, reads, () => {
        const query = new TextQuery(text, values, direct ? name : undefined, patienceMs);
        return (pool as unknown as { query(query: TextQuery): Promise<Row[]> }).query(query);
      });
    },
    async warm(count, statements) {
      if (!direct || ending !== undefined) return;
      const one = async () => {
        const client = await pool.connect();
        try {
          for (const { name, text, values } of statements) {
            await queryText(client as never, new TextQuery(text, values, name));
          }
          client.release();
        } catch (thrown) {
          client.release(true);
          throw thrown;
        }
      };
      await Promise.all(Array.from({ length: count }, one));
    },
    transaction(during, work) {
      return retried(during, false, async () => {
        const client = await pool.connect();
        try {
          await client.query("begin");
          const result = await work(client as Queryable);
          await client.query("commit");
          client.release();
          return result;
        } catch (thrown) {
          // release(true) drops the connection, and the server rolls back by itself; a failed rollback means a broken one, too.
          const rollBack = () =>
            client.query("rollback").then(
              () => false,
              () => true,
            );
          client.release(endsSession(thrown) || (await rollBack()));
          throw thrown;
        }
      });
    },
    close() {
      ending ??= pool.end();
      return ending;
    },
  };
}
