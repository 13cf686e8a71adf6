/**
 * Our own connections: a pool with a handler on every error event (an idle connection that breaks must not end the process),
 * bounded waits, and one door `run` that tries short conflicts again and speaks our error codes. It also finds out whether
 * a pooler stands between: named statements and LISTEN are only for direct connections.
 */
import pg from "pg";
export interface ConnectionOptions {
    readonly url: string;
    readonly poolMax?: number | undefined;
    /** A statement that has not answered by then is given up and its connection dropped. */
    readonly queryTimeoutMs?: number | undefined;
    readonly connectTimeoutMs?: number | undefined;
}
export interface Queryable {
    query(text: string, values?: unknown[]): Promise<{
        rows: unknown[];
    }>;
}
export type Row = readonly (string | null)[];
export interface Connection {
    readonly pool: pg.Pool;
    /** True when the server answers under the process id that it gave at connect: no pooler in between. Known after open(). */
    readonly direct: boolean;
    readonly address: {
        readonly host: string;
        readonly port: number;
    };
    open(): Promise<void>;
    /** One statement, results as arrays of text. */
    rows(during: string, text: string, values: unknown[], options?: RunOptions): Promise<Row[]>;
    /** Several statements in one transaction. */
    transaction<T>(during: string, work: (client: Queryable) => Promise<T>): Promise<T>;
    close(): Promise<void>;
}
export interface RunOptions {
    /** Changes nothing: a lost connection is then only unavailability. */
    readonly reads?: boolean | undefined;
    /** Prepared under this name where the connection is direct. */
    readonly name?: string | undefined;
}
export declare function clientConfig(options: ConnectionOptions): pg.ClientConfig;
export declare function createConnection(options: ConnectionOptions): Connection;
