import { type Clock } from "../../platform/clock.ts";
import type { Store } from "../store.ts";
import { type ConnectionOptions } from "./connection.ts";
export interface PostgresStoreOptions extends ConnectionOptions {
    /** The schema of our tables; default `makegood`. */
    readonly schema?: string | undefined;
    /** `up` (default): open() applies what is missing. `check`: it refuses an old schema, for those who migrate by hand. */
    readonly migrate?: "up" | "check" | undefined;
    readonly clock?: Clock | undefined;
}
export declare function createPostgresStore(options: PostgresStoreOptions): Store;
