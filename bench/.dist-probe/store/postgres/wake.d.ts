import type { Clock } from "../../platform/clock.ts";
import type { WakeHint } from "../store.ts";
import { type ConnectionOptions } from "./connection.ts";
import type { Db } from "./db.ts";
export interface Wake {
    on(listener: (hint: WakeHint) => void): () => void;
    /** Tells this process only. */
    local(hint: WakeHint): void;
    /** Tells the others that a topic changed. */
    topics(): void;
    idle(owner: string, waiting: boolean): Promise<void>;
    /** Starts listening where a direct connection allows it. */
    open(): Promise<void>;
    close(): Promise<void>;
}
export declare function createWake(db: Db, options: ConnectionOptions, clock: Clock): Wake;
