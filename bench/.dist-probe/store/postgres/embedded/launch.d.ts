import { type Clock } from "../../../platform/clock.ts";
import type { Binaries } from "./binaries.ts";
import type { DataDirectory } from "./data-directory.ts";
import type { ProcessIdentity } from "./process-identity.ts";
/** Everything that the steps around one server need to know. */
export interface ServerContext {
    readonly directory: DataDirectory;
    readonly binaries: Binaries;
    readonly password: string;
    readonly clock: Clock;
    readonly log: (message: string) => void;
    /** Called when a server that this process started ends. */
    readonly onExit: () => void;
}
/** `killed`: somebody ended it while it started, which says nothing against the next try. */
export type Reason = "port_taken" | "old_processes" | "already_running" | "killed" | "failed";
export type Launched = {
    readonly kind: "serving";
    readonly identity: ProcessIdentity;
    readonly port: number;
} | {
    readonly kind: Reason;
    readonly output: string;
};
/** Crash recovery reads the log since the last checkpoint; that can take minutes, but not for ever. */
export declare const SERVE_MS_MAX = 600000;
export declare function launch(context: ServerContext, port: number, signal?: AbortSignal): Promise<Launched>;
